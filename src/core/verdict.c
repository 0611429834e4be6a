/* SPDX-License-Identifier: MIT */
/*
 * Why a unit's memory grows, in one word. What floors say is asked once a minute, when one is
 * finished; what the policy knows by itself, at each sample. Layer: core; pure.
 */
#include "core/verdict.h"

#define HOUR_FLOORS 60

/* Growth: 2 % of anon an hour, but never under 16 MiB (noise) and never over 256 MiB (a large unit leaks too). */
#define GROWTH_PERCENT   2
#define GROWTH_MIN_BYTES (16 * MG_MIB)
#define GROWTH_MAX_BYTES (256 * MG_MIB)

/* The application holds it: live is this share of anon. */
#define HELD_PERCENT       90
#define HELD_LEAVE_PERCENT 85

/*
 * Bursts at the window's end tilt the line and leave the floors where they were; a sawtooth lifts the floors for a while, and reaches no
 * new peak. Both have to rise by this part of what the slope says; a straight line's first and last third are two thirds apart, its
 * peaks one.
 */
#define RISE_PART 6

/* Under our own trims anon is a sawtooth as well, whose low points alone tell. */
#define RISE_PART_TRIMMED 2

void verdict_init(struct mg_verdict_state *state) {
        *state = (struct mg_verdict_state){
                .verdict = MG_VERDICT_LEARNING,
                .candidate = MG_VERDICT_LEARNING,
                .answered_usec = MG_UNKNOWN,
        };
        trend_init(&state->anon);
        trend_init(&state->live);
        trend_init(&state->other);
}

static bool says_growth(enum mg_verdict verdict) {
        return verdict == MG_VERDICT_RETENTION || verdict == MG_VERDICT_LIVE_GROWTH ||
               verdict == MG_VERDICT_LEAK_SUSPECTED || verdict == MG_VERDICT_NOT_MALLOC;
}

/* By more than a PART of what the slope says. */
static bool rose(
                const struct mg_slope *slope,
                uint64_t from_bytes,
                uint64_t to_bytes,
                uint64_t part) {
        uint64_t rise = mg_scale((uint64_t) slope->bytes_per_hour, slope->minutes, HOUR_FLOORS);

        if (from_bytes == MG_UNKNOWN || to_bytes == MG_UNKNOWN)
                return false;
        return mg_sub_floor(to_bytes, from_bytes) > rise / part;
}

/* Believed at the full measure and given up below half of it, so that noise at the edge does not flap. */
static bool is_growth(
                const struct mg_verdict_state *state,
                const struct mg_slope *slope,
                uint64_t anon_bytes,
                bool trimmed) {
        uint64_t least = mg_scale(anon_bytes, GROWTH_PERCENT, 100);
        bool believed = says_growth(state->verdict);

        least = MG_MAX(least, GROWTH_MIN_BYTES);
        least = MG_MIN(least, GROWTH_MAX_BYTES);
        least = MG_MAX(least, 2 * slope->standard_error) / (believed ? 2 : 1);
        if (slope->bytes_per_hour <= 0 || (uint64_t) slope->bytes_per_hour <= least ||
            !rose(slope, slope->first_third_floor_bytes, slope->last_third_floor_bytes,
                  trimmed ? RISE_PART_TRIMMED : RISE_PART))
                return false;
        return believed ||
               rose(slope, slope->earlier_peak_bytes, slope->last_third_peak_bytes, RISE_PART);
}

/* The last quarter of an hour rises clearly less than half as fast as the whole: it has levelled out. */
static bool has_plateau(const struct mg_trend *trend, const struct mg_slope *whole) {
        struct mg_slope recent;

        if (trend_slope(trend, MG_TREND_FLOORS_MIN, &recent) < 0)
                return false;
        return recent.bytes_per_hour + 2 * (int64_t) recent.standard_error <
               whole->bytes_per_hour / 2;
}

static int64_t slope_or_zero(const struct mg_trend *trend, struct mg_slope *ret_slope) {
        *ret_slope = (struct mg_slope){};
        (void) trend_slope(trend, 0, ret_slope);
        return ret_slope->bytes_per_hour;
}

/* Our own trims take anon down under a leak, so anon need not grow where there were some. */
static bool is_live_growth(
                struct mg_verdict_state *state,
                uint64_t anon_bytes,
                const struct mg_verdict_hints *hints,
                bool anon_grows) {
        struct mg_slope live;
        struct mg_slope other;
        int64_t rest = state->slope.bytes_per_hour - slope_or_zero(&state->live, &live) -
                       slope_or_zero(&state->other, &other);

        if (anon_grows)
                return live.bytes_per_hour > rest && live.bytes_per_hour > other.bytes_per_hour;
        return hints->trimmed && is_growth(state, &live, anon_bytes, false);
}

