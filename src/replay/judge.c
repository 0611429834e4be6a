/* SPDX-License-Identifier: MIT */
/* What the numbers mean. Layer: replay; pure. */
#include "replay/judge.h"

#include <math.h>
#include <stdlib.h>

#include "base/macros.h"

static const char *const verdict_names[] = {
        [VERDICT_FLAT] = "flat", [VERDICT_GROWING] = "growing", [VERDICT_UNCLEAR] = "unclear",
        [VERDICT_OOM] = "oom",   [VERDICT_FAILED] = "failed",
};
_Static_assert(MG_ELEMENTS(verdict_names) == _VERDICT_MAX, "a verdict has no name");

static const struct {
        const char *name;
        const char *text;
} comparisons[] = {
        [COMPARISON_NOTHING_GROWS] = { "nothing-grows", "no variant grows under this load" },
        [COMPARISON_RETENTION] = { "retention",
                                   "another allocator or setting is flat under the same load: retention, not a leak" },
        [COMPARISON_LEAK] = { "leak",
                              "every allocator grows: the program keeps the memory, a leak or a cache that fills" },
        [COMPARISON_ONE_ALLOCATOR] = { "one-allocator",
                                       "it grows, and only one allocator was tried: another one would tell retention from a leak" },
        [COMPARISON_TOO_SHORT] = { "too-short", "not long enough to tell" },
        [COMPARISON_NOT_MEASURED] = { "not-measured", "nothing could be measured" },
};
_Static_assert(MG_ELEMENTS(comparisons) == _COMPARISON_MAX, "a comparison has no name");

const char *replay_verdict_to_string(enum replay_verdict verdict) {
        return verdict_names[verdict];
}

const char *comparison_to_string(enum comparison comparison) {
        return comparisons[comparison].name;
}

const char *comparison_describe(enum comparison comparison) {
        return comparisons[comparison].text;
}

/* ---- One variant ---- */

static uint64_t run_member(const struct group *group, size_t run, size_t offset) {
        return *(const uint64_t *) ((const char *) &group->measures[run] + offset);
}

static uint64_t told_member(const struct group *group, size_t run, size_t offset) {
        return *(const uint64_t *) ((const char *) &group->runs[run]->told + offset);
}

static uint64_t combine(
                const struct group *group,
                uint64_t (*member)(const struct group *group, size_t run, size_t offset),
                size_t offset,
                bool highest) {
        unsigned __int128 sum = 0;
        uint64_t most = 0;
        uint64_t n = 0;

        for (size_t i = 0; i < group->n_runs; i++) {
                uint64_t value = member(group, i, offset);

                if (value == MG_UNKNOWN)
                        continue;
                sum += value;
                most = MG_MAX(most, value);
                n++;
        }
        if (n == 0)
                return MG_UNKNOWN;
        return highest ? most : (uint64_t) (sum / n);
}

#define MEASURED(name, highest) \
        (group->name = combine(group, run_member, offsetof(struct measures, name), highest))
#define TOLD(name, highest) \
        (group->name = combine(group, told_member, offsetof(struct told, name), highest))

static void combine_numbers(struct group *group) {
        MEASURED(peak_bytes, true);
        MEASURED(mean_bytes, false);
        MEASURED(end_bytes, false);
        MEASURED(live_bytes, false);
        MEASURED(mean_live_bytes, false);
        MEASURED(trims, false);
        MEASURED(pause_usec, true);
        MEASURED(minor_faults, false);
        MEASURED(cpu_usec, false);
        MEASURED(psi_usec, false);
        TOLD(operations, false);
        TOLD(operations_per_second, false);
        TOLD(p99_usec, false);
        TOLD(worst_usec, true);
        if (group->trims == MG_UNKNOWN)
                TOLD(trims, false);
}

/*
 * The mean of the rounds' slopes. Its error is the larger of what the scatter of floors around their lines says, and of what the scatter of
 * the rounds' slopes says.
 */
