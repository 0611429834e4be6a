/* SPDX-License-Identifier: MIT */
/*
 * The wrapper of pthread_create: the agent starts with the program's first thread (MEMGUARD_THREAD=follow), and each
 * new thread leaves a handle on its arena before its own code begins. Layer: agent, preload object.
 */
#include <errno.h>
#include <pthread.h>

#include "agent/arena_handles.h"
#include "agent/keeper.h"
#include "agent/preload.h"
#include "base/macros.h"

/* A launch waits here from pthread_create() until the new thread has read it. When all are taken, the thread goes without a handle. */
#define MAX_LAUNCHES 64

struct launch {
        atomic_bool is_taken;
        void *(*routine)(void *);
        void *argument;
};

static struct launch launches[MAX_LAUNCHES];

static struct launch *take_launch(void *(*routine)(void *), void *argument) {
        for (size_t i = 0; i < MG_ELEMENTS(launches); i++) {
                if (atomic_exchange(&launches[i].is_taken, true))
                        continue;
                launches[i].routine = routine;
                launches[i].argument = argument;
                return &launches[i];
        }
        return NULL;
}

void wrap_thread_after_fork(void) {
        for (size_t i = 0; i < MG_ELEMENTS(launches); i++)
                atomic_store(&launches[i].is_taken, false);
}

static void *run_launched(void *argument) {
        struct launch *launch = argument;
        void *(*routine)(void *) = launch->routine;
        void *routine_argument = launch->argument;

        atomic_store(&launch->is_taken, false);
        handle_make();
        return routine(routine_argument);
}

static int create_launched(
                mg_create_fn next,
                pthread_t *thread,
                const pthread_attr_t *attributes,
                void *(*routine)(void *),
                void *argument) {
        struct launch *launch = handles_refusal() ? NULL : take_launch(routine, argument);

        if (!launch)
                return next(thread, attributes, routine, argument);
        int r = next(thread, attributes, run_launched, launch);
        if (r != 0)
                atomic_store(&launch->is_taken, false);
        return r;
}

MG_PUBLIC int pthread_create(
                pthread_t *thread,
                const pthread_attr_t *attributes,
                void *(*routine)(void *),
                void *argument) {
        static mg_next_symbol cache;
        mg_create_fn next = (mg_create_fn) preload_find_next(&cache, "pthread_create");

        if (!next)
                return ENOSYS;
        if (!atomic_load(&preload_is_active))
                return next(thread, attributes, routine, argument);
        int r = create_launched(next, thread, attributes, routine, argument);
        /* Where threads are limited, the one too many is ours. */
        if (r == EAGAIN && thread_is_running() && keeper_is_ours()) {
                keeper_give_up();
                r = create_launched(next, thread, attributes, routine, argument);
        }
        if (r == 0)
                keeper_follow();
        return r;
}
