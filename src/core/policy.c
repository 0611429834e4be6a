/* SPDX-License-Identifier: MIT */
/*
 * The decision: conditions in a fixed order, of which the first that fails is the reason to hold. Nothing here
 * changes the state but policy_step(), which lets learn.c take the sample in first. Layer: core; pure.
 */
#include "core/policy.h"

#include "core/learn.h"
#include "core/round.h"

/* One pass over the conditions: what they look at, and what they fill. */
struct deliberation {
        const struct mg_policy_state *state;
        const struct mg_unit_config *config;
        const struct mg_unit_sample *sample;
        struct mg_round_survey survey;
        struct mg_decision *decision;
        uint64_t now_usec;
        uint64_t worth_bytes; /* what the whole unit could give, MaxPause= aside */
        enum mg_reason due;
        bool by_hand;
        bool urgent; /* thresholds and back-offs do not count */
        bool decided;
};

/* The next condition. One that does not apply, or comes after the failing one, is listed all the same. */
static void check(struct deliberation *d, struct mg_condition condition, bool applies, bool holds) {
        condition.state = MG_CONDITION_SKIPPED;
        if (applies && !d->decided)
                condition.state = holds ? MG_CONDITION_HOLDS : MG_CONDITION_FAILS;
        if (condition.state == MG_CONDITION_FAILS) {
                d->decided = true;
                d->decision->reason = condition.reason;
        }
        d->decision->conditions[d->decision->n_conditions++] = condition;
}

static struct mg_condition plain(enum mg_reason reason) {
        return (struct mg_condition){ .reason = reason, .quantity = MG_QUANTITY_NONE };
}

static struct mg_condition quantity(
                enum mg_reason reason,
                enum mg_quantity quantity,
                uint64_t have,
                uint64_t want) {
        return (struct mg_condition){
                .reason = reason, .quantity = quantity, .have = have, .want = want
        };
}

static void check_consent(struct deliberation *d) {
        check(d, plain(MG_REASON_OFF), !d->by_hand, d->config->mode != MG_MODE_OFF);
        check(d, plain(MG_REASON_PAUSED), true, !d->sample->paused);
}

static void check_unit(struct deliberation *d) {
        const struct mg_round_survey *survey = &d->survey;

        check(d, quantity(MG_REASON_NO_AGENT, MG_QUANTITY_COUNT, survey->n_agents, 1), true,
              survey->n_agents > 0);
        check(d, quantity(MG_REASON_NO_STATISTICS, MG_QUANTITY_COUNT, survey->n_statistics, 1),
              true, survey->n_statistics > 0 && d->decision->account.known);
        check(d, plain(MG_REASON_NOT_ACTIVE), true, d->sample->activity == MG_ACTIVITY_ACTIVE);
        check(d,
              quantity(MG_REASON_BREAKER, MG_QUANTITY_USEC, d->state->last_pause_usec,
                       d->config->max_pause_usec),
              !d->by_hand, !d->state->breaker_open);
        check(d, quantity(MG_REASON_CANNOT_TRIM, MG_QUANTITY_COUNT, survey->n_can_trim, 1), true,
              survey->n_can_trim > 0);
        check(d, quantity(MG_REASON_SUSPENDED, MG_QUANTITY_COUNT, survey->n_willing, 1), true,
              survey->n_willing > 0);
}

/* What the last attempt did not bring, also where the program has taken that into use since, and so nothing was seen to be left. */
static uint64_t not_given_bytes(const struct mg_policy_state *state) {
        uint64_t kept = mg_sub_floor(state->last.asked_bytes, state->last_gain_bytes);

        return MG_MAX(state->stuck_bytes, kept);
}

/*
 * Grown beyond what the back-off is about: for a pinned heap beyond what the last attempt left; for one that took its gain
 * again, beyond what it had before, by a quarter of the gain. Churn stays within that; retention that races does not. Nor does who
 * takes memory again at once take it while asleep: one that has been so for as long as regrowth is judged has stopped.
 */
static bool has_new_evidence(const struct deliberation *d) {
        const struct mg_policy_state *state = d->state;
        /* What the last attempt left is known of those alone who were asked. */
        uint64_t retained =
                        MG_MIN(d->decision->account.retained_bytes, d->survey.fits_retained_bytes);
        uint64_t pinned = not_given_bytes(state);
        uint64_t margin = MG_MAX(d->config->min_gain_bytes, pinned / 8);

        if (state->backoff_reason == MG_REASON_REGROWTH) {
                if (learn_is_idle(state, d->config->cooldown_usec, d->now_usec))
                        return true;
                margin = MG_MAX(d->config->min_gain_bytes, state->last_gain_bytes / 4);
                return state->last.asked_bytes > 0 &&
                       retained > mg_add_cap(state->last.asked_bytes, margin);
        }
        return state->backoff_reason == MG_REASON_PINNED && retained > mg_add_cap(pinned, margin);
}

static bool is_backing_off(const struct deliberation *d) {
        return d->state->backoff_usec > 0 && d->now_usec < d->state->backoff_until_usec &&
               !has_new_evidence(d);
}

