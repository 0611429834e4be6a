/* SPDX-License-Identifier: MIT */
/*
 * What an allocator must answer to be served. One file each implements it.
 *
 * The contract. All functions run in the agent's thread (or in memguard_dispatch()); none may allocate through malloc,
 * use stdio, print, abort or lock anything that the program locks, other than inside the allocator's own entry
 * points. They touch the allocator only by calls that it documents as usable from any thread while others allocate.
 *
 * - probe    finds instances of the allocator in this process: once, before any other call. May be called on
 *            a thread of the program. Only looks: an allocator that the program does not use must not come to life.
 * - probe_file finds more in the symbol table of the executable, where the loader shows nothing; in the agent's
 *            thread, once. May be NULL.
 * - describe version, effective options, abilities and notice, as texts that live as long as the library.
 * - stats    the numbers, at the moment. A number that the allocator does not know is left MG_UNKNOWN.
 * - trim     gives back what it can, in slices as short as the allocator allows; between two of them it
 *            asks trim_is_over(). Never claims success by the allocator's return value. pause_usec is the longest
 *            another thread could have waited for one of its locks.
 * - tune     changes a setting while the program runs, and reads it back. May be NULL.
 *
 * Layer: agent.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/symtab.h"
#include "proto/proto.h"

struct mg_backend;

/* One allocator found in this process. */
struct mg_heap {
        const struct mg_backend *backend;
        unsigned instance; /* of that back-end: two jemallocs under two prefixes have 0 and 1 */
        bool serves_malloc;
};

struct mg_trim_request {
        uint64_t goal_bytes; /* 0: all */
        uint64_t pad_bytes;
        bool arena_tops;
        uint64_t deadline_at_usec; /* monotonic; MG_UNKNOWN: none */
        uint64_t before_bytes;     /* RssAnon when the request came; MG_UNKNOWN: not readable */
};

struct mg_trim_outcome {
        enum mg_result result;
        const char *reason; /* static text, or NULL */
        uint64_t pause_usec;
};

struct mg_tune_outcome {
        enum mg_result result;
        const char *reason;
        uint64_t background_thread; /* as read back; MG_UNKNOWN */
};

struct mg_backend {
        const char *name; /* on the wire */

        /* Fills HEAPS, at most ROOM; returns how many. */
        size_t (*probe)(struct mg_heap *heaps, size_t room);

        size_t (*probe_file)(const struct mg_symbols *symbols, struct mg_heap *heaps, size_t room);

        /* Sets the texts (CAN at least), and numbers that never change. */
        void (*describe)(const struct mg_heap *heap, struct mg_heap_message *message);

        /* Sets numbers. 0, or -EOPNOTSUPP where the allocator or its build has none. */
        int (*stats)(const struct mg_heap *heap, struct mg_heap_message *message);

        void (*trim)(const struct mg_heap *heap,
                     const struct mg_trim_request *request,
                     struct mg_trim_outcome *ret_outcome);

        void (*tune)(const struct mg_heap *heap,
                     bool background_thread,
                     struct mg_tune_outcome *ret_outcome);
};

extern const struct mg_backend backend_glibc;
extern const struct mg_backend backend_jemalloc;
extern const struct mg_backend backend_mimalloc;
extern const struct mg_backend backend_tcmalloc;

/* Between slices: the deadline has come, the goal is reached, or the program wants the agent to end. */
bool trim_is_over(const struct mg_trim_request *request);

/* Between slices: after one of PAUSE_USEC, time for those that waited for the lock. */
void trim_let_others_run(uint64_t pause_usec);

/* Set from the program's threads when the agent must end soon; slices stop at it. */
extern atomic_bool trim_must_stop;
