/* SPDX-License-Identifier: MIT */
/*
 * What the program tells its agent: registered caches, checkpoints, suspensions. Threads of the program write, the agent reads; both sides
 * use atomics alone, so that neither can hold up the other. Layer: agent; no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/memguard.h"
#include "proto/proto.h"

/* How the agent is told that there is news; may be NULL. */
typedef void (*hooks_wake_fn)(void);
void hooks_set_wake(hooks_wake_fn wake);

/* As the functions of memguard.h. */
int hooks_register_cache(
                const char *name,
                memguard_cache_bytes_fn bytes,
                memguard_cache_shrink_fn shrink,
                void *userdata,
                struct memguard_cache **ret_cache);
int hooks_unregister_cache(struct memguard_cache *cache);
int hooks_checkpoint(const char *tag);
int hooks_suspend(const char *reason);
int hooks_resume(const char *reason);

uint64_t hooks_suspended(void);

/* Asks each cache for its bytes. */
void hooks_count_caches(uint64_t *ret_caches, uint64_t *ret_bytes);

/* Asks each cache to shrink, until GOAL_BYTES (0: all of them) are gone. Returns the sum. */
uint64_t hooks_shrink_caches(uint64_t goal_bytes);

/* Whether the calling thread is inside a cache's callback. */
bool hooks_is_in_callback(void);

/* News for the daemon, oldest first. */
struct mg_event {
        enum mg_verb verb; /* checkpoint, suspend, resume */
        uint64_t suspended;
        char text[MEMGUARD_NAME_MAX + 1];
};

bool hooks_has_event(void);
bool hooks_take_event(struct mg_event *ret_event);

/* Forgets news: a new connection starts with a hello that has the depth. */
void hooks_drop_events(void);

/* In the child: callbacks that ran in the parent's agent do not run here. */
void hooks_after_fork(void);
