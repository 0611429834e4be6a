/* SPDX-License-Identifier: MIT */
/*
 * Who would profit. Without an agent nobody knows what is live, so these are odds and not numbers: what decides is whether the allocators
 * can be reached at all, how much there is, and the shape that retention has (thread arenas). Layer: ctl; pure.
 */
#include "ctl/survey.h"

#include <stdlib.h>

#include "host/allocator.h"

/* Below, a trim could not bring MinGain=32M at the retention of 2x that hurt others. */
#define SMALL_BYTES (64 * MG_MIB)

/* The default of TrimAbove=: what one arena alone would have to retain to be worth it. */
#define LARGE_BYTES (256 * MG_MIB)

static const char *const profit_names[] = {
        [SURVEY_LIKELY] = "likely", [SURVEY_POSSIBLE] = "possible", [SURVEY_UNLIKELY] = "unlikely",
        [SURVEY_NO] = "no",         [SURVEY_UNKNOWN] = "unknown",   [SURVEY_HAS_AGENT] = "agent",
};
_Static_assert(MG_ELEMENTS(profit_names) == _SURVEY_PROFIT_MAX, "a profit has no name");

const char *survey_profit_to_string(enum survey_profit profit) {
        return profit_names[profit];
}

static bool has(const struct survey_unit *unit, enum mg_allocator allocator) {
        return unit->allocators & UINT32_C(1) << allocator;
}

/* What no agent can reach. NULL: nothing of the kind. */
static const char *out_of_reach(const struct survey_unit *unit) {
        if (has(unit, MG_ALLOCATOR_GO))
                return "a Go program collects its own heap";
        if (unit->is_static)
                return "a static program: nothing can be preloaded";
        if (has(unit, MG_ALLOCATOR_MUSL) && !has(unit, MG_ALLOCATOR_GLIBC))
                return "musl: the agent is for glibc";
        return NULL;
}

static enum survey_profit judge_heap(const struct survey_unit *unit, const char **ret_reason) {
        bool large = unit->anon_bytes >= LARGE_BYTES;

        if (has(unit, MG_ALLOCATOR_JVM)) {
                *ret_reason = "a JVM collects its own heap: only its malloc can be trimmed";
                return SURVEY_UNLIKELY;
        }
        if (has(unit, MG_ALLOCATOR_JEMALLOC)) {
                *ret_reason = "jemalloc: dirty pages of idle arenas can be purged";
                return large ? SURVEY_LIKELY : SURVEY_POSSIBLE;
        }
        if (has(unit, MG_ALLOCATOR_TCMALLOC) || has(unit, MG_ALLOCATOR_MIMALLOC)) {
                *ret_reason = "its allocator keeps free pages that can be released";
                return SURVEY_POSSIBLE;
        }
        if (!has(unit, MG_ALLOCATOR_GLIBC)) {
                *ret_reason = "no allocator that is known";
                return SURVEY_UNLIKELY;
        }
        if (unit->arena_heaps >= 2) {
                *ret_reason = "glibc with thread arenas, which keep what threads free";
                return SURVEY_LIKELY;
        }
        *ret_reason = large ? "one large glibc heap" : "one glibc heap, not large";
        return large ? SURVEY_POSSIBLE : SURVEY_UNLIKELY;
}

enum survey_profit survey_judge(const struct survey_unit *unit, const char **ret_reason) {
        if (unit->agents > 0) {
                *ret_reason = "it has an agent: see memguardctl status";
                return SURVEY_HAS_AGENT;
        }
        if (unit->anon_bytes < SMALL_BYTES) {
                *ret_reason = "too small to matter";
                return SURVEY_NO;
        }
        if (unit->unreadable == unit->processes) {
                *ret_reason = "its processes may not be looked at: run survey as root";
                return SURVEY_UNKNOWN;
        }
        *ret_reason = out_of_reach(unit);
        return *ret_reason ? SURVEY_NO : judge_heap(unit, ret_reason);
}

static int compare(const void *a, const void *b) {
        const struct survey_unit *one = a, *other = b;
        const char *reason;
        int by_profit = (int) survey_judge(one, &reason) - (int) survey_judge(other, &reason);

        if (by_profit != 0)
                return by_profit;
        if (one->anon_bytes != other->anon_bytes)
                return one->anon_bytes > other->anon_bytes ? -1 : 1;
        return strcmp(one->name, other->name);
}

void survey_rank(struct survey *survey) {
        if (survey->n > 1)
                qsort(survey->units, survey->n, sizeof(*survey->units), compare);
}
