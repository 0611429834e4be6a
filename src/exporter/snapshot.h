/* SPDX-License-Identifier: MIT */
/*
 * What one look at the daemon has brought: the numbers of its host, its units, and the allocators of their processes. How much of
 * it is shown is bounded here, whatever the daemon knows. Layer: exporter; pure but for malloc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/metrics.h"

/*
 * Longer texts are cut: a name of a unit has at most 255 bytes, a cgroup's path may have 4095. Of a path the end is kept,
 * which says more.
 */
#define SNAPSHOT_TEXT_MAX 512

/* More buckets or reasons than this are ignored: the daemon knows fewer. */
#define SNAPSHOT_BUCKETS_MAX 32
#define SNAPSHOT_COUNTS_MAX  64

/* One allocator of one process. */
struct snapshot_heap {
        uint64_t pid;
        uint32_t index; /* within the process */
        char *allocator;
        char *version;
        uint64_t number[HEAP_METRICS]; /* MG_UNKNOWN: not known, not shown */
};

/* A count that has a name: rounds by result, microseconds held by reason. */
struct snapshot_count {
        char *name;
        uint64_t value;
};

struct snapshot_counts {
        struct snapshot_count *list; /* owned */
        size_t n;
};

struct snapshot_pauses {
        uint64_t up_to_usec[SNAPSHOT_BUCKETS_MAX]; /* MG_UNKNOWN: no bound */
        uint64_t count[SNAPSHOT_BUCKETS_MAX];      /* in this bucket alone */
        size_t n;                                  /* 0: not known */
        uint64_t sum_usec;
};

struct snapshot_unit {
        char *name;
        char *cgroup; /* NULL: in none */
        char *mode;
        char *verdict;
        char *reason;
        uint64_t number[UNIT_METRICS];
        int64_t slope_bytes_per_hour;
        bool slope_known;
        struct snapshot_counts results;
        struct snapshot_counts held_usec;
        struct snapshot_pauses pauses;
        struct snapshot_heap *heaps; /* owned; those of one process stand together */
        size_t n_heaps;
};

struct snapshot {
        bool up; /* the daemon has answered; else there is nothing in here */
        char *version;
        uint64_t number[HOST_METRICS];
        struct snapshot_unit *units; /* owned */
        size_t n_units;
        uint64_t units_left_out;
        uint64_t processes_left_out;
        uint64_t read_usec; /* how long it took */
};

void snapshot_init(struct snapshot *snapshot);
void snapshot_done(struct snapshot *snapshot);

/* A new element with nothing known; NULL: out of memory. Valid until the next one is added. */
struct snapshot_unit *snapshot_add_unit(struct snapshot *snapshot);
struct snapshot_heap *snapshot_add_heap(struct snapshot_unit *unit);

/* -ENOMEM. Beyond SNAPSHOT_COUNTS_MAX it is ignored. */
int snapshot_add_count(struct snapshot_counts *counts, const char *name, uint64_t value);

/* Keeps at most SNAPSHOT_TEXT_MAX bytes of TEXT in *place, cut between characters. -ENOMEM. */
int snapshot_keep_text(char **place, const char *text);

/*
 * Leaves out what is beyond the limits, and units that cannot be told apart. Kept are units with an agent before those without,
 * and the largest first; of processes those of the kept units, in the same order.
 */
void snapshot_limit(struct snapshot *snapshot, size_t max_units, size_t max_processes);
