/* SPDX-License-Identifier: MIT */
/*
 * Handles on glibc's thread arenas. Layer: agent. Compiled without the compiler's knowledge of malloc(): the pairs of
 * calls are the point.
 *
 * An arena's top is given back in one of two ways, neither of which changes a setting of glibc's. Above the trim
 * threshold (128 KiB, but up to 64 MiB once the program has freed large blocks) glibc does it itself when a large
 * remainder is freed: the poke. Below it, a handle is grown over the top, so that the top's pages are ours for a moment,
 * they are dropped, and the handle shrunk again. (Lowering the threshold by mallopt() would end its dynamic for good.) glibc
 * prefers a free piece that is large enough to the top: hence two dozen handles an arena, of which as many as need be fill the largest pieces
 * meanwhile. (Growing one to more than any piece does not do: from the mmap threshold on glibc would map it elsewhere.)
 */
#include "agent/arena_handles.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/arena_top.h"
#include "agent/process.h"
#include "base/macros.h"

/* The limit of arenas is 8 per core: enough for 128 cores; an arena beyond has no handles. */
#define MAX_ARENAS 1024

#define HANDLE_BYTES 40
/* Its remainder must exceed glibc's FASTBIN_CONSOLIDATION_THRESHOLD of 64 KiB; and it is never mmapped (from 128 KiB on). */
#define POKE_BYTES 70000

#define WHOLE_PERMYRIAD UINT64_C(10000)

/* What glibc itself leaves at a top that it trims (its top_pad). */
#define KEPT_TOP_BYTES (128 * MG_KIB)

#define HANDLES_PER_ARENA 24

struct slot {
        _Atomic(void *) arena;
        _Atomic(void *) handle[HANDLES_PER_ARENA]; /* NULL: none; IN_HAND: the agent is at it */
};

static char in_hand;
#define IN_HAND ((void *) &in_hand)

static struct slot slots[MAX_ARENAS];
static const char *refusal = "arena tops: not started";

extern size_t malloc_usable_size(void *block) __attribute__((weak));

/*
 * glibc adds a word and rounds up to two: 24, 40, 56, ... None of the other allocators gives all of these. So it is on 64
 * bits; on 32 each architecture and version rounds differently, and handles, which need the certainty, are refused.
 */
bool handles_recognise_malloc(void) {
        static const size_t sizes[] = { 1, 25, 30, 41, 1000, 1001, 5000 };
        bool same = malloc_usable_size != NULL;

        if (sizeof(void *) != 8)
                return true;
        for (size_t i = 0; same && i < MG_ELEMENTS(sizes); i++) {
                void *block = malloc(sizes[i]);
                size_t chunk = (sizes[i] + sizeof(size_t) + 15) & ~(size_t) 15;
                if (block)
                        same = malloc_usable_size(block) ==
                               MG_MAX(chunk, (size_t) 32) - sizeof(size_t);
                free(block);
        }
        return same;
}

void handles_enable(bool served, const struct mg_malloc_settings *settings) {
        struct rlimit limit;

        if (sizeof(void *) != 8)
                refusal = "arena tops: not on 32 bits";
        else if (!served)
                refusal = "arena tops: malloc is not glibc's own";
        else if (settings->forbid_tops)
                refusal = "arena tops: perturb, memory tagging or huge pages are set";
        else if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
                refusal = "arena tops: the address space is limited";
        else
                refusal = NULL;
}

const char *handles_refusal(void) {
        return refusal;
}

static struct slot *find_slot(void *arena) {
        for (size_t i = 0; i < MAX_ARENAS; i++) {
                void *known = atomic_load(&slots[i].arena);
                if (!known && atomic_compare_exchange_strong(&slots[i].arena, &known, arena))
                        known = arena;
                if (known == arena)
                        return &slots[i];
        }
        return NULL;
}

/* The agent has all of a slot's handles in hand, or none: then one empty place means that there is something to do. */
static bool adopt(struct slot *slot, void *block) {
        for (size_t i = 0; slot && i < HANDLES_PER_ARENA; i++) {
                void *expected = NULL;
                if (atomic_compare_exchange_strong(&slot->handle[i], &expected, block))
                        return true;
        }
        return false;
}

/* Returns whether the thread's arena could take one more. */
static bool make_one(void) {
        void *block = malloc(HANDLE_BYTES);

        if (!block)
                return false;
        if (chunk_is_in_thread_arena(block) && adopt(find_slot(chunk_heap(block)->arena), block))
                return true;
        free(block);
        return false;
}

void handle_make(void) {
        int saved = errno;

        if (!refusal)
                for (size_t i = 0; i < HANDLES_PER_ARENA && make_one(); i++)
                        ;
        errno = saved;
}

size_t handles_count(void) {
        size_t n = 0;

        while (n < MAX_ARENAS && atomic_load(&slots[n].arena))
                n++;
        return n;
}

uint64_t handles_largest_share_permyriad(uint64_t total_bytes) {
        uint64_t sum = 0, largest = 0;
        size_t n = handles_count();

        for (size_t i = 0; i < n; i++) {
                uint64_t bytes;
                if (!arena_sum_heaps(atomic_load(&slots[i].arena), &bytes))
                        return WHOLE_PERMYRIAD;
                sum += bytes;
                largest = MG_MAX(largest, bytes);
        }
        if (n == 0 || total_bytes == MG_UNKNOWN)
                return WHOLE_PERMYRIAD;
        largest = MG_MAX(largest, mg_sub_floor(total_bytes, sum));
        return mg_scale(largest, WHOLE_PERMYRIAD, MG_MAX(sum, total_bytes));
}

