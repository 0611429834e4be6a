/* SPDX-License-Identifier: MIT */
/*
 * What would know live bytes at all times: an object to preload that stands before malloc and free. Built twice: COUNTS=1
 * adds and subtracts usable sizes in a counter of each thread, COUNTS=0 only passes on, which is the least that any such
 * object can cost. Both are cheaper than a real one: glibc's own names instead of dlsym(), the fastest model of thread-local storage,
 * and no counter is ever given back.
 */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define THREADS_MOST 256
#define EXPORTED     __attribute__((visibility("default")))

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void *__libc_valloc(size_t bytes);
extern void *__libc_pvalloc(size_t bytes);
extern void __libc_free(void *block);

EXPORTED int64_t live_counted_bytes(void);

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
        atomic_store_explicit(
                        &own->bytes,
                        atomic_load_explicit(&own->bytes, memory_order_relaxed) + bytes,
                        memory_order_relaxed);
}

static inline void *taken(void *block) {
        if (COUNTS && block)
                add((int64_t) malloc_usable_size(block));
        return block;
}

int64_t live_counted_bytes(void) {
        int64_t sum = 0;
        unsigned n = atomic_load(&n_counters);

        for (unsigned i = 0; i < n; i++)
                sum += atomic_load_explicit(&counters[i].bytes, memory_order_relaxed);
        return sum;
}

EXPORTED void *malloc(size_t bytes) {
        return taken(__libc_malloc(bytes));
}

EXPORTED void *calloc(size_t n, size_t bytes) {
        return taken(__libc_calloc(n, bytes));
}

EXPORTED void *memalign(size_t alignment, size_t bytes) {
        return taken(__libc_memalign(alignment, bytes));
}

EXPORTED void *aligned_alloc(size_t alignment, size_t bytes) {
        return taken(__libc_memalign(alignment, bytes));
}

EXPORTED void *valloc(size_t bytes) {
        return taken(__libc_valloc(bytes));
}

EXPORTED void *pvalloc(size_t bytes) {
        return taken(__libc_pvalloc(bytes));
}

EXPORTED int posix_memalign(void **ret_block, size_t alignment, size_t bytes) {
        if (alignment % sizeof(void *) != 0 || __builtin_popcountll(alignment) != 1)
                return EINVAL;
        void *block = taken(__libc_memalign(alignment, bytes));
        if (!block)
                return ENOMEM;
        *ret_block = block;
        return 0;
}

EXPORTED void *realloc(void *block, size_t bytes) {
        if (!COUNTS)
                return __libc_realloc(block, bytes);
        int64_t before = block ? (int64_t) malloc_usable_size(block) : 0;
        void *moved = __libc_realloc(block, bytes);
        /* NULL is a failure, which leaves the block, unless it was asked for. */
        if (moved || bytes == 0)
                add((moved ? (int64_t) malloc_usable_size(moved) : 0) - before);
        return moved;
}

EXPORTED void free(void *block) {
        if (COUNTS && block)
                add(-(int64_t) malloc_usable_size(block));
        __libc_free(block);
}
