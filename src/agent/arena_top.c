/* SPDX-License-Identifier: MIT */
/* glibc's layout. Layer: agent; no allocation. */
#include "agent/arena_top.h"

#include "agent/peek.h"

#define CHUNK_FLAGS       UINT64_C(7)
#define CHUNK_PREV_IN_USE UINT64_C(1)
#define CHUNK_IS_MMAPPED  UINT64_C(2)
#define CHUNK_NON_MAIN    UINT64_C(4)

/* A chunk begins two words before its block. */
#define CHUNK_HEADER_BYTES (2 * sizeof(size_t))

/* The pointer to the top stands behind a lock, flags and the fast bins: word 12 in all those versions. */
#define HEAD_WORDS 40

/*
 * Two words behind it begin the lists of free chunks: for each two words, its first and last chunk, as if they stood in a chunk; those
 * of an empty one point to it. The last but one has the largest chunks, largest first; the last one is never used.
 */
#define LISTS_AFTER_TOP   2
#define LARGEST_LIST_WORD 250

/* 256 GiB in one arena. Stops a chain that was read while it changed. */
#define MAX_HEAPS 4096

/* The compiler knows what malloc() returns, and that nothing lies before it: it is not told that this is such a block. */
static uintptr_t forget_origin(const void *block) {
        uintptr_t address = (uintptr_t) block;

        __asm__("" : "+r"(address));
        return address;
}

static size_t chunk_word(const void *block) {
        return *(const volatile size_t *) (forget_origin(block) - sizeof(size_t));
}

size_t chunk_bytes(const void *block) {
        return chunk_word(block) & ~CHUNK_FLAGS;
}

bool chunk_is_in_thread_arena(const void *block) {
        return (chunk_word(block) & (CHUNK_NON_MAIN | CHUNK_IS_MMAPPED)) == CHUNK_NON_MAIN;
}

bool chunk_is_mmapped(const void *block) {
        return chunk_word(block) & CHUNK_IS_MMAPPED;
}

const struct mg_heap_header *chunk_heap(const void *block) {
        return (const struct mg_heap_header
                                *) (forget_origin(block) & ~(uintptr_t) (MG_HEAP_ALIGNMENT - 1));
}

static bool is_top(const void *arena, uintptr_t chunk, struct mg_arena_top *ret_top) {
        uintptr_t heap = chunk & ~(uintptr_t) (MG_HEAP_ALIGNMENT - 1);
        struct mg_heap_header header;
        size_t word;

        if (heap == 0 || chunk % CHUNK_HEADER_BYTES != 0 ||
            !peek_read(heap, &header, sizeof(header)))
                return false;
        if (header.arena != arena || header.size > MG_HEAP_ALIGNMENT ||
            chunk + CHUNK_HEADER_BYTES > heap + header.size ||
            !peek_read(chunk + sizeof(size_t), &word, sizeof(word)))
                return false;
        size_t bytes = word & ~CHUNK_FLAGS;
        if (!(word & CHUNK_PREV_IN_USE) || chunk + bytes != heap + header.size)
                return false;
        *ret_top = (struct mg_arena_top){
                .block = chunk + CHUNK_HEADER_BYTES,
                .bytes = bytes,
        };
        return true;
}

/* The list that is never used has to look so, or these are no lists. */
size_t arena_largest_free(const struct mg_arena_top *top) {
        uintptr_t at = top->lists + LARGEST_LIST_WORD * sizeof(uintptr_t), words[4];
        uintptr_t unused = at + 2 * sizeof(uintptr_t) - CHUNK_HEADER_BYTES;
        size_t word;

        if (!peek_read(at, words, sizeof(words)) || words[2] != unused || words[3] != unused)
                return 0;
        if (words[0] == at - CHUNK_HEADER_BYTES ||
            !peek_read(words[0] + sizeof(size_t), &word, sizeof(word)))
                return 0;
        return MG_MIN(word & ~CHUNK_FLAGS, (size_t) MG_HEAP_ALIGNMENT);
}

bool arena_find_top(const void *arena, struct mg_arena_top *ret_top) {
        uintptr_t head[HEAD_WORDS];

        if (!peek_read((uintptr_t) arena, head, sizeof(head)))
                return false;
        for (size_t i = 0; i < HEAD_WORDS; i++) {
                /* Most of the head points into itself: empty bins. */
                if (head[i] - (uintptr_t) arena < MG_KIB * 4 || !is_top(arena, head[i], ret_top))
                        continue;
                ret_top->lists = (uintptr_t) arena + (i + LISTS_AFTER_TOP) * sizeof(uintptr_t);
                return true;
        }
        return false;
}

bool arena_sum_heaps(const void *arena, uint64_t *ret_bytes) {
        struct mg_arena_top top;
        uintptr_t heap;
        uint64_t sum = 0;

        if (!arena_find_top(arena, &top))
                return false;
        heap = top.block & ~(uintptr_t) (MG_HEAP_ALIGNMENT - 1);
        for (int i = 0; heap && i < MAX_HEAPS; i++) {
                struct mg_heap_header header;
                if (!peek_read(heap, &header, sizeof(header)) || header.arena != arena)
                        return false;
                sum += header.size;
                heap = (uintptr_t) header.previous;
        }
        *ret_bytes = sum;
        return true;
}
