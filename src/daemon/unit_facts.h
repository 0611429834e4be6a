/* SPDX-License-Identifier: MIT */
/*
 * What a unit looks like to clients, in one flat structure: the dictionaries of org.memguard1.Manager and the properties of
 * org.memguard1.Unit are two ways to write the same. Layer: daemon.
 */
#pragma once

#include <stdint.h>

#include "daemon/unit.h"

/* Times are of the wall clock. A number that nobody knows is MG_UNKNOWN, a slope SLOPE_UNKNOWN, a text NULL. Strings are the unit's. */
#define SLOPE_UNKNOWN INT64_MIN

struct unit_facts {
        struct unit *unit;
        const char *name;
        const char *source;
        const char *cgroup;
        const char *mode;
        const char *activity;
        const char *verdict;
        const char *reason;
        int paused; /* int: what sd-bus calls a boolean */
        int breaker;
        uint64_t anon_bytes;
        uint64_t swap_bytes;
        uint64_t live_bytes;
        uint64_t retained_bytes;
        uint64_t freeable_bytes;
        uint64_t pinned_bytes;
        uint64_t other_bytes;
        uint64_t shmem_bytes;
        uint64_t file_bytes;
        uint64_t trim_above_bytes;
        int64_t slope_bytes_per_hour;
        uint64_t processes;
        uint64_t agents;
        uint64_t trims;
        uint64_t trimmed_bytes;
        uint64_t would_trim;
};

/* Valid as long as nothing happens to the unit. */
void unit_facts_take(struct unit *unit, struct unit_facts *ret_facts);
