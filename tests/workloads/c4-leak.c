/* SPDX-License-Identifier: MIT *
 * Measured 2026-11-30, glibc 2.36, 2 cores, c4-leak --seconds=3 --hold=0: live 3.0 MiB, RssAnon 64 MiB (the freed
 * burst is retained).
 */
/*
 * C4: a real leak: --rate bytes a second in 200-byte blocks that nobody frees, and beside it a burst of --size bytes that
 * comes and goes each --period seconds. Live grows with anon; a trim can only ever return the burst. Runs --seconds, or until a signal.
 */
#include "workload.h"

#include <stdlib.h>

#define BLOCK       200
#define BURST_BLOCK (16 << 10)
#define TICK_MSEC   100

static uint64_t rate = 1 << 20, period = 20, leaked;
static struct workload self = {
        .name = "c4-leak",
        .title = "a leak, and a burst that comes and goes",
        .size = 64 << 20,
        .operations = UINT64_MAX,
        .threads = 1,
        .hold_seconds = UINT64_MAX,
};
static const struct workload_option options[] = {
        { "rate", OPTION_SIZE, &rate, "bytes leaked a second" },
        { "period", OPTION_COUNT, &period, "seconds between bursts" },
        {},
};

static void leak_until(uint64_t bytes) {
        for (; leaked < bytes; leaked += BLOCK) {
                uint64_t started = workload_now_usec();
                workload_alloc(BLOCK);
                workload_count(started);
        }
}

static void burst(void) {
        uint64_t blocks = self.size / BURST_BLOCK;
        void **table = workload_map(blocks * sizeof(void *) + 1);

        for (uint64_t i = 0; i < blocks; i++)
                table[i] = workload_alloc(BURST_BLOCK);
        workload_alloc(BLOCK); /* pins the top behind the burst; it is part of the leak */
        leaked += BLOCK;
        for (uint64_t i = 0; i < blocks; i++)
                free(table[i]);
        workload_unmap(table, blocks * sizeof(void *) + 1);
        workload_phase("burst", "leaked_bytes=%lu", leaked);
}

int main(int argc, char **argv) {
        workload_start(&self, options, argc, argv);
        uint64_t started = workload_now_usec(), next_burst = started;
        while (workload_goes_on(0)) {
                uint64_t now = workload_now_usec();
                leak_until((now - started) * rate / 1000000);
                if (now >= next_burst) {
                        burst();
                        next_burst = now + period * 1000000;
                }
                workload_sleep_msec(TICK_MSEC);
        }
        return workload_finish(leaked);
}
