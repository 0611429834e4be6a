/* SPDX-License-Identifier: MIT */
/*
 * Decides when this process has an agent thread: started by the program or with its first thread, taken away
 * while the program changes its rights, made anew in a forked child. All on threads of the program, which are kept from each
 * other by a lock whose every wait is bounded: when in doubt, the program's own call goes ahead. Layer: agent.
 */
#pragma once

#include <stdbool.h>

#include "agent/thread.h"

/* Beside thread-local storage. What callbacks of the program need is more than what the agent needs. */
#define MG_STACK_BYTES          (UINT64_C(48) * 1024)
#define MG_CALLBACK_STACK_BYTES (UINT64_C(256) * 1024)

/*
 * Once, before anything else, on the main thread where possible. SETTINGS is copied. Finds the allocators. Returns 0 or a
 * negative errno: then there will be no agent.
 */
int keeper_init(const struct mg_settings *settings,
                const char *mode,
                mg_create_fn create,
                bool makes_handles,
                size_t stack_bytes);

/*
 * Makes the thread, unless it runs or has been given up for good (then 0, too). SETTINGS, unless NULL, replace those
 * of keeper_init().
 */
int keeper_start(const struct mg_settings *settings);

/* Ends it. 0, -ETIMEDOUT. */
int keeper_stop(void);

/* The program has just made a thread: with MEMGUARD_THREAD=follow the agent starts with the first. */
void keeper_follow(void);

/* Callbacks of the program will run in the agent's thread: it is made anew if its stack is too small for them. */
void keeper_want_callbacks(void);

/* No agent in this process any more: none is made from now on (without a system call), or the present one ends, too. */
void keeper_forbid(void);
void keeper_give_up(void);

/* Whether it is so. Makes no system call. */
bool keeper_has_given_up(void);

/* The program serves its agent by itself, without a thread: none is made until unclaimed. False: there is one. */
bool keeper_claim(void);
void keeper_unclaim(void);

/* Whether this is the process the agent belongs to: false in a vfork() child, which shares its memory. */
bool keeper_is_ours(void);

struct mg_hold {
        bool held;
};

/* Takes the thread away, and keeps others from starting one. At most two seconds. */
struct mg_hold keeper_hold(void);

/* Ends a hold; the thread is made anew by the calling thread, so that it inherits what that one has left. */
void keeper_release(struct mg_hold hold);

/* In the child. */
void keeper_after_fork(void);
