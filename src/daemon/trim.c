/* SPDX-License-Identifier: MIT */
/*
 * Trim rounds; see trim.h. Layer: daemon.
 *
 * A step is one process: its statistics if they can be had (so that growth of live is not taken for a failure), the
 * trim, its statistics again. Every way a step can end leads to advance(), so a round always ends. Values in a
 * reply are bounded by what the daemon saw itself: a trim cannot have taken longer than the answer took.
 */
#include "daemon/trim.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "daemon/clock.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/peer.h"
#include "daemon/process.h"
#include "daemon/store.h"
#include "daemon/tick.h"
#include "daemon/unit.h"

/* Agents that let a round wait in vain before it gives up on the rest: each costs AgentTimeoutSec=. */
#define TIMEOUTS_PER_ROUND 2

/* A round whose agent has been silent for so long is not at work: it does not keep others from theirs. */
#define STALLED_USEC (2 * MG_USEC_PER_SEC)

/* More processes than this are left to the next round. */
#define STEPS_MAX 1024

struct trim_round {
        struct mg_list all; /* manager->rounds */
        struct unit *unit;
        struct peer *peer; /* whose turn it is */
        struct mg_decision decision;
        struct mg_outcome outcome;
        bool measured; /* outcome.before_bytes is in */
        uint64_t asked_usec;
        uint64_t step_began_usec;
        uint64_t live_before; /* of the process at hand, looked at just now; MG_UNKNOWN: could not be */
        int64_t live_growth;
        uint64_t backoff_before_usec;
        uint64_t best_bytes;
        pid_t best_pid;
        pid_t worst_pid;
        unsigned n_timeouts;
        trim_handler handler;
        void *handler_userdata;
        size_t n_skipped;
        size_t next;
        size_t n_steps;
        struct mg_round_step steps[];
};

static const char *const status_names[] = {
        [TRIM_DONE] = "done",
        [TRIM_DRY_RUN] = "dry-run",
        [TRIM_HELD] = "held",
        [TRIM_GONE] = "gone",
};
_Static_assert(MG_ELEMENTS(status_names) == _TRIM_STATUS_MAX, "a status has no name");

const char *trim_status_to_string(enum trim_status status) {
        return status_names[status];
}

static void advance(struct trim_round *round);

static struct trim_round *round_free(struct trim_round *round) {
        round->unit->round = NULL;
        list_remove(&round->all);
        round->unit->manager->n_rounds--;
        free(round);
        return NULL;
}

static void tell_handler(const struct trim_round *round, enum trim_status status) {
        struct trim_result result = {
                .status = status,
                .unit = round->unit->name,
                .decision = round->decision,
                .outcome = round->outcome,
                .n_skipped = round->n_skipped,
        };

        if (round->handler)
                round->handler(round->handler_userdata, &result);
}

static void measure(struct trim_round *round, uint64_t *ret_footprint) {
        struct unit *unit = round->unit;

        /* A unit that is gone keeps its last numbers: the tick will find out. */
        (void) tick_measure(unit, true);
        *ret_footprint = account_footprint(&unit->memory);
}

static void begin_measuring(struct trim_round *round) {
        struct unit *unit = round->unit;

        unit->round_lost_bytes = 0;
        measure(round, &round->outcome.before_bytes);
        round->outcome.anon_thp_before_bytes = unit->memory.anon_thp_bytes;
        for (struct process *p = process_first(unit); p; p = process_next(p))
                p->round_before_bytes = process_footprint(p);
        round->outcome.after_bytes = round->outcome.before_bytes;
        round->measured = true;
}

static void tell_journal(const struct trim_round *round) {
        struct unit *unit = round->unit;
        uint64_t backoff_usec = unit->policy.backoff_usec;

        journal_trim(&(struct mg_journal_trim){
                        .unit = unit_for_journal(unit),
                        .outcome = &round->outcome,
                        .retained_bytes = round->decision.account.retained_bytes,
                        .pid = round->best_pid,
        });
        if (backoff_usec <= round->backoff_before_usec)
                return;
        journal_pinned(&(struct mg_journal_pinned){
                        .unit = unit_for_journal(unit),
                        .gain_bytes = outcome_gain(&round->outcome),
                        .expected_bytes = round->outcome.expected_bytes,
                        .backoff_usec = backoff_usec,
                        .reason = unit->policy.backoff_reason,
        });
}

