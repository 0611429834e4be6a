/* SPDX-License-Identifier: MIT */
/*
 * The steps of a round; see trim_round.h. Layer: daemon.
 *
 * A step is one process: its statistics if they can be had (so that growth of live is not taken for a failure), the
 * trim, its statistics again. Every way a step can end leads to trim_advance(), so a round always ends. Values in a
 * reply are bounded by what the daemon saw itself: a trim cannot have taken longer than the answer took.
 */
#include <errno.h>

#include "daemon/manager.h"
#include "daemon/peer.h"
#include "daemon/process.h"
#include "daemon/trim_round.h"
#include "daemon/unit.h"
#include "host/clock.h"

/* Agents that let a round wait in vain before it gives up on the rest: each costs AgentTimeoutSec=. */
#define TIMEOUTS_PER_ROUND 2

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
        trim_advance(round);
}

static void on_trimmed(
                struct peer *peer,
                int status,
                const struct mg_message *reply,
                void *userdata) {
        struct trim_round *round = userdata;

        trim_measure(round, &round->outcome.after_bytes);
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
                trim_advance(round);
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
                trim_begin_measuring(round);
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
                trim_advance(round);
}

static bool begin_step(struct trim_round *round, struct peer *peer) {
        const struct mg_process_sample *sample = &peer->process->sample;
        bool is_fresh = sample->stats_at_usec != MG_UNKNOWN &&
                        sample->stats_at_usec >= round->outcome.started_usec;

        round->live_before = is_fresh ? sample->live_bytes : MG_UNKNOWN;
        if (is_fresh)
                return ask_to_trim(round, peer);
        if (peer_may_look(peer))
                return peer_ask_stats(peer, on_stats_before, round) >= 0;
        return ask_to_trim(round, peer);
}

static void on_idle(struct peer *peer, void *userdata) {
        struct trim_round *round = userdata;

        if (peer->closed || peer->unresponsive || !begin_step(round, peer))
                trim_advance(round);
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

void trim_advance(struct trim_round *round) {
        for (;;) {
                struct peer *peer = next_peer(round);

                round->peer = peer;
                round->step_began_usec = manager_now(round->unit->manager);
                if (!peer) {
                        trim_finish(round);
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
