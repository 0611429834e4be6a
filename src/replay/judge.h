/* SPDX-License-Identifier: MIT */
/*
 * What the numbers mean: a verdict for each variant over all its rounds, and one sentence over all variants. Layer: replay; pure.
 */
#pragma once

#include <stdbool.h>

#include "replay/measure.h"

enum replay_verdict {
        VERDICT_FLAT,    /* with 95 % confidence no steeper than allowed */
        VERDICT_GROWING, /* with 95 % confidence steeper, and the floors did rise */
        VERDICT_UNCLEAR, /* too few floors, or the interval holds both */
        VERDICT_OOM,
        VERDICT_FAILED, /* could not be measured */
        _VERDICT_MAX,
};

const char *replay_verdict_to_string(enum replay_verdict verdict);

/* All rounds of one variant. Numbers are means over the rounds that know them. */
struct group {
        const char *variant; /* its first run's */
        const struct run_file **runs;
        struct measures *measures; /* of each run */
        size_t n_runs;
        bool has_slope;
        int64_t slope_bytes_per_hour;
        uint64_t confidence_bytes_per_hour; /* half width, 95 % */
        bool rises;
        uint64_t floors;     /* of all rounds */
        uint64_t peak_bytes; /* the highest of all rounds */
        uint64_t mean_bytes;
        uint64_t end_bytes;
        uint64_t live_bytes;
        uint64_t mean_live_bytes;
        uint64_t operations;
        uint64_t operations_per_second;
        uint64_t p99_usec;
        uint64_t worst_usec; /* the longest of all rounds */
        uint64_t trims;
        uint64_t pause_usec; /* the longest */
        uint64_t minor_faults;
        uint64_t cpu_usec;
        uint64_t psi_usec;
        enum replay_verdict verdict;
};

/* RUNS and MEASURES of GROUP are set; fills the rest. MAX_SLOPE in bytes per hour. */
void judge_group(struct group *group, uint64_t max_slope);

enum comparison {
        COMPARISON_NOTHING_GROWS,
        COMPARISON_RETENTION,     /* one grows, another is flat under the same load */
        COMPARISON_LEAK,          /* every one grows, of several allocators */
        COMPARISON_ONE_ALLOCATOR, /* all grow, but all are the same allocator */
        COMPARISON_TOO_SHORT,
        COMPARISON_NOT_MEASURED,
        _COMPARISON_MAX,
};

const char *comparison_to_string(enum comparison comparison);
const char *comparison_describe(enum comparison comparison);
enum comparison judge_all(const struct group *groups, size_t n);