static void combine_slopes(struct group *group) {
        double sum = 0;
        double squares = 0;
        double errors = 0;
        size_t rising = 0;
        size_t n = 0;

        for (size_t i = 0; i < group->n_runs; i++) {
                const struct measures *measures = &group->measures[i];
                double slope = (double) measures->slope_bytes_per_hour;
                double error = (double) measures->error_bytes_per_hour;

                if (!measures->has_slope)
                        continue;
                n++;
                sum += slope;
                squares += slope * slope;
                errors += error * error;
                rising += measures->rises;
                group->floors += measures->slope_floors;
        }
        if (n == 0)
                return;
        double mean = sum / (double) n;
        double within = sqrt(errors) / (double) n;
        double variance = n > 1 ? (squares - sum * mean) / (double) (n - 1) : 0;
        double between = variance > 0 ? sqrt(variance / (double) n) : 0;
        uint64_t freedom = between > within ? n - 1 : group->floors - 2 * n;

        group->has_slope = true;
        group->slope_bytes_per_hour = llround(mean);
        group->confidence_bytes_per_hour =
                        measure_confidence((uint64_t) fmax(within, between), freedom);
        group->rises = 2 * rising > n;
}

static bool has_end(const struct group *group, enum replay_end end) {
        for (size_t i = 0; i < group->n_runs; i++)
                if (group->runs[i]->end == end)
                        return true;
        return false;
}

static bool has_failed(const struct group *group) {
        return has_end(group, END_PROGRAM_FAILED) || has_end(group, END_LOAD_FAILED) ||
               has_end(group, END_NOT_IN_EFFECT) || has_end(group, END_NOT_STARTED);
}

static enum replay_verdict judge_slope(const struct group *group, uint64_t max_slope) {
        __int128 slope = group->slope_bytes_per_hour;
        __int128 half = group->confidence_bytes_per_hour;

        if (!group->has_slope)
                return VERDICT_UNCLEAR;
        if (slope + half <= (__int128) max_slope)
                return VERDICT_FLAT;
        return slope - half > (__int128) max_slope && group->rises ? VERDICT_GROWING
                                                                   : VERDICT_UNCLEAR;
}

void judge_group(struct group *group, uint64_t max_slope) {
        group->variant = group->n_runs > 0 ? group->runs[0]->variant : NULL;
        combine_numbers(group);
        combine_slopes(group);
        if (has_end(group, END_OOM))
                group->verdict = VERDICT_OOM;
        else if (group->n_runs == 0 || has_failed(group))
                group->verdict = VERDICT_FAILED;
        else
                group->verdict = judge_slope(group, max_slope);
}

/* ---- All variants ---- */

/* Variants that are another allocator than glibc's; what is not known to be one is counted as glibc. */
static bool is_other_allocator(const char *variant) {
        static const char *const others[] = { "jemalloc", "mimalloc", "tcmalloc", "preload" };

        for (size_t i = 0; i < MG_ELEMENTS(others); i++)
                if (strncmp(variant, others[i], strlen(others[i])) == 0)
                        return true;
        return false;
}

enum comparison judge_all(const struct group *groups, size_t n) {
        size_t count[_VERDICT_MAX] = {};
        bool glibc_grows = false;
        bool other_grows = false;

        for (size_t i = 0; i < n; i++) {
                enum replay_verdict verdict = groups[i].verdict;

                count[verdict]++;
                if (verdict != VERDICT_GROWING && verdict != VERDICT_OOM)
                        continue;
                if (is_other_allocator(groups[i].variant))
                        other_grows = true;
                else
                        glibc_grows = true;
        }
        size_t grow = count[VERDICT_GROWING] + count[VERDICT_OOM];
        if (count[VERDICT_FAILED] == n)
                return COMPARISON_NOT_MEASURED;
        if (grow > 0 && count[VERDICT_FLAT] > 0)
                return COMPARISON_RETENTION;
        if (count[VERDICT_UNCLEAR] > 0)
                return COMPARISON_TOO_SHORT;
        if (grow == 0)
                return COMPARISON_NOTHING_GROWS;
        return glibc_grows && other_grows ? COMPARISON_LEAK : COMPARISON_ONE_ALLOCATOR;
}
