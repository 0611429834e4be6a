/* SPDX-License-Identifier: MIT */
/*
 * A look at the statistics, and whether one may be taken now: walking a heap holds its locks, so it may cost at
 * most a small share of wall time and never more than the unit's longest pause. Layer: agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/proto.h"

/* What is remembered from one look to the next, over connections too. */
struct mg_look {
        uint64_t cost_usec;  /* CPU time of the last one; MG_UNKNOWN: none yet */
        uint64_t cost_bytes; /* RssAnon at that time */
        uint64_t free_chunks
                        [MG_HEAPS_MAX]; /* by heap, for the next hello: a new daemon predicts from them */
        uint64_t started_at_usec;
        uint64_t base_bytes; /* RssAnon outside the heaps, from the first look at a young heap */
};

void look_init(struct mg_look *look);

/* NULL when a look may be taken now, else why not. Pure. LIMIT_USEC may be MG_UNKNOWN. */
const char *look_refusal(
                const struct mg_look *look,
                uint64_t rss_anon_bytes,
                uint64_t now_usec,
                uint64_t limit_usec);

/* What the last one cost and found, into MESSAGE, which describes all heaps. */
void look_recall(const struct mg_look *look, struct mg_message *message);

/* Takes one, into MESSAGE's heaps and cost. False when no allocator here has statistics. */
bool look_take(struct mg_look *look, uint64_t rss_anon_bytes, struct mg_message *message);

/*
 * At the first connection, into the hello MESSAGE: only where RSS_ANON_BYTES is small enough that it costs nothing. A heap first met
 * large is not walked unasked.
 */
void look_take_young(struct mg_look *look, uint64_t rss_anon_bytes, struct mg_message *message);
