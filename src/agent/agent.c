/* SPDX-License-Identifier: MIT */
/* The agent as a whole. Layer: agent. */
#include "agent/agent.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "agent/arena_handles.h"
#include "agent/event_loop.h"
#include "agent/hooks.h"
#include "agent/jemalloc.h"

enum init_state {
        INIT_NONE,
        INIT_RUNNING,
        INIT_DONE,
};

static _Atomic(int) init_state;
static int init_result;
static void (*kind_after_fork)(void);

/* What pthread_atfork() calls; absent in other libcs, where a forked child simply has no agent. */
extern int __register_atfork(
                void (*prepare)(void),
                void (*parent)(void),
                void (*child)(void),
                void *dso_handle) __attribute__((weak));

static void after_fork(void) {
        int saved = errno;

        if (kind_after_fork)
                kind_after_fork();
        handles_after_fork();
        hooks_after_fork();
        jemalloc_after_fork();
        loop_after_fork();
        keeper_after_fork();
        errno = saved;
}

int agent_init(const struct mg_agent_kind *kind,
               const struct mg_settings *settings,
               mg_create_fn create) {
        const struct timespec pause = { .tv_nsec = 100000 };
        int expected = INIT_NONE;

        if (!atomic_compare_exchange_strong(&init_state, &expected, INIT_RUNNING)) {
                while (atomic_load(&init_state) != INIT_DONE)
                        nanosleep(&pause, NULL);
                return init_result;
        }
        kind_after_fork = kind->after_fork;
        init_result = keeper_init(
                        settings, kind->mode, create, kind->makes_handles, kind->stack_bytes);
        /* Never unregistered: the objects stay loaded. */
        if (init_result == 0 && __register_atfork)
                __register_atfork(NULL, NULL, after_fork, NULL);
        atomic_store(&init_state, INIT_DONE);
        return init_result;
}

int agent_start(const struct mg_settings *settings) {
        return loop_get_fd() >= 0 ? -EBUSY : keeper_start(settings);
}

int agent_stop(void) {
        return hooks_is_in_callback() ? -EDEADLK : keeper_stop();
}

int agent_open(const struct mg_settings *settings) {
        if (loop_get_fd() >= 0)
                return -EBUSY;
        if (!keeper_claim())
                return -EALREADY;
        int r = loop_open(settings);
        if (r < 0)
                keeper_unclaim();
        return r;
}

int agent_close(void) {
        if (hooks_is_in_callback())
                return -EDEADLK;
        if (loop_get_fd() < 0)
                return 0;
        loop_close();
        keeper_unclaim();
        return 0;
}

int agent_register_cache(
                const char *name,
                memguard_cache_bytes_fn bytes,
                memguard_cache_shrink_fn shrink,
                void *userdata,
                struct memguard_cache **ret_cache) {
        int r = hooks_register_cache(name, bytes, shrink, userdata, ret_cache);
        if (r == 0 && !hooks_is_in_callback())
                keeper_want_callbacks();
        return r;
}

int agent_apply_options(const struct memguard_options *options, struct mg_settings *settings) {
        if (!options)
                return 0;
        if (options->size < sizeof(*options))
                return -EINVAL;
        if (options->socket_path) {
                size_t length = strlen(options->socket_path);
                if (length == 0 || length >= sizeof(settings->socket_path))
                        return -EINVAL;
                memcpy(settings->socket_path, options->socket_path, length + 1);
        }
        if (options->delay_usec > 0)
                settings->delay_usec = options->delay_usec;
        return 0;
}
