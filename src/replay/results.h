/* SPDX-License-Identifier: MIT */
/* All runs of a directory, measured and judged. Layer: replay. */
#pragma once

#include "replay/judge.h"

struct results {
        struct run_file *runs;
        size_t n_runs;
        size_t n_unread;           /* runs that were left out */
        struct measures *measures; /* of each run, those of a group side by side */
        const struct run_file **order;
        struct group *groups; /* in the order in which their first runs were made */
        size_t n_groups;
        enum comparison comparison;
};

/* 1: DIRECTORY has files of runs, 0: none. */
int results_exist(const char *directory);

/*
 * Reads every *.csv in DIRECTORY. One that is not ours, is damaged or cannot be read is said on standard error and left out; none at
 * all is -ENOENT.
 */
int results_load(const char *directory, uint64_t max_slope, struct results *ret_results);
void results_done(struct results *results);

const struct group *results_find(const struct results *results, const char *variant);
