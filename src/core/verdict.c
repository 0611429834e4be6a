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
#define HELD_PERCENT 90

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

/*
 * The peak of the last third has to be above the first's as well: of a sawtooth as long as the window only one
 * minute in a period looks like growth, and one answer is none.
 */
static bool is_growth(const struct mg_slope *slope, uint64_t anon_bytes) {
        uint64_t least = mg_scale(anon_bytes, GROWTH_PERCENT, 100);

        least = MG_MAX(least, GROWTH_MIN_BYTES);
        least = MG_MIN(least, GROWTH_MAX_BYTES);
        if (slope->bytes_per_hour <= 0 || (uint64_t) slope->bytes_per_hour <= least ||
            (uint64_t) slope->bytes_per_hour / 2 <= slope->standard_error)
                return false;
        return slope->last_third_floor_bytes != MG_UNKNOWN &&
               slope->first_third_floor_bytes != MG_UNKNOWN &&
               slope->last_third_floor_bytes > slope->first_third_floor_bytes &&
               slope->last_third_peak_bytes > slope->first_third_peak_bytes;
}

/* The last quarter of an hour rises clearly less than half as fast as the whole: it has levelled out. */
static bool has_plateau(const struct mg_trend *trend, const struct mg_slope *whole) {
        struct mg_slope recent;

        if (trend_slope(trend, MG_TREND_FLOORS_MIN, &recent) < 0)
                return false;
        return recent.bytes_per_hour + 2 * (int64_t) recent.standard_error <
               whole->bytes_per_hour / 2;
}

/* PART grows, and is at least half of what the unit grows by. */
static bool drives_growth(
                const struct mg_trend *part,
                const struct mg_slope *anon,
                uint64_t anon_bytes,
                struct mg_slope *ret_slope) {
        if (trend_slope(part, 0, ret_slope) < 0 || !is_growth(ret_slope, anon_bytes))
                return false;
        return ret_slope->bytes_per_hour >= anon->bytes_per_hour / 2;
}

static enum mg_verdict answer_growth(
                struct mg_verdict_state *state,
                uint64_t anon_bytes,
                const struct mg_verdict_hints *hints) {
        struct mg_slope live = {};
        struct mg_slope other = {};
        bool anon_grows = is_growth(&state->slope, anon_bytes);
        bool live_grows = drives_growth(&state->live, &state->slope, anon_bytes, &live);

        /* Our own trims take anon down under a leak, so they do not count against it. */
        if (live_grows && (anon_grows || hints->trimmed)) {
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
        return drives_growth(&state->other, &state->slope, anon_bytes, &other)
                               ? MG_VERDICT_NOT_MALLOC
                               : MG_VERDICT_RETENTION;
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
        if (verdict == MG_VERDICT_FLAT && account->live_bytes >= mg_scale(anon, HELD_PERCENT, 100))
                return MG_VERDICT_HELD;
        return verdict;
}

/* What needs no floors, or _MG_VERDICT_MAX. */
static enum mg_verdict answer_from_hints(const struct mg_verdict_hints *hints) {
        if (!hints->has_agent)
                return MG_VERDICT_NO_AGENT;
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
        if (!closed && hinted == _MG_VERDICT_MAX)
                return false;
        /* Asked each minute in any case: it counts the floors of a growth. */
        verdict = closed ? answer_from_floors(state, account, hints) : hinted;
        state->answered_usec = now_usec;
        return answer(state, hinted != _MG_VERDICT_MAX ? hinted : verdict);
}
