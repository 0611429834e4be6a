/* SPDX-License-Identifier: MIT */
/*
 * What the policy learns: from each finished round (gain, pinned, stuck, pauses) and from each sample after it
 * (regrowth, refilled huge pages, mass frees, idleness). Every figure has a bound and a way to be
 * forgotten. Layer: core; pure.
 */
#include "core/learn.h"

#include "base/hash.h"

/* Regrowth: this share of the gain taken again. */
#define REGROWTH_PERCENT 80
/* Refilled: this share back, of which at least half by huge pages. */
#define REFILLED_PERCENT 50
/* Pinned: under this share of what was expected. */
#define PINNED_PERCENT 10

void policy_init(struct mg_policy_state *state) {
        *state = (struct mg_policy_state){
                .last_trim_usec = MG_UNKNOWN,
                .last_live_bytes = MG_UNKNOWN,
                .last_live_at_usec = MG_UNKNOWN,
                .mass_free_at_usec = MG_UNKNOWN,
                .checkpoint_seen_usec = MG_UNKNOWN,
                .after_trim_footprint_bytes = MG_UNKNOWN,
                .after_trim_thp_bytes = MG_UNKNOWN,
                .pause_usec_per_gib = MG_UNKNOWN,
                .pause_usec_per_million_chunks = MG_UNKNOWN,
                .rates_at_usec = MG_UNKNOWN,
                .statistics_usec = MG_UNKNOWN,
                .statistics_bytes = MG_UNKNOWN,
                .regrowth_checked = true,
                .refill_checked = true,
                .idle_since_usec = MG_UNKNOWN,
                .last_cpu_usage_usec = MG_UNKNOWN,
                .last_cpu_at_usec = MG_UNKNOWN,
                .last_sample_usec = MG_UNKNOWN,
        };
        verdict_init(&state->verdict);
}

uint64_t outcome_gain(const struct mg_outcome *outcome) {
        uint64_t before = mg_add_cap(outcome->before_bytes, outcome->live_growth_bytes);

        if (outcome->before_bytes == MG_UNKNOWN || outcome->after_bytes == MG_UNKNOWN)
                return 0;
        return mg_sub_floor(before, outcome->after_bytes);
}

enum mg_outcome_result outcome_result(const struct mg_outcome *outcome) {
        if (outcome->n_answered == 0)
                return MG_OUTCOME_FAILED;
        if (outcome->n_refused >= outcome->n_answered)
                return MG_OUTCOME_REFUSED;
        return outcome->n_refused > 0 || outcome->n_answered < outcome->n_asked ? MG_OUTCOME_PARTIAL
                                                                                : MG_OUTCOME_DONE;
}

static uint64_t backoff_limit(const struct mg_unit_config *config) {
        return MG_MAX(config->cooldown_max_usec, config->cooldown_usec);
}

static void back_off(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                enum mg_reason reason) {
        /* CooldownSec=0 is allowed, and doubling nothing would never back off. */
        uint64_t least = MG_MAX(config->cooldown_usec, MG_USEC_PER_SEC);
        uint64_t most = MG_MAX(backoff_limit(config), MG_USEC_PER_SEC);
        uint64_t length = MG_MAX(state->backoff_usec, least);

        length = mg_add_cap(length, length);
        state->backoff_usec = MG_MIN(length, most);
        state->backoff_until_usec = mg_add_cap(state->last_trim_usec, state->backoff_usec);
        state->backoff_reason = reason;
}

static void end_backoff(struct mg_policy_state *state) {
        state->backoff_usec = 0;
        state->backoff_until_usec = 0;
        state->backoff_reason = MG_REASON_THRESHOLD;
}

uint64_t policy_stuck(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config,
                uint64_t now_usec) {
        uint64_t period = MG_MAX(config->cooldown_max_usec, MG_USEC_PER_SEC);
        uint64_t halvings = mg_sub_floor(now_usec, state->stuck_at_usec) / period;

        return halvings < 64 ? state->stuck_bytes >> halvings : 0;
}

bool learn_is_pinned(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_account *account) {
        return state->pinned && account->retained_bytes >= config->min_gain_bytes &&
               account->retained_bytes >= state->stuck_bytes / 2;
}

bool learn_is_idle(const struct mg_policy_state *state, uint64_t for_usec, uint64_t now_usec) {
        return state->idle_since_usec != MG_UNKNOWN &&
               mg_sub_floor(now_usec, state->idle_since_usec) >= MG_MAX(for_usec, MG_IDLE_USEC);
}

