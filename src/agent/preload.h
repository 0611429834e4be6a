/* SPDX-License-Identifier: MIT */
/* What the preload object's wrappers share. Layer: agent. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

typedef _Atomic(void *) mg_next_symbol;

/* The definition of NAME that the program would have called without us; NULL when there is none. */
void *preload_find_next(mg_next_symbol *cache, const char *name);

/* In a forked child: launches that were under way belong to the parent's threads. */
void wrap_thread_after_fork(void);

/* Set once the constructor has found that there is to be an agent. Before and otherwise wrappers only pass on. */
extern atomic_bool preload_is_active;
