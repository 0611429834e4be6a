/* SPDX-License-Identifier: MIT */
/* Looks at the statistics under the duty limit. Layer: agent. */
#include "agent/look.h"

#include "agent/heaps.h"
#include "agent/process.h"
#include "base/duty.h"
#include "base/macros.h"

/* A heap of 32 MiB has at most 1e6 free chunks of the smallest size, and 1e4 usual ones: 1.7 ms (glibc 2.36). */
#define YOUNG_HEAP_BYTES (32 * MG_MIB)

void look_init(struct mg_look *look) {
        *look = (struct mg_look){ .cost_usec = MG_UNKNOWN,
                                  .cost_bytes = MG_UNKNOWN,
                                  .base_bytes = MG_UNKNOWN };
        for (size_t i = 0; i < MG_HEAPS_MAX; i++)
                look->free_chunks[i] = MG_UNKNOWN;
}

const char *look_refusal(
                const struct mg_look *look,
                uint64_t rss_anon_bytes,
                uint64_t now_usec,
                uint64_t limit_usec) {
        if (look->cost_usec == MG_UNKNOWN)
                return "duty: the heap was first met large, its cost is not known";
        uint64_t predicted = duty_predict_usec(look->cost_usec, look->cost_bytes, rss_anon_bytes);
        if (limit_usec != MG_UNKNOWN && predicted > limit_usec)
                return "duty: predicted to take longer than the limit";
        if (mg_sub_floor(now_usec, look->started_at_usec) < duty_interval_usec(look->cost_usec))
                return "duty: too soon after the last one";
        return NULL;
}

void look_recall(const struct mg_look *look, struct mg_message *message) {
        message->number[MG_NUMBER_STATS_COST_USEC] = look->cost_usec;
        message->number[MG_NUMBER_STATS_COST_BYTES] = look->cost_bytes;
        message->number[MG_NUMBER_BASE_BYTES] = look->base_bytes;
        for (size_t i = 0; i < proto_heap_count(message); i++)
                message->heap[i].number[MG_HEAP_FREE_CHUNKS] = look->free_chunks[i];
}

bool look_take(struct mg_look *look, uint64_t rss_anon_bytes, struct mg_message *message) {
        /*
         * The walk itself is what can hold others up, so its cost is CPU time: on the clock, waiting for a lock that a
         * busy program holds would count as well (111 ms for 9 free chunks, 2026-11-30), and forbid the next call.
         */
        uint64_t started = process_now_usec();
        uint64_t cpu_before = process_thread_cpu_usec();
        bool known = heaps_stats(message) > 0;

        if (known) {
                look->cost_usec = process_thread_cpu_usec() - cpu_before;
                look->cost_bytes = rss_anon_bytes;
                look->started_at_usec = started;
                for (size_t i = 0; i < MG_HEAPS_MAX; i++)
                        look->free_chunks[i] = message->heap[i].number[MG_HEAP_FREE_CHUNKS];
        }
        message->number[MG_NUMBER_STATS_COST_USEC] = look->cost_usec;
        message->number[MG_NUMBER_STATS_COST_BYTES] = look->cost_bytes;
        return known;
}

/* What the allocators took from the system is at least what of them is resident, while they are young. Unknown when one keeps silent. */
static uint64_t sum_heaps(const struct mg_message *message) {
        uint64_t sum = 0;

        for (size_t i = 0; i < proto_heap_count(message); i++) {
                uint64_t bytes = message->heap[i].number[MG_HEAP_RESIDENT_BYTES];
                if (bytes == MG_UNKNOWN)
                        bytes = message->heap[i].number[MG_HEAP_SYSTEM_BYTES];
                if (bytes == MG_UNKNOWN)
                        return MG_UNKNOWN;
                sum = mg_add_cap(sum, bytes);
        }
        return sum;
}

void look_take_young(struct mg_look *look, uint64_t rss_anon_bytes, struct mg_message *message) {
        if (look->cost_usec != MG_UNKNOWN || rss_anon_bytes > YOUNG_HEAP_BYTES)
                return;
        if (!look_take(look, rss_anon_bytes, message))
                return;
        uint64_t heaps = sum_heaps(message);
        if (heaps != MG_UNKNOWN)
                look->base_bytes = mg_sub_floor(rss_anon_bytes, heaps);
}
