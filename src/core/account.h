/* SPDX-License-Identifier: MIT */
/*
 * Section 4 of the design: from what was measured to live, freeable, pinned and other.
 *
 *     anon (+ swap) = live + freeable + pinned + other     always
 *
 * Layer: core; pure.
 */
#pragma once

#include "core/sample.h"

struct mg_account {
        uint64_t anon_bytes; /* as the source gives it, swap not included */
        uint64_t swap_bytes; /* 0 where unknown */
        uint64_t live_bytes;
        uint64_t retained_bytes;
        uint64_t freeable_bytes;
        uint64_t pinned_bytes;
        uint64_t other_bytes;
        uint64_t lazyfree_bytes;
        uint64_t reach_bytes; /* of retained: what the allocators believe they can give back, stuck or not */
        bool anon_known; /* else anon_bytes is 0 for want of any source */
        bool known;      /* at least one process's statistics are in: else all is other */
};

/* What one process's allocators hold resident without it being live; MG_UNKNOWN without statistics. */
uint64_t account_process_retained(const struct mg_process_sample *process);

/* Pages the process has given back with MADV_FREE and the kernel has not taken yet; 0 where keys lack. */
uint64_t account_lazyfree(const struct mg_memory *memory);

/* What a trim's success is judged by: anon - lazyfree + swap. */
uint64_t account_footprint(const struct mg_memory *memory);

/* STUCK_BYTES: retained that the last trims could not get, learned by the policy. */
void account_unit(
                const struct mg_unit_sample *sample,
                uint64_t stuck_bytes,
                struct mg_account *ret);

/* Divides retained anew between freeable and pinned. */
void account_set_stuck(struct mg_account *account, uint64_t stuck_bytes);

/* How much of a process's retained memory its allocators could give back; 0 without statistics or means. */
uint64_t account_process_reach(const struct mg_process_sample *process);