/* A clock that went back leaves no deadline out of reach and no past in the future. */
static void rebase_times(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                uint64_t now_usec) {
        uint64_t *past[] = {
                &state->stuck_at_usec,        &state->last_trim_usec,    &state->mass_free_at_usec,
                &state->checkpoint_seen_usec, &state->idle_since_usec,   &state->last_cpu_at_usec,
                &state->would_trim_at_usec,   &state->last_live_at_usec, &state->rates_at_usec,
        };

        for (size_t i = 0; i < MG_ELEMENTS(past); i++)
                if (*past[i] != MG_UNKNOWN)
                        *past[i] = MG_MIN(*past[i], now_usec);
        state->cooldown_until_usec = MG_MIN(
                        state->cooldown_until_usec, mg_add_cap(now_usec, config->cooldown_usec));
        state->backoff_until_usec = MG_MIN(
                        state->backoff_until_usec, mg_add_cap(now_usec, state->backoff_usec));
}

static void settle_stuck(
                struct mg_policy_state *state,
                const struct mg_account *account,
                uint64_t now_usec) {
        uint64_t left = account->retained_bytes;

        if (!state->stuck_pending || !account->known)
                return;
        /* Processes that were not asked, because their pause is too long, have kept theirs for another reason. */
        if (state->last.asked_bytes > 0)
                left = MG_MIN(left, mg_sub_floor(state->last.asked_bytes, state->last_gain_bytes));
        state->stuck_bytes = left;
        state->stuck_at_usec = now_usec;
        state->stuck_pending = false;
}

/* Whether huge pages explain at least half of a RISE of the footprint since the last round. */
static bool is_refill(
                const struct mg_policy_state *state,
                const struct mg_unit_sample *sample,
                uint64_t rise) {
        uint64_t huge = sample->memory.anon_thp_bytes;

        if (huge == MG_UNKNOWN || state->after_trim_thp_bytes == MG_UNKNOWN)
                return false;
        return mg_sub_floor(huge, state->after_trim_thp_bytes) >= rise / 2;
}

static void check_regrowth(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                uint64_t rise,
                uint64_t since_usec) {
        bool refill = rise > 0 && is_refill(state, sample, rise);

        if (!state->refill_checked && refill &&
            rise >= mg_scale(state->last_gain_bytes, REFILLED_PERCENT, 100)) {
                back_off(state, config, MG_REASON_REFILLED);
                state->refilled = true;
                state->refill_checked = state->regrowth_checked = true;
        }
        if (state->regrowth_checked)
                return;
        if (since_usec > config->cooldown_usec) {
                state->regrowth_checked = true;
                if (state->backoff_reason == MG_REASON_REGROWTH)
                        end_backoff(state);
        } else if (rise > 0 && rise >= mg_scale(state->last_gain_bytes, REGROWTH_PERCENT, 100)) {
                back_off(state, config, MG_REASON_REGROWTH);
                state->regrowth_checked = true;
        }
}

static void watch_after_trim(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                uint64_t now_usec) {
        uint64_t footprint = account_footprint(&sample->memory);
        uint64_t since = mg_sub_floor(now_usec, state->last_trim_usec);

        if (state->last_trim_usec == MG_UNKNOWN)
                return;
        if (state->after_trim_thp_bytes == MG_UNKNOWN)
                state->after_trim_thp_bytes = sample->memory.anon_thp_bytes;
        if (footprint != MG_UNKNOWN && state->after_trim_footprint_bytes != MG_UNKNOWN)
                check_regrowth(state, config, sample,
                               mg_sub_floor(footprint, state->after_trim_footprint_bytes), since);
        /* Filling up by khugepaged can take hours; after CooldownMaxSec= without it the unit is believed. */
        if (!state->refill_checked && since > backoff_limit(config)) {
                state->refill_checked = true;
                state->refilled = false;
                if (state->backoff_reason == MG_REASON_REFILLED)
                        end_backoff(state);
        }
}

struct told_live {
        uint64_t bytes;
        uint64_t at_usec; /* of the oldest statistics */
        uint32_t who;     /* see last_live_who */
};

/* In any order the same sum. */
static uint32_t hash_process(const struct mg_process_sample *process) {
        uint64_t hash =
                        hash_add(MG_HASH_INIT, (const char *) &process->start_time,
                                 sizeof(process->start_time));

        return (uint32_t) hash_add(hash, (const char *) &process->pid, sizeof(process->pid));
}

/* As the agents last said, without the growth that account_unit() adds: only told figures show a fall. */
static struct told_live told_live(const struct mg_unit_sample *sample) {
        struct told_live told = { .at_usec = MG_UNKNOWN };
        size_t n = 0;

