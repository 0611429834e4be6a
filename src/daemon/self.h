/* SPDX-License-Identifier: MIT */
/*
 * What the watchdog itself costs: its allocator's own figures, its memory, its CPU time. Layer: daemon.
 */
#pragma once

#include <stdint.h>

#include "host/proc.h"

#define SELF_CPU_SAMPLES 13

/* By jemalloc's mallctl; MG_UNKNOWN where it does not say (a build without statistics). */
struct self_heap {
        uint64_t allocated_bytes;
        uint64_t active_bytes;
        uint64_t metadata_bytes;
        uint64_t resident_bytes;
        uint64_t mapped_bytes;
        uint64_t retained_bytes; /* jemalloc's word: address space, not memory */
};

/* CPU time against wall time, a ring with an entry each five seconds: the last minute. */
struct self_cpu {
        uint64_t at_usec[SELF_CPU_SAMPLES];
        uint64_t used_usec[SELF_CPU_SAMPLES];
        uint32_t head;
        uint32_t count;
};

struct self {
        struct mg_proc proc;
        struct self_cpu cpu;
        char allocator[64]; /* "jemalloc 5.3.0" */
};

int self_new(struct self **ret_self);
struct self *self_free(struct self *self);

/* From the tick: two reads of its own, no allocation. */
void self_tick(struct self *self, uint64_t now_usec);

/* MG_UNKNOWN where /proc does not say. */
uint64_t self_rss_anon(const struct self *self);

/* Of one CPU over the last minute (or since the start): 100 is 1 %. MG_UNKNOWN before the second tick. */
uint64_t self_cpu_permyriad(const struct self *self);

/* CPU time since the start; MG_UNKNOWN where the system does not say. */
uint64_t self_cpu_usec(void);

/* Takes some 10-90 us: on request, not on the tick. */
void self_heap(struct self_heap *ret_heap);

/* Gives back what a burst left: jemalloc decays only while it is used, and a steady tick uses none of it. */
void self_release(void);

/* What this thread has allocated and not freed so far, by jemalloc's count: two loads. 0 where it does not say. */
int64_t self_net_allocated(void);

/* Pure parts. */
void self_cpu_add(struct self_cpu *cpu, uint64_t now_usec, uint64_t used_usec);
uint64_t self_cpu_share(const struct self_cpu *cpu);
