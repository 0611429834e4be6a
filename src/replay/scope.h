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
        uint64_t cgroup_oom_kills, host_oom_kills; /* at the start; MG_UNKNOWN: not known */
};

/* None yet: the numbers are the host's. */
void scope_init(struct scope *scope);

/*
 * Moves PID into a new scope, with MemoryMax= unless MEMORY_MAX is MG_UNKNOWN. Returns 0, or why there is none: -EOPNOTSUPP
 * without systemd, another error from the bus. SCOPE must be initialised; scope_close() takes it either way.
 */
int scope_open(struct scope *scope, pid_t pid, uint64_t memory_max);

/* Overrides what the cgroup knows better: anon, swap, cpu, faults, pressure. */
void scope_measure(const struct scope *scope, struct replay_sample *sample);

/*
 * Whether the kernel has killed for want of memory since the start, in the scope or, without one, anywhere on the host. systemd
 * removes a scope as soon as it is empty: once it is gone, the host's count has to do.
 */
bool scope_saw_oom_kill(const struct scope *scope);

/* Ends the unit, should it still be there. */
void scope_close(struct scope *scope);