        for (size_t i = 0; i < sample->n_processes; i++) {
                if (account_process_retained(&sample->processes[i]) == MG_UNKNOWN)
                        continue;
                told.bytes = mg_add_cap(told.bytes, sample->processes[i].live_bytes);
                told.at_usec = MG_MIN(told.at_usec, sample->processes[i].stats_at_usec);
                told.who += hash_process(&sample->processes[i]);
                n++;
        }
        if (n > 0 && told.who == 0)
                told.who = 1;
        return told;
}

/*
 * How far live fell since the last statistics. What a round in between brought beyond what they promised was freed before it,
 * and is served.
 */
static uint64_t fall_of_live(const struct mg_policy_state *state, const struct told_live *told) {
        uint64_t fall = mg_sub_floor(state->last_live_bytes, told->bytes);

        if (told->who == 0 || told->who != state->last_live_who ||
            state->last_live_bytes == MG_UNKNOWN)
                return 0;
        if (state->last_trim_usec == MG_UNKNOWN || state->last_live_at_usec > state->last_trim_usec)
                return fall;
        return mg_sub_floor(fall, mg_sub_floor(state->last_gain_bytes, state->last.expected_bytes));
}

/*
 * A burst as large as the last gain, of which the last gain was taken again at once, would make a loop: such a unit has to
 * free twice as much. One that leaves its gains alone may sweep the same amount each time, or half of it: the rest is everyday
 * coming and going, for which there is TrimAbove=.
 */
static uint64_t mass_free_bar(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config) {
        uint64_t bar = MG_MAX(config->min_gain_bytes, state->mass_free_bar_bytes);
        bool regrown = state->backoff_usec > 0 && (state->backoff_reason == MG_REASON_REGROWTH ||
                                                   state->backoff_reason == MG_REASON_REFILLED);

        if (!regrown)
                return MG_MAX(bar, state->last_gain_bytes / 2);
        return MG_MAX(bar, mg_add_cap(state->last_gain_bytes, state->last_gain_bytes));
}

static void watch_live(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                uint64_t now_usec) {
        struct told_live told = told_live(sample);
        uint64_t fall = fall_of_live(state, &told);

        if (fall > mass_free_bar(state, config)) {
                if (state->mass_free_at_usec != MG_UNKNOWN)
                        fall = mg_add_cap(fall, state->mass_free_bytes);
                state->mass_free_at_usec = now_usec;
                state->mass_free_bytes = fall;
        }
        state->last_live_bytes = told.who != 0 ? told.bytes : MG_UNKNOWN;
        state->last_live_at_usec = told.at_usec;
        state->last_live_who = told.who;
}

static void watch_checkpoint(
                struct mg_policy_state *state,
                const struct mg_unit_sample *sample,
                uint64_t now_usec) {
        uint64_t at = sample->checkpoint_at_usec;

        if (at == MG_UNKNOWN || at == state->checkpoint_seen_usec)
                return;
        /* One from before a restart of the daemon is history. */
        if (mg_sub_floor(now_usec, at) <= MG_CHECKPOINT_FRESH_USEC) {
                if (state->mass_free_at_usec == MG_UNKNOWN)
                        state->mass_free_bytes = 0;
                state->mass_free_at_usec = now_usec;
        }
        state->checkpoint_seen_usec = at;
}

/* What was freed and not served within a cool-down has found another use. */
static void expire_mass_free(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                uint64_t now_usec) {
        uint64_t lasts = mg_add_cap(config->cooldown_usec, 2 * MG_CHECKPOINT_FRESH_USEC);

        if (state->mass_free_at_usec != MG_UNKNOWN &&
            mg_sub_floor(now_usec, state->mass_free_at_usec) > lasts)
                state->mass_free_at_usec = MG_UNKNOWN;
}

static void watch_cpu(struct mg_policy_state *state, uint64_t usage_usec, uint64_t now_usec) {
        uint64_t then = state->last_cpu_at_usec;
        uint64_t used = mg_sub_floor(usage_usec, state->last_cpu_usage_usec);

        if (usage_usec == MG_UNKNOWN) {
                state->idle_since_usec = state->last_cpu_at_usec = MG_UNKNOWN;
                return;
        }
        /* Ticks brought forward by pressure are too short for a share to mean anything. */
        if (then != MG_UNKNOWN && mg_sub_floor(now_usec, then) < MG_USEC_PER_SEC)
                return;
        if (then != MG_UNKNOWN && usage_usec >= state->last_cpu_usage_usec) {
                if (used > mg_scale(now_usec - then, MG_IDLE_PERMYRIAD, 10000))
                        state->idle_since_usec = MG_UNKNOWN;
                else if (state->idle_since_usec == MG_UNKNOWN)
                        state->idle_since_usec = then;
        }
        state->last_cpu_usage_usec = usage_usec;
        state->last_cpu_at_usec = now_usec;
}

