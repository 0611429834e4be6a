/* SPDX-License-Identifier: MIT */
/*
 * Which due trims start now. A partial selection, not a sort: only the few that may start have to be
 * found, and qsort() may allocate. Layer: core; pure.
 */
#include "core/schedule.h"

#include "base/macros.h"

/* Under a millisecond nobody waits noticeably: it keeps a tiny prediction from outweighing every gain. */
#define PAUSE_GRAIN_USEC MG_USEC_PER_MSEC

/* Bytes per millisecond of pause, doubled for each minute of waiting. */
static uint64_t weigh(const struct mg_candidate *candidate, uint64_t now_usec) {
        uint64_t pause = mg_add_cap(candidate->predicted_pause_usec, PAUSE_GRAIN_USEC);
        uint64_t weight = mg_scale(candidate->expected_bytes, MG_USEC_PER_MSEC, pause);
        uint64_t minutes = mg_sub_floor(now_usec, candidate->due_since_usec) / MG_USEC_PER_MIN;

        weight = MG_MAX(weight, UINT64_C(1));
        if (minutes >= (uint64_t) __builtin_clzll(weight))
                return UINT64_MAX;
        return weight << minutes;
}

/* A total order, so that the order in which candidates come makes no difference. */
static bool goes_before(
                const struct mg_candidate *a,
                const struct mg_candidate *b,
                uint64_t now_usec) {
        uint64_t weight_a = weigh(a, now_usec);
        uint64_t weight_b = weigh(b, now_usec);

        if (a->urgent != b->urgent)
                return a->urgent;
        if (weight_a != weight_b)
                return weight_a > weight_b;
        if (a->due_since_usec != b->due_since_usec)
                return a->due_since_usec < b->due_since_usec;
        return (uintptr_t) a->unit < (uintptr_t) b->unit;
}

size_t schedule_pick(
                struct mg_candidate *candidates,
                size_t n_candidates,
                size_t running,
                size_t max_concurrent,
                uint64_t now_usec) {
        size_t slots = max_concurrent > running ? max_concurrent - running : 0;
        size_t picked = MG_MIN(slots, n_candidates);

        for (size_t i = 0; i < picked; i++) {
                struct mg_candidate best;
                size_t at = i;

                for (size_t j = i + 1; j < n_candidates; j++)
                        if (goes_before(&candidates[j], &candidates[at], now_usec))
                                at = j;
                best = candidates[at];
                candidates[at] = candidates[i];
                candidates[i] = best;
        }
        return picked;
}
