/* SPDX-License-Identifier: MIT */
/*
 * The tick: sample every unit, decide, start what is due. Allocates nothing while the set of units and processes
 * stays the same. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct manager;
struct mg_unit_sample;
struct unit;

int tick_start(struct manager *manager);

/* IntervalSec= may have changed. */
void tick_rearm(struct manager *manager);

/*
 * One turn of the event loop: waits for an event or the next tick, WAIT_USEC at most, and deals with what comes first. The tick
 * is the loop's own time limit: a timer costs a tick over few units as much as its reads (tests/bench). Returns < 0: the loop failed.
 */
int tick_run(struct manager *manager, uint64_t wait_usec);

/*
 * A pass between two ticks over the units under pressure and those that wish for one, from the event loop as soon as it has the time,
 * but GAP_USEC after the last such pass at the earliest.
 */
void tick_between(struct manager *manager, uint64_t gap_usec);

/* UNIT wishes for one. The next tick may come first. */
void tick_soon(struct unit *unit);

/* There is room for another trim: those that pressure makes urgent do not wait for the next tick. */
void tick_trim_ended(struct manager *manager);

/* A sample of UNIT from what is known; PROCESSES are the manager's scratch, valid until the next call. */
void tick_fill_sample(struct unit *unit, struct mg_unit_sample *ret_sample);

/* Reads the unit's numbers again, now, VmSwap too where that is dear (WITH_SWAP). -ENODEV: the unit is gone; old numbers stay. */
int tick_measure(struct unit *unit, bool with_swap);

/*
 * The same, and looks whether it is still there: processes that have ended leave, and where its path is a new cgroup by now the
 * unit starts afresh. Returns false when it has ended; the caller ends it. Never from within a round.
 */
bool tick_refresh(struct unit *unit, bool with_swap);
