/* SPDX-License-Identifier: MIT */
/*
 * Trim rounds; see trim.h. Layer: daemon.
 *
 * A round by hand looks at the processes first, so that it decides by what is there now, then goes the way of all rounds.
 */
#include "daemon/trim_round.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/peer.h"
#include "daemon/process.h"
#include "daemon/provider.h"
#include "daemon/store.h"
#include "daemon/tick.h"
#include "daemon/unit.h"
#include "host/clock.h"

/* A round whose agent has been silent for so long is not at work: it does not keep others from theirs. */
#define STALLED_USEC (2 * MG_USEC_PER_SEC)

static const char *const status_names[] = {
        [TRIM_DONE] = "done", [TRIM_DRY_RUN] = "dry-run", [TRIM_TOLD] = "told",
        [TRIM_HELD] = "held", [TRIM_GONE] = "gone",
};
_Static_assert(MG_ELEMENTS(status_names) == _TRIM_STATUS_MAX, "a status has no name");

const char *trim_status_to_string(enum trim_status status) {
        return status_names[status];
}

static struct trim_round *round_free(struct trim_round *round) {
        round->unit->round = NULL;
        list_remove(&round->all);
        round->unit->manager->n_rounds--;
        free(round->steps);
        free(round);
        return NULL;
}

static void tell_handler(const struct trim_round *round, enum trim_status status) {
        struct trim_result result = {
                .status = status,
                .unit = round->unit->name,
                .decision = round->decision,
                .outcome = round->outcome,
                .survey = round->survey,
                .n_told = round->n_told,
                .n_skipped = round->n_skipped,
        };

        if (round->handler)
                round->handler(round->handler_userdata, &result);
}

void trim_measure(struct trim_round *round, uint64_t *ret_footprint) {
        struct unit *unit = round->unit;

        /* A unit that is gone keeps its last numbers: the tick will find out. */
        (void) tick_measure(unit, true);
        *ret_footprint = account_footprint(&unit->memory);
}

