/* SPDX-License-Identifier: MIT */
/*
 * A process that has, or had, an agent, or was found in /proc: held by (pid, start time) with its statm open, so that a reused pid is
 * never taken for it. Owned by its unit. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/sample.h"
#include "host/proc.h"

struct peer;
struct unit;

struct process {
        struct mg_list by_unit;
        struct unit *unit;
        struct peer *peer; /* NULL: its agent is not connected (any more) */
        struct mg_proc proc;
        uid_t uid;
        bool had_agent;
        bool gone; /* it has ended; freed at the next tick */
        char comm[16];
        uint64_t round_before_bytes; /* RssAnon + swap when its unit's round began; MG_UNKNOWN: none, or new since */
        struct mg_process_sample sample; /* as of the last tick and the last statistics */
};

int process_new(struct unit *unit,
                const struct mg_proc *proc, /* taken over on success */
                uid_t uid,
                struct process **ret_process);

/* A new agent, and perhaps a new program: nothing that was known of it holds but who it is. */
void process_renew(struct process *process);

/* Closes its peer. Returns NULL. */
struct process *process_free(struct process *process);

struct process *process_find(const struct unit *unit, pid_t pid, uint64_t start_time);

/* RssAnon and swap, as last read; MG_UNKNOWN: never. */
uint64_t process_footprint(const struct process *process);

static inline struct process *process_of(struct mg_list *entry) {
        return MG_CONTAINER_OF(entry, struct process, by_unit);
}

/* for (struct process *p = process_first(u); p; p = process_next(p)) */
struct process *process_first(const struct unit *unit);
struct process *process_next(const struct process *process);
