/* SPDX-License-Identifier: MIT */
/*
 * The processes of a run, told from /proc by descent: the harness is their subreaper, so that whatever forks, changes its session or
 * loses its parent stays below it. Layer: replay.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "replay/sample.h"

struct process_list {
        pid_t *pids;
        size_t n;
        size_t capacity;
};

void process_list_done(struct process_list *list);

/*
 * ROOT and all below it, and what lost its parent and is below the harness alone, but for what is below one of OTHERS. Zombies are
 * left out.
 */
int processes_find(pid_t root, const pid_t *others, size_t n_others, struct process_list *ret_list);

/* Everything below the harness. */
int processes_below(struct process_list *ret_list);

/* Sums up: anon, rss, swap, faults, cpu and their number. What vanishes meanwhile counts nothing. */
void processes_measure(const struct process_list *list, struct replay_sample *sample);
