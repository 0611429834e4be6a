/* SPDX-License-Identifier: MIT */
/*
 * What is known of glibc's layout, and where the top of a thread arena is. The same from 2.26 to 2.42 on 64-bit
 * machines: the word before a block holds its size and three flags; a thread arena lives in heaps that are
 * aligned to 64 MiB and begin with a pointer to the arena, one to the previous heap, and the size in use.
 * Everything read here without the arena's lock is a hint: it is checked against itself, and what is then done
 * goes through glibc's own calls, which take the lock. Layer: agent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

#define MG_HEAP_ALIGNMENT (UINT64_C(64) * MG_MIB)

struct mg_heap_header {
        void *arena;
        struct mg_heap_header *previous;
        size_t size;
};

/* For a BLOCK that is ours: size of its chunk, and whether it lies in a thread arena (else: main arena, or mmapped). */
size_t chunk_bytes(const void *block);
bool chunk_is_in_thread_arena(const void *block);
bool chunk_is_mmapped(const void *block);
const struct mg_heap_header *chunk_heap(const void *block);

struct mg_arena_top {
        uintptr_t block; /* where a block cut from it would begin */
        size_t bytes;
        uintptr_t lists; /* of the arena's free chunks, for arena_largest_free() */
};

/*
 * Looks for the top chunk of ARENA: the one pointer in its head to a chunk that ends where its heap ends. Returns false when there
 * is none (a layout that is not the known one, or no way to peek).
 */
bool arena_find_top(const void *arena, struct mg_arena_top *ret_top);

/* Bytes of the largest free chunk but the top, from 768 KiB on, in the arena whose top this is; 0: none, or not to be seen. */
size_t arena_largest_free(const struct mg_arena_top *top);

/* What ARENA has taken from the system: the sum over its heaps. Returns false when that cannot be seen. */
bool arena_sum_heaps(const void *arena, uint64_t *ret_bytes);
