/* SPDX-License-Identifier: MIT */
/* Counts live bytes: usable sizes, added and subtracted in a counter of each thread. The counters of threads that ended stay. */
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define THREADS_MOST 256

/* Written by its thread alone, on a cache line of its own. Blocks freed by another thread than took them make it negative. */
struct counter {
        _Alignas(64) _Atomic(int64_t) bytes;
};

static struct counter counters[THREADS_MOST];
static atomic_uint n_counters;
static _Thread_local struct counter *own __attribute__((tls_model("initial-exec")));

__attribute__((noinline, cold)) static void claim(void) {
        unsigned at = atomic_fetch_add(&n_counters, 1);

        if (at >= THREADS_MOST)
                abort();
        own = &counters[at];
}

static inline void add(int64_t bytes) {
        if (__builtin_expect(!own, 0))
                claim();
        bytes += atomic_load_explicit(&own->bytes, memory_order_relaxed);
        atomic_store_explicit(&own->bytes, bytes, memory_order_relaxed);
}

static inline void note_taken(void *block, size_t bytes) {
        add((int64_t) malloc_usable_size(block));
}

static inline void note_dropped(void *block) {
        add(-(int64_t) malloc_usable_size(block));
}

#include "live_wrap.h"

int64_t live_counted_bytes(void) {
        int64_t sum = 0;
        unsigned n = atomic_load(&n_counters);

        for (unsigned i = 0; i < n; i++)
                sum += atomic_load_explicit(&counters[i].bytes, memory_order_relaxed);
        return sum;
}
