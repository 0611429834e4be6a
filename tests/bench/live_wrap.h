/* SPDX-License-Identifier: MIT */
/*
 * Stands before malloc and free, once included in an object that is preloaded. Who includes it has defined before, inline,
 *
 *   void note_taken(void *block, size_t bytes)    a block, never NULL, that was just asked for
 *   void note_dropped(void *block)                one, never NULL, that is about to go
 *
 * All of this is cheaper than a real one would be: glibc's own names instead of dlsym(), the fastest model of thread-local storage.
 */
#pragma once

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

/* What is live, by what was noted. */
EXPORTED int64_t live_counted_bytes(void);

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void *__libc_valloc(size_t bytes);
extern void *__libc_pvalloc(size_t bytes);
extern void __libc_free(void *block);

static inline void *taken(void *block, size_t bytes) {
        if (block)
                note_taken(block, bytes);
        return block;
}

EXPORTED void *malloc(size_t bytes) {
        return taken(__libc_malloc(bytes), bytes);
}

EXPORTED void *calloc(size_t n, size_t bytes) {
        return taken(__libc_calloc(n, bytes), n * bytes);
}

EXPORTED void *memalign(size_t alignment, size_t bytes) {
        return taken(__libc_memalign(alignment, bytes), bytes);
}

EXPORTED void *aligned_alloc(size_t alignment, size_t bytes) {
        return taken(__libc_memalign(alignment, bytes), bytes);
}

EXPORTED void *valloc(size_t bytes) {
        return taken(__libc_valloc(bytes), bytes);
}

EXPORTED void *pvalloc(size_t bytes) {
        return taken(__libc_pvalloc(bytes), bytes);
}

EXPORTED int posix_memalign(void **ret_block, size_t alignment, size_t bytes) {
        if (alignment % sizeof(void *) != 0 || __builtin_popcountll(alignment) != 1)
                return EINVAL;
        void *block = taken(__libc_memalign(alignment, bytes), bytes);
        if (!block)
                return ENOMEM;
        *ret_block = block;
        return 0;
}

EXPORTED void *realloc(void *block, size_t bytes) {
        if (block)
                note_dropped(block);
        void *moved = __libc_realloc(block, bytes);
        /* A failure leaves the block where it is; NULL for no bytes is none. */
        if (moved || (block && bytes > 0))
                note_taken(moved ? moved : block, bytes);
        return moved;
}

EXPORTED void free(void *block) {
        if (!block)
                return;
        note_dropped(block);
        __libc_free(block);
}