void learn_sample(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                struct mg_account *account,
                uint64_t now_usec) {
        if (state->last_sample_usec != MG_UNKNOWN && now_usec < state->last_sample_usec)
                rebase_times(state, config, now_usec);
        state->last_sample_usec = now_usec;
        settle_stuck(state, account, now_usec);
        watch_after_trim(state, config, sample, now_usec);
        watch_live(state, config, sample, now_usec);
        watch_checkpoint(state, sample, now_usec);
        expire_mass_free(state, config, now_usec);
        watch_cpu(state, sample->cpu_usage_usec, now_usec);
        learn_relax_rates(state, config, now_usec);
        account_set_stuck(account, policy_stuck(state, config, now_usec));
}

static void learn_pinned(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                bool was_mass_free) {
        state->stuck_pending = true;
        state->pinned = true;
        state->refilled = false;
        state->regrowth_checked = state->refill_checked = true;
        back_off(state, config, MG_REASON_PINNED);
        /* A mass free ignores the back-off, so it needs one of its own. */
        if (was_mass_free)
                state->mass_free_bar_bytes =
                                mg_add_cap(state->mass_free_bytes, state->mass_free_bytes);
}

static void learn_success(struct mg_policy_state *state) {
        bool refill_absent = !state->refill_checked;

        state->stuck_pending = true;
        state->pinned = false;
        state->mass_free_bar_bytes = 0;
        if (state->backoff_reason == MG_REASON_PINNED ||
            state->backoff_reason == MG_REASON_UNREACHABLE ||
            (state->backoff_reason == MG_REASON_REFILLED && refill_absent)) {
                state->refilled = state->refilled && !refill_absent;
                end_backoff(state);
        }
        state->regrowth_checked = state->refill_checked = false;
}

/* A trim by hand may go after less than MinGain=: that it brings less says nothing of the rest. */
static bool proves_nothing(
                const struct mg_unit_config *config,
                const struct mg_outcome *outcome,
                uint64_t gain) {
        return outcome->expected_bytes < config->min_gain_bytes && gain < config->min_gain_bytes;
}

static bool is_pinned_result(
                const struct mg_unit_config *config,
                const struct mg_outcome *outcome,
                uint64_t gain) {
        return gain < config->min_gain_bytes ||
               gain < mg_scale(outcome->expected_bytes, PINNED_PERCENT, 100);
}

static bool learn_pause(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_outcome *outcome,
                uint64_t now_usec) {
        if (outcome->pause_usec == MG_UNKNOWN)
                return false;
        state->last_pause_usec = outcome->pause_usec;
        learn_rates(state, outcome);
        state->rates_at_usec = now_usec;
        if (outcome->pause_usec <= config->max_pause_usec || state->breaker_open)
                return false;
        state->breaker_open = true;
        return true;
}

bool policy_learn(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_outcome *outcome,
                uint64_t now_usec) {
        bool was_mass_free = state->mass_free_at_usec != MG_UNKNOWN && state->mass_free_bytes > 0;
        uint64_t gain = outcome_gain(outcome);

        state->last = *outcome;
        state->last_trim_usec = now_usec;
        state->cooldown_until_usec = mg_add_cap(now_usec, config->cooldown_usec);
        if (outcome->n_answered <= outcome->n_refused) {
                back_off(state, config, MG_REASON_UNREACHABLE);
                state->regrowth_checked = state->refill_checked = true;
                return false;
        }
        state->trims++;
        state->trimmed_bytes = mg_add_cap(state->trimmed_bytes, gain);
        state->last_gain_bytes = gain;
        state->after_trim_footprint_bytes = outcome->after_bytes;
        state->after_trim_thp_bytes = outcome->anon_thp_after_bytes;
        if (outcome->anon_thp_after_bytes == 0)
                state->after_trim_thp_bytes = MG_UNKNOWN;
        if (proves_nothing(config, outcome, gain))
                state->regrowth_checked = state->refill_checked = true;
        else if (is_pinned_result(config, outcome, gain))
                learn_pinned(state, config, was_mass_free);
        else
                learn_success(state);
        state->mass_free_at_usec = MG_UNKNOWN;
        return learn_pause(state, config, outcome, now_usec);
}

void policy_resume(struct mg_policy_state *state) {
        end_backoff(state);
        if (!state->breaker_open)
                return;
        /*
         * The rates that the overrun taught would hold every further trim back, and so never be corrected. Resuming
         * means: try once more; the next overrun opens the breaker again.
         */
        state->breaker_open = false;
        state->pause_usec_per_gib = MG_UNKNOWN;
        state->pause_usec_per_million_chunks = MG_UNKNOWN;
        state->last_pause_usec = 0;
}
