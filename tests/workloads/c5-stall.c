/* SPDX-License-Identifier: MIT *
 * Measured 2026-11-30, glibc 2.36, 2 cores, c5-stall --self-trim --hold=0: RssAnon 1,032 MiB for 64 MiB live;
 * malloc_trim(0) takes 1.3 s, with the arena locked, and leaves 328 MiB.
 */
/*
 * C5: one arena for all (as MALLOC_ARENA_MAX=1) with a very long free list: --size bytes in 1,000-byte blocks of which one in
 * --keep survives. Whoever walks that list holds the arena's lock, for a second or more. Meanwhile one thread allocates and frees blocks too
 * large for its cache, once a millisecond, and reports how long it waited: p99_usec and worst_usec of the summary are the
 * latency of that thread, one "latency" phase is printed each --period seconds.
 */
#include "workload.h"

#include <malloc.h>
#include <stdlib.h>

#define BLOCK 1000
#define PROBE 2000 /* beyond what the thread's cache holds: each one takes the arena's lock */

static uint64_t keep = 16, period = 5, arenas = 1;
static struct workload self = {
        .name = "c5-stall",
        .title = "a long free list in one arena, and a thread that measures its own stalls",
        .size = 1 << 30,
        .operations = 10000,
        .threads = 1,
        .hold_seconds = UINT64_MAX,
};
static const struct workload_option options[] = {
        { "keep", OPTION_COUNT, &keep, "one block of so many survives" },
        { "period", OPTION_COUNT, &period, "seconds between latency lines" },
        { "arenas", OPTION_COUNT, &arenas, "what MALLOC_ARENA_MAX would say" },
        {},
};

static void build(unsigned index, void *argument) {
        uint64_t blocks = self.size / self.threads / BLOCK;
        void **table = workload_map(blocks * sizeof(void *));

        (void) index, (void) argument;
        for (uint64_t i = 0; i < blocks; i++)
                table[i] = workload_alloc(BLOCK);
        for (uint64_t i = 0; i < blocks; i++)
                if (i % keep != 0)
                        free(table[i]);
        workload_unmap(table, blocks * sizeof(void *));
}

static void probe(unsigned index, void *argument) {
        uint64_t worst = 0, next_line = workload_now_usec() + period * 1000000;

        (void) argument;
        for (uint64_t done = 0; index == 0 && workload_goes_on(done); done++) {
                uint64_t started = workload_now_usec();
                void *block = malloc(PROBE);
                *(volatile char *) block = 1;
                free(block);
                workload_count(started);
                uint64_t now = workload_now_usec();
                worst = now - started > worst ? now - started : worst;
                if (now >= next_line) {
                        workload_phase("latency", "worst_usec=%lu", worst);
                        worst = 0;
                        next_line = now + period * 1000000;
                }
                workload_sleep_msec(1);
        }
}

int main(int argc, char **argv) {
        workload_start(&self, options, argc, argv);
        mallopt(M_ARENA_MAX, (int) arenas);
        if (keep == 0)
                keep = 1;
        workload_run(build, NULL);
        workload_phase("built", "free_blocks=%lu", self.size / BLOCK - self.size / BLOCK / keep);
        workload_run(probe, NULL);
        return workload_finish(self.size / keep);
}