void trim_begin_measuring(struct trim_round *round) {
        struct unit *unit = round->unit;

        unit->round_lost_bytes = 0;
        trim_measure(round, &round->outcome.before_bytes);
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

void trim_finish(struct trim_round *round) {
        struct unit *unit = round->unit;
        struct manager *manager = unit->manager;
        struct mg_outcome *outcome = &round->outcome;

        outcome->ended_usec = manager_now(manager);
        outcome->live_growth_bytes = round->live_growth > 0 ? round->live_growth : 0;
        discount_the_lost(round);
        if (outcome->n_asked > 0) {
                learn(round);
                tally_round(&unit->tally, outcome);
                unit->last_round_wall_usec = clock_wall_usec();
                unit->summary_pause_usec = MG_MAX(unit->summary_pause_usec, outcome->pause_usec);
                manager->trims++;
                manager->trimmed_bytes = mg_add_cap(manager->trimmed_bytes, outcome_gain(outcome));
                history_trimmed(&unit->history, outcome);
                tell_journal(round);
                store_save_unit(unit);
        }
        round->peer = NULL;
        tell_handler(round, TRIM_DONE);
        round_free(round);
        tick_trim_ended(manager);
}

static struct trim_round *round_new(struct unit *unit) {
        struct trim_round *round = calloc(1, sizeof(*round));

        if (!round)
                return NULL;
        round->unit = unit;
        round->outcome.started_usec = manager_now(unit->manager);
        round->step_began_usec = round->outcome.started_usec;
        list_append(&unit->manager->rounds, &round->all);
        unit->manager->n_rounds++;
        unit->round = round;
        return round;
}

/* Whom to ask, by what is known of the processes now. */
static int plan(struct trim_round *round, const struct mg_unit_sample *sample) {
        struct unit *unit = round->unit;
        size_t room = MG_MIN(sample->n_processes, (size_t) TRIM_STEPS_MAX);

        round->steps = calloc(room + 1, sizeof(*round->steps));
        if (!round->steps)
                return -ENOMEM;
        round->n_steps =
                        round_plan(&unit->policy, &unit->config, sample, round->steps, room,
                                   &round->n_skipped);
        round->outcome.reason = round->decision.reason;
        round->outcome.expected_bytes = round->decision.expected_bytes;
        return 0;
}

int trim_start(struct unit *unit, const struct mg_decision *decision) {
        struct mg_unit_sample sample;
        struct trim_round *round;
        int r;

        if (unit->round)
                return -EBUSY;
        round = round_new(unit);
        if (!round)
                return -ENOMEM;
        round->decision = *decision;
        tick_fill_sample(unit, &sample);
        r = plan(round, &sample);
        if (r < 0) {
                round_free(round);
                return r;
        }
        unit->due_since_usec = MG_UNKNOWN;
        trim_advance(round);
        return 0;
}

static void answer_and_free(struct trim_round *round, enum trim_status status) {
        tell_handler(round, status);
        round_free(round);
}

/* One-way: what comes of it is measured on the cgroup later, and told in the journal. */
static bool tell_clients(struct trim_round *round) {
        struct unit *unit = round->unit;

        if (round->dry_run || !pressure_stands_in(round->decision.reason))
                return false;
        round->n_told = provider_tell_unit(unit->manager->provider, unit);
        return round->n_told > 0;
}

static void decide_by_hand(struct trim_round *round) {
        struct unit *unit = round->unit;
        struct mg_unit_sample sample;

        (void) tick_measure(unit, false);
        tick_fill_sample(unit, &sample);
        policy_by_hand(&unit->policy, &unit->config, &sample, manager_now(unit->manager),
                       &round->decision);
        round_survey(&unit->policy, &unit->config, &sample, &round->survey);
        if (round->decision.action != MG_ACTION_TRIM && tell_clients(round))
                answer_and_free(round, TRIM_TOLD);
        else if (round->decision.action != MG_ACTION_TRIM || plan(round, &sample) < 0)
                answer_and_free(round, TRIM_HELD);
        else if (round->dry_run)
                answer_and_free(round, TRIM_DRY_RUN);
        else
                trim_advance(round);
}

static void one_has_looked(struct trim_round *round) {
        if (--round->n_looking == 0)
                decide_by_hand(round);
}

static void on_look(struct peer *peer, int status, const struct mg_message *reply, void *userdata) {
        one_has_looked(userdata);
}

static void on_idle_look(struct peer *peer, void *userdata) {
        /* Whatever was asked before is answered: if it was statistics, they are fresh enough. */
        one_has_looked(userdata);
}

static void look_at_all(struct trim_round *round) {
        round->n_looking =
                        1; /* this function's own, so that the first answers do not decide too soon */
        for (struct process *p = process_first(round->unit); p; p = process_next(p)) {
                if (!p->peer || p->peer->state != PEER_READY || p->peer->unresponsive)
                        continue;
                if (peer_is_busy(p->peer)) {
                        peer_when_idle(p->peer, on_idle_look, round);
                        round->n_looking++;
                } else if (peer_may_look(p->peer) && peer_ask_stats(p->peer, on_look, round) >= 0) {
                        round->n_looking++;
                }
        }
        one_has_looked(round);
}

int trim_by_hand(struct unit *unit, bool dry_run, trim_handler handler, void *userdata) {
        struct trim_round *round;

        if (unit->round)
                return -EBUSY;
        round = round_new(unit);
        if (!round)
                return -ENOMEM;
        round->outcome.by_hand = true;
        round->dry_run = dry_run;
        round->handler = handler;
        round->handler_userdata = userdata;
        if (dry_run)
                decide_by_hand(round);
        else
                look_at_all(round);
        return 0;
}

void trim_cancel(struct unit *unit) {
        struct trim_round *round = unit->round;

        if (!round)
                return;
        for (struct process *p = process_first(unit); p; p = process_next(p))
                if (p->peer)
                        peer_forget(p->peer, round);
        answer_and_free(round, TRIM_GONE);
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
