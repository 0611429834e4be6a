/* SPDX-License-Identifier: MIT */
/*
 * The agent's own thread: how it is made, what it does between two waits, how a thread of the program wakes and ends
 * it. Who decides when there is one is keeper.h. Layer: agent.
 *
 * Its first act is to leave the program's descriptor table for one of its own. All signals are blocked but the C library's
 * own two (setuid() in another thread waits for them). To wake it, a thread of the program sends it SIGURG by
 * tgkill(): blocked, so that it is neither discarded nor handled, it makes a signalfd in the agent's table readable.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/rights.h"
#include "agent/settings.h"

typedef int (*mg_create_fn)(
                pthread_t *thread,
                const pthread_attr_t *attributes,
                void *(*routine)(void *),
                void *argument);

struct mg_thread_setup {
        mg_create_fn create; /* the C library's, past our own wrapper */
        const struct mg_settings *settings;
        const char *mode; /* for hello */
        struct mg_seccomp
                        baseline; /* at load: the agent makes no new kind of call once it is stricter */
        size_t stack_bytes;       /* beyond what the C library puts on it */
        bool is_forked; /* a child: start without waiting for the thread, most children are short */
        bool spare_message_queues; /* a program that has run may have one open: then its table is shared */
};

/*
 * Makes the thread and waits, at most a tenth of a second, until it has a table of its own. On a thread of the
 * program; only one at a time (the keeper sees to it). 0 or the negative errno of pthread_create.
 */
int thread_start(const struct mg_thread_setup *setup);

/*
 * Asks the thread to end, and waits until the kernel has removed it: at most TIMEOUT_USEC. Returns 0 when there
 * is none any more, -ETIMEDOUT otherwise (it ends at its next pause).
 */
int thread_stop(uint64_t timeout_usec);

/* From any thread of the program: there is news. Does nothing when there is no agent. */
void thread_wake(void);

/* Whether one is there, or about to be. */
bool thread_is_running(void);

/* Whether the calling thread is the agent. */
bool thread_is_current(void);

/* Why the last one ended by itself. */
enum mg_thread_end {
        MG_THREAD_END_ASKED,   /* or has not ended */
        MG_THREAD_END_RIGHTS,  /* the program's rights are no longer the thread's */
        MG_THREAD_END_SECCOMP, /* ... since a filter came: never again */
        MG_THREAD_END_FAILED,  /* no /proc, no descriptors */
        _MG_THREAD_END_MAX,
};
enum mg_thread_end thread_end(void);

/*
 * How much of the program's thread-local storage lies on a thread's stack. At the start and no more: in a forked child the dynamic
 * linker's lock may be held by a thread that is not there.
 */
void thread_measure_tls(void);

/* In the child: the thread was the parent's. */
void thread_after_fork(void);
