/* SPDX-License-Identifier: MIT */
/* A token bucket in integers. Layer: daemon; pure. */
#include "daemon/rate_limit.h"

#include "base/macros.h"

bool rate_limit_take(
                struct rate_limit *limit,
                uint32_t burst,
                uint64_t interval_usec,
                uint64_t now_usec) {
        uint64_t earned = mg_sub_floor(now_usec, limit->refilled_usec) / interval_usec;

        if (limit->refilled_usec == 0 || earned >= burst - limit->tokens) {
                limit->tokens = burst;
                limit->refilled_usec = now_usec;
        } else {
                limit->tokens += (uint32_t) earned;
                limit->refilled_usec += earned * interval_usec;
        }
        if (limit->tokens == 0)
                return false;
        limit->tokens--;
        return true;
}
