/* SPDX-License-Identifier: MIT */
/*
 * How the two objects meet. The public functions of libmemguard.so.0 and of libmemguard-preload.so go through one table:
 * the preload object's where that is loaded, whichever object a program's call has found, else the own one. So a
 * process has one agent. Layer: agent.
 */
#pragma once

#include "agent/memguard.h"

struct mg_entry {
        uint64_t api; /* MEMGUARD_API of the object; members are only added, at the end */
        int (*start)(const struct memguard_options *options);
        int (*stop)(void);
        int (*open)(const struct memguard_options *options);
        int (*get_fd)(void);
        int (*dispatch)(void);
        int (*close)(void);
        int (*cache_register)(
                        const char *name,
                        memguard_cache_bytes_fn bytes,
                        memguard_cache_shrink_fn shrink,
                        void *userdata,
                        struct memguard_cache **ret_cache);
        int (*cache_unregister)(struct memguard_cache *cache);
        int (*checkpoint)(const char *tag);
        int (*suspend)(const char *reason);
        int (*resume)(const char *reason);
};

/* Of this object: in linked.c, in preload.c. */
extern const struct mg_entry own_entry;
