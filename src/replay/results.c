/* SPDX-License-Identifier: MIT */
/* All runs of a directory. Layer: replay. */
#include "replay/results.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "host/cleanup.h"

void results_done(struct results *results) {
        for (size_t i = 0; i < results->n_runs; i++)
                run_file_done(&results->runs[i]);
        free(results->runs);
        free(results->measures);
        free(results->order);
        free(results->groups);
        *results = (struct results){};
}

static int read_file(const char *path, struct results *results) {
        unsigned line;
        int r = csv_read(path, &results->runs[results->n_runs], &line);

        if (r == -ENOMEM)
                return r;
        /* Other people's tables may lie there. One that is ours, or that nobody can read, may be the one that grew. */
        results->n_unread += r < 0 && !(r == -EBADMSG && line == 1);
        if (r == -EBADMSG)
                fprintf(stderr, "%s:%u: not a file of memguard-replay; left out\n", path, line);
        else if (r < 0)
                fprintf(stderr, "%s: %s\n", path, strerror(-r));
        else
                results->n_runs++;
        return 0;
}

static int is_run(const struct dirent *entry) {
        size_t length = strlen(entry->d_name);
        size_t tail = strlen(".csv");

        return entry->d_name[0] != '.' && length > tail &&
               mg_streq(entry->d_name + length - tail, ".csv");
}

struct entries {
        struct dirent **items;
        size_t n;
};

static void entries_done(struct entries *entries) {
        for (size_t i = 0; i < entries->n; i++)
                free(entries->items[i]);
        free(entries->items);
}

/* Those of runs, by name. */
static int list_runs(const char *directory, struct entries *ret_entries) {
        int n = scandir(directory, &ret_entries->items, is_run, alphasort);

        if (n < 0)
                return -errno;
        ret_entries->n = (size_t) n;
        return 0;
}

int results_exist(const char *directory) {
        MG_CLEANUP(entries_done) struct entries entries = {};
        int r = list_runs(directory, &entries);

        return r < 0 ? r : entries.n > 0;
}

static int read_files(const char *directory, struct results *results) {
        MG_CLEANUP(entries_done) struct entries entries = {};
        int r = list_runs(directory, &entries);

        if (r < 0)
                return r;
        if (entries.n == 0)
                return -ENOENT;
        results->runs = calloc(entries.n, sizeof(*results->runs));
        if (!results->runs)
                return -ENOMEM;
        for (size_t i = 0; i < entries.n; i++) {
                MG_CLEANUP(freep) char *path = NULL;

                if (asprintf(&path, "%s/%s", directory, entries.items[i]->d_name) < 0)
                        return -ENOMEM;
                r = read_file(path, results);
                if (r < 0)
                        return r;
        }
        return results->n_runs == 0 ? -ENOENT : 0;
}

/* By when they were started, so that the order of the command line comes back. */
static int compare_runs(const void *a, const void *b) {
        const struct run_file *const *first = a;
        const struct run_file *const *second = b;

        if ((*first)->sequence != (*second)->sequence)
                return (*first)->sequence < (*second)->sequence ? -1 : 1;
        int r = strcmp((*first)->variant, (*second)->variant);
        return r != 0 ? r : (*first)->round < (*second)->round ? -1 : 1;
}

/* Moves the runs of one variant next to its first one. */
static size_t gather_variant(const struct run_file **order, size_t n, size_t at) {
        size_t end = at + 1;

        for (size_t i = end; i < n; i++) {
                const struct run_file *run = order[i];

                if (!mg_streq(run->variant, order[at]->variant))
                        continue;
                memmove(&order[end + 1], &order[end], (i - end) * sizeof(*order));
                order[end++] = run;
        }
        return end;
}

static int group_runs(struct results *results, uint64_t max_slope) {
        size_t n = results->n_runs;

        results->measures = calloc(n, sizeof(*results->measures));
        results->order = calloc(n, sizeof(*results->order));
        results->groups = calloc(n, sizeof(*results->groups));
        if (!results->measures || !results->order || !results->groups)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                results->order[i] = &results->runs[i];
        qsort(results->order, n, sizeof(*results->order), compare_runs);
        for (size_t at = 0; at < n;) {
                size_t end = gather_variant(results->order, n, at);
                struct group *group = &results->groups[results->n_groups++];

                *group = (struct group){ .runs = &results->order[at],
                                         .measures = &results->measures[at],
                                         .n_runs = end - at };
                for (; at < end; at++)
                        measure_run(results->order[at], &results->measures[at]);
                judge_group(group, max_slope);
        }
        results->comparison = judge_all(results->groups, results->n_groups);
        return 0;
}

int results_load(const char *directory, uint64_t max_slope, struct results *ret_results) {
        struct results results = {};

        int r = read_files(directory, &results);
        if (r >= 0)
                r = group_runs(&results, max_slope);
        if (r < 0) {
                results_done(&results);
                return r;
        }
        *ret_results = results;
        return 0;
}

const struct group *results_find(const struct results *results, const char *variant) {
        for (size_t i = 0; i < results->n_groups; i++)
                if (mg_streq(results->groups[i].variant, variant))
                        return &results->groups[i];
        return NULL;
}
