/* SPDX-License-Identifier: MIT */
/*
 * What was measured of one unit at one moment: plain data that host and daemon fill and the
 * policy reads. Every number may be MG_UNKNOWN. Layer: core.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"

enum mg_source {
        MG_SOURCE_CGROUP, /* memory.stat of the unit's cgroup */
        MG_SOURCE_PROC,   /* statm of its processes, summed */
        _MG_SOURCE_MAX,
};

/* A unit's life, as far as trimming cares. Without systemd everything is active. */
enum mg_activity {
        MG_ACTIVITY_ACTIVE,
        MG_ACTIVITY_ACTIVATING,
        MG_ACTIVITY_RELOADING,
        MG_ACTIVITY_DEACTIVATING,
        _MG_ACTIVITY_MAX,
};

/* cgroup v2 numbers, bytes unless named otherwise; the proc source knows anon and swap alone. */
struct mg_memory {
        uint64_t anon_bytes;
        uint64_t file_bytes;
        uint64_t shmem_bytes;
        uint64_t kernel_bytes;
        uint64_t slab_reclaimable_bytes;
        uint64_t active_anon_bytes;
        uint64_t inactive_anon_bytes;
        uint64_t unevictable_bytes;
        uint64_t anon_thp_bytes;
        uint64_t swap_bytes;
        uint64_t current_bytes;
        uint64_t high_bytes; /* MG_UNKNOWN: no limit, or not readable */
        uint64_t max_bytes;
        uint64_t high_events;
        uint64_t pgscan;
        uint64_t pgsteal;
};

struct mg_process_sample {
        pid_t pid;
        uint64_t start_time;     /* field 22 of /proc/PID/stat: clock ticks since boot */
        uint64_t rss_anon_bytes; /* statm resident - shared */
        uint64_t swap_bytes;
        uint64_t base_bytes; /* RssAnon outside the heaps, from hello */
        uint64_t live_bytes; /* the rest: sums over the process's allocators, from its last statistics */
        uint64_t system_bytes;
        uint64_t estimate_bytes; /* what the allocators believe a trim could give back, at most */
        uint64_t free_chunks;
        uint64_t arenas;
        uint64_t stats_at_usec; /* monotonic time of those statistics; MG_UNKNOWN: none yet */
        uint64_t cache_bytes;   /* registered caches */
        /* RssAnon at those statistics: growth since then counts as live, not as retained; 0 or MG_UNKNOWN: not told. */
        uint64_t stats_rss_bytes;
        bool has_agent;
        bool can_trim;
        bool sliced;    /* the allocator in use trims in slices: a pause is one slice */
        bool suspended; /* the program holds trims off */
        bool busy;      /* a request is in flight */
};

/* Of which nothing is known yet but who it is. */
static inline struct mg_process_sample process_sample_unknown(pid_t pid, uint64_t start_time) {
        return (struct mg_process_sample){
                .pid = pid,
                .start_time = start_time,
                .rss_anon_bytes = MG_UNKNOWN,
                .swap_bytes = MG_UNKNOWN,
                .base_bytes = MG_UNKNOWN,
                .live_bytes = MG_UNKNOWN,
                .system_bytes = MG_UNKNOWN,
                .estimate_bytes = MG_UNKNOWN,
                .free_chunks = MG_UNKNOWN,
                .arenas = MG_UNKNOWN,
                .stats_at_usec = MG_UNKNOWN,
                .cache_bytes = MG_UNKNOWN,
                .stats_rss_bytes = MG_UNKNOWN,
        };
}

struct mg_unit_sample {
        enum mg_source source;
        enum mg_activity activity;
        struct mg_memory memory;
        const struct mg_process_sample *processes; /* the sampler's; valid during the call */
        size_t n_processes;
        uint64_t cpu_usage_usec;     /* cpu.stat, or summed utime + stime; monotonic growing */
        uint64_t watchdog_usec;      /* WatchdogSec= of the unit; MG_UNKNOWN: none */
        uint64_t checkpoint_at_usec; /* the last memguard_checkpoint(); MG_UNKNOWN: never */
        bool under_pressure;         /* PSI or memory.events say so now */
        bool paused;                 /* by memguardctl pause, or Paused=yes */
};

const char *source_to_string(enum mg_source source);       /* "cgroup", "proc" */
const char *activity_to_string(enum mg_activity activity); /* "active", "reloading", ... */