/* What ended during the round took its memory along: that is not the trim's doing. */
static void discount_the_lost(struct trim_round *round) {
        struct mg_outcome *outcome = &round->outcome;
        uint64_t lost = round->unit->round_lost_bytes;

        for (struct process *p = process_first(round->unit); p; p = process_next(p))
                if (p->gone && p->round_before_bytes != MG_UNKNOWN)
                        lost = mg_add_cap(lost, p->round_before_bytes);
        if (outcome->before_bytes != MG_UNKNOWN)
                outcome->before_bytes = mg_sub_floor(outcome->before_bytes, lost);
}

static void learn(struct trim_round *round) {
        struct unit *unit = round->unit;
        const struct mg_outcome *outcome = &round->outcome;

        round->backoff_before_usec = unit->policy.backoff_usec;
        if (!policy_learn(&unit->policy, &unit->config, outcome, outcome->ended_usec))
                return;
        journal_breaker(&(struct mg_journal_breaker){
                        .unit = unit_for_journal(unit),
                        .pause_usec = outcome->pause_usec,
                        .max_pause_usec = unit->config.max_pause_usec,
                        .pid = round->worst_pid,
        });
}

static void finish(struct trim_round *round) {
        struct unit *unit = round->unit;
        struct manager *manager = unit->manager;
        struct mg_outcome *outcome = &round->outcome;

        outcome->ended_usec = manager_now(manager);
        outcome->live_growth_bytes = round->live_growth > 0 ? round->live_growth : 0;
        discount_the_lost(round);
        if (outcome->n_asked > 0) {
                learn(round);
                unit->last_outcome = *outcome;
                unit->last_outcome_wall_usec = clock_wall_usec();
                unit->summary_pause_usec = MG_MAX(unit->summary_pause_usec, outcome->pause_usec);
                manager->trims++;
                manager->trimmed_bytes = mg_add_cap(manager->trimmed_bytes, outcome_gain(outcome));
                history_trimmed(&unit->history, outcome_gain(outcome), outcome->ended_usec);
                tell_journal(round);
                store_save_unit(unit);
        }
        round->peer = NULL;
        tell_handler(round, TRIM_DONE);
        round_free(round);
}

static uint64_t at_most(uint64_t claimed, uint64_t bound) {
        return claimed == MG_UNKNOWN ? bound : MG_MIN(claimed, bound);
}

static void count_answer(
                struct trim_round *round,
                struct peer *peer,
                const struct mg_message *reply) {
        struct mg_outcome *outcome = &round->outcome;
        uint64_t elapsed = clock_now_usec() - round->asked_usec;
        uint64_t faults = reply->number[MG_NUMBER_MINOR_FAULTS];
        uint64_t duration;
        uint64_t pause;

        outcome->n_answered++;
        if (reply->number[MG_NUMBER_RESULT] != MG_RESULT_DONE &&
            reply->number[MG_NUMBER_RESULT] != MG_RESULT_PARTIAL) {
                outcome->n_refused++;
                return;
        }
        duration = at_most(reply->number[MG_NUMBER_DURATION_USEC], elapsed);
        pause = at_most(reply->number[MG_NUMBER_PAUSE_USEC], duration);
        outcome->duration_usec = mg_add_cap(outcome->duration_usec, duration);
        outcome->minor_faults =
                        mg_add_cap(outcome->minor_faults, faults == MG_UNKNOWN ? 0 : faults);
        if (pause >= outcome->pause_usec) {
                outcome->pause_usec = pause;
                round->worst_pid = peer->pid;
        }
}

static void credit(struct trim_round *round, const struct process *process) {
        uint64_t now_bytes = process_footprint(process);
        uint64_t gain;

        if (now_bytes == MG_UNKNOWN || process->round_before_bytes == MG_UNKNOWN)
                return;
        gain = mg_sub_floor(process->round_before_bytes, now_bytes);
        if (gain >= round->best_bytes) {
                round->best_bytes = gain;
                round->best_pid = process->proc.pid;
        }
}

/* A claimed size beyond a PiB is a lie, and must not overflow the sum. */
static int64_t plausible(uint64_t bytes) {
        return (int64_t) MG_MIN(bytes, UINT64_C(1) << 50);
}

