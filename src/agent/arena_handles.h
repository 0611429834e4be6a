/* SPDX-License-Identifier: MIT */
/*
 * The tops of glibc's thread arenas, which malloc_trim() never touches: up to 64 MiB an arena. realloc() works in the
 * block's own arena, whoever calls it; so one small block per arena, a handle, allocated there by a thread of the program,
 * lets the agent run that arena's own top trimming: grown beyond 64 KiB and shrunk again, its remainder takes
 * glibc's path that ends in heap_trim().
 *
 * Handles are made by new threads of the program and stay for good (the arena outlives its threads). They pin no heaps: in an hour
 * of threads that come and go (tests/bench/run churn, 2026-11-30, glibc 2.36, 15 arenas), trimmed 265 times, resident over live was
 * 2.01 in the first quarter and 2.00 in the last; with no handles it went from 2.89 to 2.92. Address space of the arenas grew alike: 456 to
 * 490 MiB, and 439 to 478. The registry is a static array, written without locks. Layer: agent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/backend.h"
#include "agent/settings.h"

/*
 * Whether malloc() behaves as glibc's does: whatever answers to the name may have been replaced in place (valgrind does
 * that), and then there is nothing before a block that could be read. On a thread of the program.
 */
bool handles_recognise_malloc(void);

/* Once, on a thread of the program. SERVED: the program's malloc() is glibc's own. */
void handles_enable(bool served, const struct mg_malloc_settings *settings);

/* NULL when handles are made, else why not, as static text. */
const char *handles_refusal(void);

/* On a new thread of the program, before its own code runs. Leaves errno alone. */
void handle_make(void);

/* Arenas that have handles, or had. */
size_t handles_count(void);

/*
 * The largest arena's share of TOTAL_BYTES (of all arenas; what is not in arenas with handles counts as the main
 * arena's), in hundredths of a percent: all of it where that cannot be seen.
 */
uint64_t handles_largest_share_permyriad(uint64_t total_bytes);

/* In the child, first of all: what the parent's agent held at that moment is lost. */
void handles_after_fork(void);

/*
 * Trims the tops within reach, one arena after the other, until trim_is_over(). Returns the longest that an arena was
 * locked, in microseconds. *ret_complete tells whether all had their turn. Not in a process whose memory is locked.
 */
uint64_t handles_trim_tops(const struct mg_trim_request *request, bool *ret_complete);