static void check_worth(struct deliberation *d) {
        const struct mg_policy_state *state = d->state;
        enum mg_reason backoff = state->backoff_usec > 0 ? state->backoff_reason : MG_REASON_PINNED;
        uint64_t min_gain = d->by_hand ? 1 : d->config->min_gain_bytes;

        check(d,
              quantity(MG_REASON_BELOW_THRESHOLD, MG_QUANTITY_BYTES,
                       d->decision->account.retained_bytes, d->decision->trim_above_bytes),
              !d->urgent, d->decision->account.retained_bytes > d->decision->trim_above_bytes);
        check(d,
              quantity(backoff, MG_QUANTITY_USEC,
                       state->backoff_usec > 0 ? mg_sub_floor(d->now_usec, state->last_trim_usec)
                                               : 0,
                       state->backoff_usec),
              !d->urgent && state->backoff_usec > 0, !is_backing_off(d));
        check(d, quantity(MG_REASON_BELOW_MIN_GAIN, MG_QUANTITY_BYTES, d->worth_bytes, min_gain),
              true, d->worth_bytes >= min_gain);
}

static bool fits_max_pause(const struct deliberation *d) {
        if (d->survey.n_skipped == 0)
                return true;
        if (d->survey.n_fits == 0)
                return false;
        return d->by_hand || d->decision->expected_bytes >= d->config->min_gain_bytes;
}

static bool when_allows(const struct deliberation *d) {
        uint32_t when = d->config->when;
        uint64_t checkpoint = d->sample->checkpoint_at_usec;

        if (when & MG_WHEN_ANY)
                return true;
        if ((when & MG_WHEN_IDLE) && learn_is_idle(d->state, 0, d->now_usec))
                return true;
        if ((when & MG_WHEN_PRESSURE) && d->sample->under_pressure)
                return true;
        return (when & MG_WHEN_CHECKPOINT) && checkpoint != MG_UNKNOWN &&
               mg_sub_floor(d->now_usec, checkpoint) <= MG_CHECKPOINT_FRESH_USEC &&
               (d->state->last_trim_usec == MG_UNKNOWN || d->state->last_trim_usec < checkpoint);
}

static void check_moment(struct deliberation *d) {
        const struct mg_policy_state *state = d->state;
        uint64_t watchdog = d->sample->watchdog_usec;
        uint64_t pause = MG_MAX(state->last_pause_usec, d->decision->predicted_pause_usec);
        bool cooling = d->now_usec < state->cooldown_until_usec;

        check(d,
              quantity(MG_REASON_COOLDOWN, MG_QUANTITY_USEC,
                       cooling ? mg_sub_floor(d->now_usec, state->last_trim_usec)
                               : d->config->cooldown_usec,
                       d->config->cooldown_usec),
              !d->by_hand && state->last_trim_usec != MG_UNKNOWN, !cooling);
        check(d, quantity(MG_REASON_WATCHDOG, MG_QUANTITY_USEC, watchdog, mg_scale(pause, 4, 1)),
              watchdog != MG_UNKNOWN && watchdog > 0, watchdog >= mg_scale(pause, 4, 1));
        check(d,
              quantity(MG_REASON_MAX_PAUSE, MG_QUANTITY_USEC, d->decision->predicted_pause_usec,
                       d->config->max_pause_usec),
              true, fits_max_pause(d));
        check(d, plain(MG_REASON_WHEN), !d->by_hand, when_allows(d));
        check(d, quantity(MG_REASON_BUSY, MG_QUANTITY_COUNT, d->survey.n_busy, 0), true,
              d->survey.n_busy == 0);
        check(d, plain(MG_REASON_OBSERVED), !d->by_hand, d->config->mode == MG_MODE_TRIM);
}

/* Why a trim would be due, and what it would bring. */
static void find_due(struct deliberation *d) {
        const struct mg_policy_state *state = d->state;
        const struct mg_account *account = &d->decision->account;
        bool mass_free = state->mass_free_at_usec != MG_UNKNOWN;
        bool ran_out = state->backoff_usec > 0 && d->now_usec >= state->backoff_until_usec;
        /* What makes it worth a trim is only that stuck memory was halved. */
        bool halved = account->freeable_bytes >= d->config->min_gain_bytes &&
                      mg_sub_floor(account->retained_bytes, state->stuck_bytes) <
                                      d->config->min_gain_bytes;

        d->worth_bytes = account->freeable_bytes;
        if (d->by_hand) {
                d->due = MG_REASON_BY_HAND;
                d->worth_bytes = account->reach_bytes;
        } else if (d->sample->under_pressure) {
                d->due = MG_REASON_PRESSURE;
        } else if (mass_free) {
                d->due = MG_REASON_MASS_FREE;
        } else if (ran_out || halved) {
                d->due = MG_REASON_PROBE;
                if (ran_out && state->backoff_reason == MG_REASON_PINNED)
                        d->worth_bytes = account->reach_bytes;
        }
        /* What was freed just now is not what earlier rounds could not get. */
        if (mass_free) {
                uint64_t freed = MG_MIN(state->mass_free_bytes, account->reach_bytes);

                d->worth_bytes = MG_MAX(d->worth_bytes, freed);
        }
        d->worth_bytes = MG_MIN(d->worth_bytes, d->survey.willing_bytes);
        d->urgent = d->by_hand || d->sample->under_pressure || mass_free;
}