static void on_stats_after(
                struct peer *peer,
                int status,
                const struct mg_message *reply,
                void *userdata) {
        struct trim_round *round = userdata;

        if (status == 0 && !peer->closed && round->live_before != MG_UNKNOWN &&
            reply->number[MG_NUMBER_RESULT] == MG_RESULT_DONE &&
            peer->process->sample.live_bytes != MG_UNKNOWN)
                round->live_growth += plausible(peer->process->sample.live_bytes) -
                                      plausible(round->live_before);
        advance(round);
}

static void on_trimmed(
                struct peer *peer,
                int status,
                const struct mg_message *reply,
                void *userdata) {
        struct trim_round *round = userdata;

        measure(round, &round->outcome.after_bytes);
        if (status == 0)
                count_answer(round, peer, reply);
        else if (status == -EOPNOTSUPP) {
                round->outcome.n_answered++;
                round->outcome.n_refused++;
        } else if (status == -ETIMEDOUT)
                round->n_timeouts++;
        if (status == 0 && !peer->closed)
                credit(round, peer->process);
        if (status < 0 || !peer_may_look(peer) || peer_ask_stats(peer, on_stats_after, round) < 0)
                advance(round);
}

static void fill_trim(const struct trim_round *round, struct mg_message *ret_message) {
        const struct mg_unit_config *config = &round->unit->config;
        uint64_t timeout_usec = round->unit->manager->settings.agent_timeout_usec;

        proto_init(ret_message, MG_VERB_TRIM);
        ret_message->number[MG_NUMBER_PAD_BYTES] = config->trim_pad_bytes;
        ret_message->number[MG_NUMBER_ARENA_TOPS] = config->arena_tops;
        ret_message->number[MG_NUMBER_SHRINK] = config->shrink_caches;
        /* Half of the wait is for the slices, half for the one that has begun. */
        ret_message->number[MG_NUMBER_DEADLINE_USEC] = timeout_usec / 2;
        ret_message->text[MG_TEXT_REASON] = span_of(reason_to_string(round->outcome.reason));
}

static void count_asked(struct trim_round *round, const struct peer *peer) {
        const struct mg_round_step *step = &round->steps[round->next - 1];
        const struct mg_process_sample *sample = &peer->process->sample;
        struct mg_outcome *outcome = &round->outcome;

        outcome->sliced = (outcome->n_asked == 0 || outcome->sliced) && sample->sliced;
        outcome->n_asked++;
        outcome->asked_bytes = mg_add_cap(outcome->asked_bytes, step->retained_bytes);
        if (sample->free_chunks != MG_UNKNOWN)
                outcome->free_chunks = mg_add_cap(outcome->free_chunks, sample->free_chunks);
        outcome->predicted_pause_usec =
                        MG_MAX(outcome->predicted_pause_usec, step->predicted_pause_usec);
}

/* Returns whether a reply is now waited for. */
static bool ask_to_trim(struct trim_round *round, struct peer *peer) {
        uint64_t timeout_usec = peer->manager->settings.agent_timeout_usec;
        struct mg_message message;

        if (!round->measured)
                begin_measuring(round);
        fill_trim(round, &message);
        round->asked_usec = clock_now_usec();
        if (peer_request(peer, &message, timeout_usec, on_trimmed, round) < 0)
                return false;
        count_asked(round, peer);
        return true;
}

static void on_stats_before(
                struct peer *peer,
                int status,
                const struct mg_message *reply,
                void *userdata) {
        struct trim_round *round = userdata;

        if (status == -ETIMEDOUT)
                round->n_timeouts++;
        if (status == 0 && reply->number[MG_NUMBER_RESULT] == MG_RESULT_DONE)
                round->live_before = peer->process->sample.live_bytes;
        if (peer->closed || status == -ETIMEDOUT || !ask_to_trim(round, peer))
                advance(round);
}

static bool begin_step(struct trim_round *round, struct peer *peer) {
        round->live_before = MG_UNKNOWN;
        if (peer_may_look(peer))
                return peer_ask_stats(peer, on_stats_before, round) >= 0;
        return ask_to_trim(round, peer);
}

static void on_idle(struct peer *peer, void *userdata) {
        struct trim_round *round = userdata;

        if (peer->closed || peer->unresponsive || !begin_step(round, peer))
                advance(round);
}

