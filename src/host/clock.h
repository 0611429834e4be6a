/* SPDX-License-Identifier: MIT */
/* Clocks, for what an event loop's own idea of now is too coarse for. Layer: host. */
#pragma once

#include <stdint.h>
#include <time.h>

#include "base/macros.h"

static inline uint64_t clock_read_usec(clockid_t clock) {
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t) now.tv_sec * MG_USEC_PER_SEC + (uint64_t) now.tv_nsec / 1000;
}

/* Monotonic, and moving while a handler of an event loop runs. */
static inline uint64_t clock_now_usec(void) {
        return clock_read_usec(CLOCK_MONOTONIC);
}

/* What people call the time. */
static inline uint64_t clock_wall_usec(void) {
        return clock_read_usec(CLOCK_REALTIME);
}