static enum mg_verdict answer_growth(
                struct mg_verdict_state *state,
                uint64_t anon_bytes,
                const struct mg_verdict_hints *hints) {
        bool anon_grows = is_growth(state, &state->slope, anon_bytes, hints->trimmed);
        struct mg_slope live;
        struct mg_slope other;
        int64_t rest;

        if (is_live_growth(state, anon_bytes, hints, anon_grows)) {
                slope_or_zero(&state->live, &live);
                if (has_plateau(&state->live, &live))
                        state->live_growth_floors = 0;
                else
                        state->live_growth_floors++;
                return state->live_growth_floors > HOUR_FLOORS ? MG_VERDICT_LEAK_SUSPECTED
                                                               : MG_VERDICT_LIVE_GROWTH;
        }
        state->live_growth_floors = 0;
        if (!anon_grows)
                return MG_VERDICT_FLAT;
        rest = state->slope.bytes_per_hour - slope_or_zero(&state->live, &live) -
               slope_or_zero(&state->other, &other);
        return other.bytes_per_hour > rest ? MG_VERDICT_NOT_MALLOC : MG_VERDICT_RETENTION;
}

/*
 * Compared by the means of the floors, so that a cache which is emptied now and then is not held at its
 * peaks alone; and left only some way below, so that a share at the edge does not flap.
 */
static bool is_held(const struct mg_verdict_state *state) {
        uint64_t percent = state->verdict == MG_VERDICT_HELD ? HELD_LEAVE_PERCENT : HELD_PERCENT;
        uint64_t live = trend_mean(&state->live);
        uint64_t anon = trend_mean(&state->anon);

        return live != MG_UNKNOWN && anon != MG_UNKNOWN && live >= mg_scale(anon, percent, 100);
}

static enum mg_verdict answer_from_floors(
                struct mg_verdict_state *state,
                const struct mg_account *account,
                const struct mg_verdict_hints *hints) {
        uint64_t anon = mg_add_cap(account->anon_bytes, account->swap_bytes);
        enum mg_verdict verdict;
        struct mg_slope live;

        if (!state->slope_known || trend_slope(&state->live, 0, &live) < 0)
                return MG_VERDICT_LEARNING;
        verdict = answer_growth(state, anon, hints);
        return verdict == MG_VERDICT_FLAT && is_held(state) ? MG_VERDICT_HELD : verdict;
}

bool verdict_says_nothing(enum mg_verdict verdict) {
        return verdict == MG_VERDICT_LEARNING || verdict == MG_VERDICT_NO_AGENT ||
               verdict == MG_VERDICT_NO_STATISTICS;
}

/* What needs no floors, or _MG_VERDICT_MAX. */
static enum mg_verdict answer_from_hints(const struct mg_verdict_hints *hints) {
        if (!hints->has_agent)
                return MG_VERDICT_NO_AGENT;
        if (!hints->has_statistics)
                return MG_VERDICT_NO_STATISTICS;
        if (hints->refilled)
                return MG_VERDICT_REFILLED;
        if (hints->pinned)
                return MG_VERDICT_PINNED;
        return _MG_VERDICT_MAX;
}

static bool answer(struct mg_verdict_state *state, enum mg_verdict verdict) {
        bool believed = verdict == state->candidate && verdict != state->verdict;

        state->candidate = verdict;
        if (believed)
                state->verdict = verdict;
        return believed;
}

/* An agent that has answered meanwhile makes these untrue at once, whatever the floors will say. */
static bool is_over(enum mg_verdict verdict) {
        return verdict == MG_VERDICT_NO_AGENT || verdict == MG_VERDICT_NO_STATISTICS;
}

static bool add_floors(
                struct mg_verdict_state *state,
                const struct mg_account *account,
                uint64_t now_usec) {
        uint64_t total = mg_add_cap(account->anon_bytes, account->swap_bytes);
        bool closed = trend_add(&state->anon, total, now_usec);

        if (account->known) {
                trend_add(&state->live, account->live_bytes, now_usec);
                trend_add(&state->other, account->other_bytes, now_usec);
        }
        if (closed)
                state->slope_known = trend_slope(&state->anon, 0, &state->slope) == 0;
        return closed;
}

bool verdict_update(
                struct mg_verdict_state *state,
                const struct mg_account *account,
                const struct mg_verdict_hints *hints,
                uint64_t now_usec) {
        enum mg_verdict verdict;
        enum mg_verdict hinted;
        bool closed;

        if (!account->anon_known || now_usec == state->answered_usec)
                return false;
        closed = add_floors(state, account, now_usec);
        hinted = answer_from_hints(hints);
        if (!closed && hinted == _MG_VERDICT_MAX && !is_over(state->verdict))
                return false;
        /* Asked each minute in any case: it counts the floors of a growth. */
        verdict = closed ? answer_from_floors(state, account, hints) : MG_VERDICT_LEARNING;
        state->answered_usec = now_usec;
        return answer(state, hinted != _MG_VERDICT_MAX ? hinted : verdict);
}