/* The emergency switch works at once, but for the one request in flight. */
static bool is_stopped(const struct trim_round *round) {
        const struct unit *unit = round->unit;

        return !round->outcome.by_hand && (unit->paused || unit->manager->paused);
}

/* The next process that is still there and whose agent answers; NULL: the round is over. */
static struct peer *next_peer(struct trim_round *round) {
        while (round->next < round->n_steps && round->n_timeouts < TIMEOUTS_PER_ROUND &&
               !is_stopped(round)) {
                const struct mg_round_step *step = &round->steps[round->next++];
                struct process *process = process_find(round->unit, step->pid, step->start_time);

                if (process && process->peer && process->peer->state == PEER_READY &&
                    !process->peer->unresponsive && !process->sample.suspended)
                        return process->peer;
        }
        return NULL;
}

/* Goes on with the next process until one is being waited for, or none is left. */
static void advance(struct trim_round *round) {
        for (;;) {
                struct peer *peer = next_peer(round);

                round->peer = peer;
                round->step_began_usec = manager_now(round->unit->manager);
                if (!peer) {
                        finish(round);
                        return;
                }
                if (peer_is_busy(peer)) {
                        peer_when_idle(peer, on_idle, round);
                        return;
                }
                if (begin_step(round, peer))
                        return;
        }
}

static struct trim_round *round_new(struct unit *unit, const struct mg_decision *decision) {
        size_t room = MG_MIN((size_t) unit->n_processes, (size_t) STEPS_MAX);
        struct trim_round *round = calloc(1, sizeof(*round) + room * sizeof(struct mg_round_step));
        struct mg_unit_sample sample;

        if (!round)
                return NULL;
        tick_fill_sample(unit, &sample);
        round->n_steps =
                        round_plan(&unit->policy, &unit->config, &sample, round->steps, room,
                                   &round->n_skipped);
        round->unit = unit;
        round->decision = *decision;
        round->outcome.reason = decision->reason;
        round->outcome.expected_bytes = decision->expected_bytes;
        round->outcome.started_usec = manager_now(unit->manager);
        list_append(&unit->manager->rounds, &round->all);
        unit->manager->n_rounds++;
        unit->round = round;
        return round;
}

int trim_start(struct unit *unit, const struct mg_decision *decision) {
        struct trim_round *round;

        if (unit->round)
                return -EBUSY;
        round = round_new(unit, decision);
        if (!round)
                return -ENOMEM;
        unit->due_since_usec = MG_UNKNOWN;
        advance(round);
        return 0;
}

static void answer_at_once(
                const struct unit *unit,
                enum trim_status status,
                const struct mg_decision *decision,
                size_t n_skipped,
                trim_handler handler,
                void *userdata) {
        struct trim_result result = {
                .status = status,
                .unit = unit->name,
                .decision = *decision,
                .n_skipped = n_skipped,
        };

        handler(userdata, &result);
}

int trim_by_hand(struct unit *unit, bool dry_run, trim_handler handler, void *userdata) {
        struct mg_unit_sample sample;
        struct mg_decision decision;
        struct trim_round *round;

        if (unit->round)
                return -EBUSY;
        (void) tick_measure(unit, false);
        tick_fill_sample(unit, &sample);
        policy_by_hand(&unit->policy, &unit->config, &sample, manager_now(unit->manager),
                       &decision);
        if (decision.action != MG_ACTION_TRIM || dry_run) {
                answer_at_once(unit, decision.action == MG_ACTION_TRIM ? TRIM_DRY_RUN : TRIM_HELD,
                               &decision, 0, handler, userdata);
                return 0;
        }
        round = round_new(unit, &decision);
        if (!round)
                return -ENOMEM;
        round->outcome.by_hand = true;
        round->handler = handler;
        round->handler_userdata = userdata;
        advance(round);
        return 0;
}

void trim_cancel(struct unit *unit) {
        struct trim_round *round = unit->round;

        if (!round)
                return;
        if (round->peer)
                peer_forget(round->peer, round);
        tell_handler(round, TRIM_GONE);
        round_free(round);
}

size_t trim_running(const struct manager *manager) {
        uint64_t now_usec = manager_now(manager);
        size_t n = 0;

        MG_LIST_FOREACH(entry, &manager->rounds) {
                const struct trim_round *round = MG_CONTAINER_OF(entry, struct trim_round, all);

                n += now_usec - round->step_began_usec < STALLED_USEC;
        }
        return n;
}
