/* SPDX-License-Identifier: MIT */
/*
 * Processes without an agent, and why each has none: looked for when somebody asks and never on the tick. Layer: daemon.
 *
 * One answer costs some ten reads of /proc a process, so a request has a time to spend; what is not reached in it is
 * shown without a reason.
 */
#pragma once

#include "daemon/bus_dict.h"
#include "daemon/process.h"
#include "daemon/unit.h"

/* Of a host with a fork bomb in it, so many processes without an agent are shown. */
#define STRANGERS_MAX 1024

struct stranger {
        const struct unit *unit;
        pid_t pid;
};

struct strangers {
        uint64_t until_usec; /* of the monotonic clock: whoever else asks the daemon waits for as long */
        size_t n;
        struct stranger list[STRANGERS_MAX];
};

/* Processes of UNIT, or of all units where it is NULL, that the daemon knows no agent of. NULL: out of memory. */
struct strangers *strangers_find(struct manager *manager, const struct unit *unit);

/* "agent" and "agent_reason" of a process. PROCESS NULL: it never had an agent. */
void bus_why(struct dict *dict,
             const struct unit *unit,
             pid_t pid,
             const struct process *process,
             uint64_t until_usec);
