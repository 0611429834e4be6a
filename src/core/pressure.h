/* SPDX-License-Identifier: MIT */
/*
 * Memory pressure, as far as it is arithmetic: which cgroups to watch for a set of units, whether reclaim gets anywhere, and whether a
 * trim could help at all. Layer: core; pure.
 */
#pragma once

#include "core/policy.h"

/* The first LENGTH bytes of a unit's path: the cgroup of the unit or one above it. Length 0 is the root: the whole host. */
struct mg_pressure_place {
        const char *path;
        size_t length;
};

/*
 * The places to watch for units at PATHS (absolute, without a trailing "/"): the root, then each level below, every place once,
 * until MAX of them are found. Pressure of a cgroup counts in all above it, so that what a limit cuts off at the bottom is still seen further
 * up. Returns how many there are in PLACES.
 */
size_t pressure_plan(
                const char *const *paths,
                size_t n_paths,
                struct mg_pressure_place *places,
                size_t max);

/* Whether PATH is at the place or below it. */
bool pressure_is_at(const char *path, const char *place, size_t length);

/*
 * Whether a place with this limit (MG_UNKNOWN: none) is short of memory itself. Else what stalls there is something below it, at a limit
 * of its own, which is no business of its neighbours.
 */
bool pressure_is_short(uint64_t used_bytes, uint64_t limit_bytes);

/* Counters that only grow, and the share of time in which nothing could run; each may be MG_UNKNOWN. */
struct mg_pressure_reading {
        uint64_t high_events; /* "high" of memory.events */
        uint64_t pgscan;
        uint64_t pgsteal;
        uint64_t full_permyriad; /* "full avg10" of memory.pressure */
};

/* MemoryHigh= is hit again and again, the unit stands still, and what the kernel scans it cannot take. */
bool pressure_is_poor_reclaim(
                const struct mg_pressure_reading *before,
                const struct mg_pressure_reading *now);

/* Under pressure at MemoryHigh=, and it is the program's own live memory: worth an alert. */
bool pressure_is_live_over_limit(
                const struct mg_decision *decision,
                const struct mg_memory *memory);
