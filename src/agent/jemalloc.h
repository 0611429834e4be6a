/* SPDX-License-Identifier: MIT */
/* jemalloc's control functions, wherever they were found. Layer: agent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/backend.h"

/* jemalloc's own signatures. */
typedef int (*mg_mallctl_fn)(
                const char *name,
                void *old,
                size_t *old_length,
                void *new_value,
                size_t new_length);
typedef int (*mg_mallctlnametomib_fn)(const char *name, size_t *mib, size_t *mib_length);
typedef int (*mg_mallctlbymib_fn)(
                const size_t *mib,
                size_t mib_length,
                void *old,
                size_t *old_length,
                void *new_value,
                size_t new_length);

struct mg_jemalloc_calls {
        mg_mallctl_fn ctl;
        mg_mallctlnametomib_fn name_to_mib;
        mg_mallctlbymib_fn by_mib;
};

/* In the child: background threads are gone, and come back if the program (or a tune) had them on. */
void jemalloc_after_fork(void);
