/* SPDX-License-Identifier: MIT */
/*
 * What was said already, so that a unit that restarts without end, or has a hundred equal workers, says it once. A table of hashes of fixed
 * size: what another one took the place of is said once more. Layer: daemon; pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOLD_SLOTS 1024

struct told {
        uint64_t hash[TOLD_SLOTS]; /* 0: free */
};

/* Whether TEXT about WHOM was said before; from now on it was. */
bool told_before(struct told *told, const char *whom, const char *text);