static uint64_t hold_until(const struct deliberation *d) {
        uint64_t until = d->state->cooldown_until_usec;

        if (!d->urgent && is_backing_off(d))
                until = MG_MAX(until, d->state->backoff_until_usec);
        return until > d->now_usec ? until : 0;
}

static void deliberate(struct deliberation *d) {
        struct mg_decision *decision = d->decision;
        const struct mg_account *account = &decision->account;
        uint64_t share = mg_scale(account->live_bytes, d->config->trim_above_permyriad, 10000);

        decision->action = MG_ACTION_HOLD;
        decision->trim_above_bytes = MG_MAX(d->config->trim_above_bytes, share);
        round_survey(d->state, d->config, d->sample, &d->survey);
        find_due(d);
        decision->expected_bytes = MG_MIN(d->worth_bytes, d->survey.fits_bytes);
        decision->predicted_pause_usec = d->survey.longest_fitting_usec;
        if (d->survey.n_fits == 0 && d->survey.shortest_usec != MG_UNKNOWN)
                decision->predicted_pause_usec = d->survey.shortest_usec;
        decision->hold_until_usec = hold_until(d);
        /* What a suspended program keeps is no trim's business now, and is not live either. */
        decision->pressure_alert =
                        d->sample->under_pressure && account->known &&
                        MG_MAX(d->worth_bytes, account->freeable_bytes) < d->config->min_gain_bytes;

        check_consent(d);
        check_unit(d);
        check_worth(d);
        check_moment(d);
        if (!d->decided) {
                decision->action = MG_ACTION_TRIM;
                decision->reason = d->due;
        }
        decision->would_trim = d->decided && decision->reason == MG_REASON_OBSERVED;
}

/*
 * Counted once for each trim that would have been: again only when the wish has gone in
 * between, as it would have after a real trim, and a cool-down has passed.
 */
static void count_would_trim(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_decision *decision,
                uint64_t now_usec) {
        if (decision->would_trim && !state->would_trim_counted) {
                state->would_trim++;
                state->would_trim_bytes =
                                mg_add_cap(state->would_trim_bytes, decision->expected_bytes);
                state->would_trim_at_usec = now_usec;
                state->would_trim_counted = true;
        } else if (!decision->would_trim &&
                   mg_sub_floor(now_usec, state->would_trim_at_usec) >= config->cooldown_usec) {
                state->would_trim_counted = false;
        }
}

static bool has_agent(const struct mg_unit_sample *sample) {
        for (size_t i = 0; i < sample->n_processes; i++)
                if (sample->processes[i].has_agent)
                        return true;
        return false;
}

static bool update_verdict(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                const struct mg_account *account,
                uint64_t now_usec) {
        struct mg_verdict_hints hints = {
                .has_agent = has_agent(sample),
                .has_statistics = account->known,
                .pinned = learn_is_pinned(state, config, account),
                .refilled = state->refilled,
                .trimmed = state->trims > 0 &&
                           mg_sub_floor(now_usec, state->last_trim_usec) <=
                                           MG_TREND_FLOORS_MAX * MG_USEC_PER_MIN,
        };

        return verdict_update(&state->verdict, account, &hints, now_usec);
}

bool policy_step(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                uint64_t now_usec,
                struct mg_decision *ret_decision) {
        struct mg_decision decision = {};
        struct deliberation d = {
                .state = state,
                .config = config,
                .sample = sample,
                .decision = &decision,
                .now_usec = now_usec,
                .due = MG_REASON_THRESHOLD,
        };
        bool changed;

        account_unit(sample, 0, &decision.account);
        learn_sample(state, config, sample, &decision.account, now_usec);
        changed = update_verdict(state, config, sample, &decision.account, now_usec);
        deliberate(&d);
        count_would_trim(state, config, &decision, now_usec);
        *ret_decision = decision;
        return changed;
}

void policy_by_hand(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                uint64_t now_usec,
                struct mg_decision *ret_decision) {
        struct mg_decision decision = {};
        struct deliberation d = {
                .state = state,
                .config = config,
                .sample = sample,
                .decision = &decision,
                .now_usec = now_usec,
                .by_hand = true,
        };

        account_unit(sample, policy_stuck(state, config, now_usec), &decision.account);
        deliberate(&d);
        *ret_decision = decision;
}

bool policy_wants_cpu(const struct mg_policy_state *state, const struct mg_unit_config *config) {
        return (config->when & MG_WHEN_IDLE) ||
               (state->backoff_usec > 0 && state->backoff_reason == MG_REASON_REGROWTH);
}
