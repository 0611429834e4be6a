/* SPDX-License-Identifier: MIT */
/*
 * The agent as a whole, the same in both objects: what stands behind the public functions once it is known with which
 * settings it runs. Layer: agent.
 */
#pragma once

#include <stdbool.h>

#include "agent/entry.h"
#include "agent/keeper.h"

/* What differs between the two objects. */
struct mg_agent_kind {
        const char *mode; /* for hello */
        bool makes_handles;
        size_t stack_bytes;
        void (*after_fork)(void); /* in the child, first of all; or NULL */
};

/*
 * Once in a process: finds the allocators, follows forks. Later calls return what the first one did: 0 or a negative errno.
 * CREATE is the C library's pthread_create.
 */
int agent_init(const struct mg_agent_kind *kind,
               const struct mg_settings *settings,
               mg_create_fn create);

/* After agent_init(); as the public functions, without their options. */
int agent_start(const struct mg_settings *settings);
int agent_stop(void);
int agent_open(const struct mg_settings *settings);
int agent_close(void);
int agent_register_cache(
                const char *name,
                memguard_cache_bytes_fn bytes,
                memguard_cache_shrink_fn shrink,
                void *userdata,
                struct memguard_cache **ret_cache);

/* Takes OPTIONS (NULL: none) over into SETTINGS. 0 or -EINVAL. */
int agent_apply_options(const struct memguard_options *options, struct mg_settings *settings);
