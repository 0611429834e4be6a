/* SPDX-License-Identifier: MIT */
/*
 * libmemguard-preload.so: the same agent for unmodified programs, by LD_PRELOAD. Here its constructor; its wrappers
 * are in wrap_rights.c and wrap_thread.c. Whatever goes wrong: the program runs as if this were not there.
 * Layer: agent.
 */
#include "agent/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/event_loop.h"
#include "agent/hooks.h"
#include "base/macros.h"

extern char **environ;

atomic_bool preload_is_active;

static struct mg_settings settings;
static const struct mg_agent_kind preload_kind = { .mode = "preload",
                                                   .makes_handles = true,
                                                   .stack_bytes = MG_STACK_BYTES,
                                                   .after_fork = wrap_thread_after_fork };

void *preload_find_next(mg_next_symbol *cache, const char *name) {
        void *next = atomic_load(cache);

        if (!next) {
                next = dlsym(RTLD_NEXT, name);
                atomic_store(cache, next);
        }
        return next;
}

/* Takes this object out of the LD_PRELOAD that children inherit; the loader has long read it. */
static void strip_environment(void) {
        static const char name[] = "LD_PRELOAD=";
        Dl_info own;

        if (!environ || dladdr((const void *) strip_environment, &own) == 0 || !own.dli_fname)
                return;
        for (char **entry = environ; *entry; entry++) {
                if (strncmp(*entry, name, sizeof(name) - 1) != 0)
                        continue;
                if (preload_list_strip(*entry + sizeof(name) - 1, own.dli_fname) == 0) {
                        for (char **rest = entry; *rest; rest++)
                                rest[0] = rest[1];
                }
                return;
        }
}

__attribute__((constructor)) static void load(void) {
        static mg_next_symbol create;
        int saved = errno;

        settings_read(&settings);
        if (settings.strip_children)
                strip_environment();
        if (!settings.disabled) {
                /*
                 * An allocator that follows forks registers itself at its first use: before us, so that a child's heap is
                 * usable again when our handler runs.
                 */
                void *volatile block = malloc(1);
                free(block);
                mg_create_fn next = (mg_create_fn) preload_find_next(&create, "pthread_create");
                if (next && agent_init(&preload_kind, &settings, next) == 0) {
                        atomic_store(&preload_is_active, true);
                        if (settings.thread_mode == MG_THREAD_ALWAYS)
                                agent_start(NULL);
                }
        }
        errno = saved;
}

/* The operator's word counts: an agent that he wants is not ended by the program, and one that he forbids is not started. */
static int start(const struct memguard_options *options) {
        struct mg_settings ignored;

        int r = agent_apply_options(options, &ignored);
        if (r < 0 || !atomic_load(&preload_is_active) || settings.thread_mode == MG_THREAD_NEVER)
                return r;
        return agent_start(NULL);
}

static int stop(void) {
        return hooks_is_in_callback() ? -EDEADLK : 0;
}

static int open_loop(const struct memguard_options *options) {
        struct mg_settings own = settings;

        int r = agent_apply_options(options, &own);
        if (r < 0)
                return r;
        return atomic_load(&preload_is_active) ? agent_open(&own) : -EALREADY;
}

const struct mg_entry own_entry = {
        .api = MEMGUARD_API,
        .start = start,
        .stop = stop,
        .open = open_loop,
        .get_fd = loop_get_fd,
        .dispatch = loop_dispatch,
        .close = agent_close,
        .cache_register = agent_register_cache,
        .cache_unregister = hooks_unregister_cache,
        .checkpoint = hooks_checkpoint,
        .suspend = hooks_suspend,
        .resume = hooks_resume,
};

extern MG_PUBLIC const struct mg_entry memguard_preloaded __attribute__((alias("own_entry")));
