/* SPDX-License-Identifier: MIT *
 * Measured 2026-11-30, glibc 2.36, 2 cores, c3-pinned --self-trim --hold=0: RssAnon 528 MiB for 73 MiB live,
 * before and after malloc_trim(0): gain 0.
 */
/*
 * C3: --threads threads each allocate small blocks and free all but each --keep'th: every page keeps a survivor, so most of the
 * memory is retained and none of it can be given back. A trim brings nothing, whatever the allocator's counters promise.
 */
#include "workload.h"

#include <stdlib.h>

static uint64_t blocks = 131072, block_bytes = 512, keep = 7;
static void **table;
static struct workload self = {
        .name = "c3-pinned",
        .title = "a survivor on every page",
        .operations = UINT64_MAX,
        .threads = 8,
        .hold_seconds = UINT64_MAX,
};
static const struct workload_option options[] = {
        { "blocks", OPTION_COUNT, &blocks, "of each thread" },
        { "block", OPTION_SIZE, &block_bytes, "bytes of each" },
        { "keep", OPTION_COUNT, &keep, "one of so many survives" },
        {},
};

static void fill(unsigned index, void *argument) {
        void **mine = table + index * blocks;

        (void) argument;
        for (uint64_t i = 0; i < blocks && workload_goes_on(0); i++) {
                uint64_t started = workload_now_usec();
                mine[i] = workload_alloc(block_bytes);
                workload_count(started);
        }
}

static void thin_out(unsigned index, void *argument) {
        void **mine = table + index * blocks;

        (void) argument;
        for (uint64_t i = 0; i + 1 < blocks; i++)
                if (i % keep != 0)
                        free(mine[i]);
}

int main(int argc, char **argv) {
        workload_start(&self, options, argc, argv);
        if (self.size > 0)
                blocks = self.size / self.threads / block_bytes;
        if (keep == 0)
                keep = 1;
        uint64_t table_bytes = self.threads * blocks * sizeof(void *);
        table = workload_map(table_bytes);
        workload_run(fill, NULL);
        workload_phase("full", NULL);
        workload_run(thin_out, NULL);
        workload_unmap(table, table_bytes);
        return workload_finish(self.threads * (blocks / keep + 1) * block_bytes);
}