void handles_after_fork(void) {
        for (size_t i = 0; i < handles_count(); i++)
                for (size_t j = 0; j < HANDLES_PER_ARENA; j++)
                        if (atomic_load(&slots[i].handle[j]) == IN_HAND)
                                atomic_store(&slots[i].handle[j], NULL);
}

/* A handle that no longer looks like one means a damaged heap, or a layout that is not the known one: hands off. */
static bool is_in_arena(const void *block, const void *arena) {
        return chunk_is_in_thread_arena(block) && chunk_heap(block)->arena == arena;
}

static bool is_handle(const void *block, const void *arena) {
        size_t bytes = chunk_bytes(block);
        return bytes >= HANDLE_BYTES && bytes <= 2 * HANDLE_BYTES && is_in_arena(block, arena);
}

/* Back to a handle's size. NULL when the block has left its arena, which was out of memory. */
static void *shrink(void *block, const void *arena) {
        void *shrunk = realloc(block, HANDLE_BYTES);

        if (!shrunk)
                shrunk = block;
        if (is_handle(shrunk, arena))
                return shrunk;
        /* An mmapped block is one page by now: freeing it teaches glibc no new mmap threshold. */
        if (!chunk_is_mmapped(shrunk) || chunk_bytes(shrunk) < POKE_BYTES)
                free(shrunk);
        return NULL;
}

static void *poke(void *handle, const void *arena) {
        void *grown = realloc(handle, POKE_BYTES);
        return grown ? shrink(grown, arena) : handle;
}

/* The whole pages inside BLOCK but its first, which holds the handle. */
static void drop_pages(char *block, size_t bytes, size_t page_bytes) {
        uintptr_t first = ((uintptr_t) block + HANDLE_BYTES + page_bytes - 1) & ~(page_bytes - 1);
        uintptr_t end = ((uintptr_t) block + bytes - 2 * sizeof(size_t)) & ~(page_bytes - 1);

        if (end > first)
                madvise((void *) first, end - first, MADV_DONTNEED);
}

/* Takes the arena's handles out of the registry; returns how many. */
static size_t take_handles(struct slot *slot, void *handles[HANDLES_PER_ARENA]) {
        const void *arena = atomic_load(&slot->arena);
        size_t n = 0;

        for (size_t i = 0; i < HANDLES_PER_ARENA; i++) {
                void *handle = atomic_exchange(&slot->handle[i], IN_HAND);
                if (handle && handle != IN_HAND && is_handle(handle, arena))
                        handles[n++] = handle;
        }
        return n;
}

static void put_handles(struct slot *slot, void *handles[HANDLES_PER_ARENA], size_t n) {
        for (size_t i = 0; i < HANDLES_PER_ARENA; i++)
                atomic_store(&slot->handle[i], i < n ? handles[i] : NULL);
}

/* Where a free piece has room for it, glibc takes that: then it fills the largest one, and the next handle does not fall into it. */
static size_t bytes_to_grow_to(const struct mg_arena_top *top) {
        size_t over_top = top->bytes - KEPT_TOP_BYTES;

        return MG_MAX(over_top, mg_sub_floor(arena_largest_free(top), 2 * sizeof(size_t)));
}

/* Grows HANDLE, which may move, to reach over the top if glibc lets it. Returns false when the next handle might do better. */
static bool grow_over_top(void **handle, const void *arena, size_t page_bytes) {
        struct mg_arena_top top;

        if (!arena_find_top(arena, &top) || top.bytes < 2 * KEPT_TOP_BYTES)
                return true;
        char *grown = realloc(*handle, bytes_to_grow_to(&top));
        if (!grown)
                return true;
        *handle = grown;
        size_t bytes = chunk_bytes(grown);
        if (!is_in_arena(grown, arena))
                return true;
        if ((uintptr_t) grown > top.block || (uintptr_t) grown + bytes <= top.block)
                return false;
        drop_pages(grown, bytes, page_bytes);
        return true;
}

/* Returns the longest that a thread of this arena could have waited. */
static uint64_t trim_top(struct slot *slot) {
        void *handles[HANDLES_PER_ARENA];
        const void *arena = atomic_load(&slot->arena);
        size_t page_bytes = (size_t) sysconf(_SC_PAGESIZE);
        size_t n = take_handles(slot, handles), used = 0, kept = 0;

        struct mg_stopwatch watch;
        stopwatch_start(&watch);
        if (n > 0)
                handles[0] = poke(handles[0], arena);
        uint64_t pause = stopwatch_pause_usec(&watch);
        stopwatch_start(&watch);
        while (used < n && handles[used] && !grow_over_top(&handles[used++], arena, page_bytes))
                ;
        for (size_t i = 0; i < n; i++) {
                void *handle = handles[i] && i < used ? shrink(handles[i], arena) : handles[i];
                if (handle)
                        handles[kept++] = handle;
        }
        pause = MG_MAX(pause, stopwatch_pause_usec(&watch));
        put_handles(slot, handles, kept);
        return n > 0 ? pause : 0;
}

uint64_t handles_trim_tops(const struct mg_trim_request *request, bool *ret_complete) {
        uint64_t longest = 0;

        *ret_complete = true;
        for (size_t i = 0; i < handles_count(); i++) {
                if (trim_is_over(request)) {
                        *ret_complete = false;
                        break;
                }
                longest = MG_MAX(longest, trim_top(&slots[i]));
        }
        return longest;
}
