/* SPDX-License-Identifier: MIT *
 * Measured 2026-11-30, glibc 2.36, jemalloc 5.3.0, c8-two-heaps --self-trim --hold=0: RssAnon 379 MiB for 128 KiB live; malloc_trim(0)
 * alone leaves jemalloc's 179 MiB.
 */
/*
 * C8: two heaps in one process: half of the blocks come from a statically linked jemalloc whose symbols are prefixed (as Rust
 * programs have it), the other half from glibc; each keeps --size/2 bytes after the burst. The program asks for background threads by
 * a symbol called malloc_conf, which a prefixed build never reads: the request is silently without effect. The prefixed names are in the
 * executable's .symtab alone.
 */
#include "workload.h"

#include <stdlib.h>

void *_rjem_malloc(size_t bytes);
void _rjem_free(void *block);
extern const char *malloc_conf;
const char *malloc_conf = "background_thread:true";

#define BLOCK (16 << 10)

static void **table;
static uint64_t blocks_each;
static struct workload self = {
        .name = "c8-two-heaps",
        .title = "a prefixed static jemalloc beside glibc, a burst in both",
        .size = 400 << 20,
        .operations = UINT64_MAX,
        .threads = 4,
        .hold_seconds = UINT64_MAX,
};

static void *alloc(uint64_t i) {
        if (i % 2 == 0)
                return workload_alloc(BLOCK);
        char *block = _rjem_malloc(BLOCK);
        for (size_t at = 0; block != NULL && at < BLOCK; at += 1024)
                block[at] = 1;
        return block;
}

static void burst(unsigned index, void *argument) {
        void **mine = table + index * blocks_each;

        (void) argument;
        for (uint64_t i = 0; i < blocks_each && workload_goes_on(0); i++) {
                uint64_t started = workload_now_usec();
                mine[i] = alloc(i);
                workload_count(started);
        }
        for (uint64_t i = 0; i + 2 < blocks_each; i++)
                (i % 2 == 0 ? free : _rjem_free)(mine[i]);
}

int main(int argc, char **argv) {
        workload_start(&self, NULL, argc, argv);
        blocks_each = self.size / self.threads / BLOCK;
        table = workload_map(self.threads * blocks_each * sizeof(void *) + 1);
        workload_run(burst, NULL);
        return workload_finish(self.threads * 2 * BLOCK);
}
