/* SPDX-License-Identifier: MIT */
/*
 * Which of the due trims start now: at most MaxConcurrentTrims= at once, the biggest gain per predicted millisecond
 * first, and nobody waits for ever. Layer: core; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mg_candidate {
        void *unit; /* the caller's; never looked into */
        uint64_t expected_bytes;
        uint64_t predicted_pause_usec;
        uint64_t due_since_usec; /* since when it has been waiting */
        bool urgent;             /* under pressure: before all that are not */
};

/*
 * Reorders CANDIDATES so that the first RETURNED of them may start, given RUNNING trims now. The rest keep waiting
 * (MG_REASON_CONCURRENCY). A candidate's weight doubles each minute that it has waited.
 */
size_t schedule_pick(
                struct mg_candidate *candidates,
                size_t n_candidates,
                size_t running,
                size_t max_concurrent,
                uint64_t now_usec);
