/* SPDX-License-Identifier: MIT */
/* A token bucket in integers. Layer: daemon; pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rate_limit {
        uint64_t refilled_usec;
        uint32_t tokens;
};

/* Takes one token; false: none left. BURST tokens at most, one more each INTERVAL_USEC. */
bool rate_limit_take(
                struct rate_limit *limit,
                uint32_t burst,
                uint64_t interval_usec,
                uint64_t now_usec);
