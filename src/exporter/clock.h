/* SPDX-License-Identifier: MIT */
/* The clock that all time limits here go by. Layer: exporter. */
#pragma once

#include <time.h>

#include "base/macros.h"

static inline uint64_t clock_now_usec(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * MG_USEC_PER_SEC + (uint64_t) ts.tv_nsec / 1000;
}
