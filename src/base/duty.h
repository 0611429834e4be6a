/* SPDX-License-Identifier: MIT */
/*
 * The duty limit: how often something that costs time may be repeated. Agent
 * and daemon apply the same rule to statistics calls, so it lives below both.
 * Layer: base; pure.
 */
#pragma once

#include <stdint.h>

/* Statistics may cost at most 0.2 % of wall time: an allocator's walk holds its arena's lock. */
#define MG_DUTY_PERMYRIAD UINT64_C(20)

/*
 * Below so much a call costs what it costs anywhere: cold caches, first faults, the locks. 0.1 to 0.6 ms for a heap of 5 MiB with 9 free
 * chunks on a busy machine (2026-11-30, c1-arenas); scaled up from there, half a GiB would seem to take 60 ms, and never be looked at.
 */
#define MG_DUTY_SMALL_BYTES (UINT64_C(32) << 20)

/* The shortest time from the start of one call of COST_USEC to the start of the next. */
uint64_t duty_interval_usec(uint64_t cost_usec);

/*
 * What the next call will cost when the last one cost COST_USEC at THEN_BYTES of
 * resident heap and there are NOW_BYTES now. Free chunks grow at most with the heap,
 * so the cost is scaled up with growth (beyond MG_DUTY_SMALL_BYTES) and never down.
 */
uint64_t duty_predict_usec(uint64_t cost_usec, uint64_t then_bytes, uint64_t now_bytes);
