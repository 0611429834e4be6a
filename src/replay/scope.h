/* SPDX-License-Identifier: MIT */
/*
 * Where a run's numbers come from: a transient scope with a cgroup of its own where systemd is there and has the memory
 * controller, else nothing but /proc. Layer: replay.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/cgroup.h"
#include "replay/sample.h"

struct scope {
        char name[64]; /* "": no scope */
        bool has_cgroup;
        struct mg_cgroup cgroup;
};

/*
 * Moves PID into a new scope, with MemoryMax= unless MEMORY_MAX is MG_UNKNOWN. Returns 0, or why there is none: -EOPNOTSUPP
 * without systemd, another error from the bus. Then SCOPE is an empty one, which scope_close() takes as well.
 */
int scope_open(struct scope *scope, pid_t pid, uint64_t memory_max);

/* Overrides what the cgroup knows better: anon, swap, cpu, faults, pressure. */
void scope_measure(const struct scope *scope, struct replay_sample *sample);

/* The oom_kill counter of the scope, or of the whole host without; MG_UNKNOWN: not known. */
uint64_t scope_oom_kills(const struct scope *scope);

/* Ends the unit, should it still be there. */
void scope_close(struct scope *scope);
