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
 * What a call costs apart from the heap's size (6-80 us, glibc 2.36) does not grow with it: measured on less than this it
 * counts as measured on this much. Else 20 us at a start-up's 140 KiB would forbid every look at 1 GiB (150 ms predicted).
 */
#define MG_DUTY_GRAIN_BYTES (UINT64_C(32) << 20)

/* The shortest time from the start of one call of COST_USEC to the start of the next. */
uint64_t duty_interval_usec(uint64_t cost_usec);

/*
 * What the next call will cost when the last one cost COST_USEC at THEN_BYTES of
 * resident heap and there are NOW_BYTES now. Free chunks grow at most with the heap,
 * so the cost is scaled up with growth and never down.
 */
uint64_t duty_predict_usec(uint64_t cost_usec, uint64_t then_bytes, uint64_t now_bytes);
