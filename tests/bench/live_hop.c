/* SPDX-License-Identifier: MIT */
/* Passes malloc and free on and notes nothing: the least that any object before them costs. */
#include <stddef.h>

static inline void note_taken(void *block, size_t bytes) {
}

static inline void note_dropped(void *block) {
}

#include "live_wrap.h"

int64_t live_counted_bytes(void) {
        return 0;
}
