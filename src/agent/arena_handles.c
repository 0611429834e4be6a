/* SPDX-License-Identifier: MIT */
/* Handles on glibc's thread arenas. Layer: agent. Compiled with -fno-builtin: the pairs of realloc calls are the point. */
#include "agent/arena_handles.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "agent/process.h"
#include "base/macros.h"

/*
 * What is known of glibc's layout, the same from 2.26 to 2.42 on 64-bit machines: the word before a block holds its
 * size and three flags; a thread arena lives in heaps that are aligned to 64 MiB and begin with a pointer
 * to the arena, a pointer to the previous heap and the size in use.
 */
#define CHUNK_FLAGS      UINT64_C(7)
#define CHUNK_IS_MMAPPED UINT64_C(2)
#define CHUNK_NON_MAIN   UINT64_C(4)
#define HEAP_ALIGNMENT   (UINT64_C(64) * MG_MIB)

struct heap_header {
        void *arena;
        struct heap_header *previous;
        size_t size;
};

/* The limit of arenas is 8 per core: enough for 128 cores; an arena beyond has no handle. */
#define MAX_HANDLES 1024

#define HANDLE_BYTES 40
/* Its remainder must exceed glibc's FASTBIN_CONSOLIDATION_THRESHOLD of 64 KiB. */
#define POKE_BYTES 70000

/* mallopt()'s numbers; <malloc.h> is not there with every libc. */
#define OPTION_TRIM_THRESHOLD (-1)
#define LOW_TRIM_THRESHOLD    (128 * 1024)
/* Twice the largest dynamic mmap threshold: what glibc itself has chosen by the time it matters. */
#define CLIMBED_TRIM_THRESHOLD (64 * 1024 * 1024)
/* From here on freezing the mmap threshold costs nothing (measured: throughput 0.29-0.36 below, 1.00 above). */
#define CLIMBED_PROBE_BYTES (24 * MG_MIB)
#define DYNAMIC_PROBE_BYTES (32 * MG_MIB - 64 * MG_KIB)
/* A block that no tcache holds: it comes from the arena itself. */
#define MARKER_BYTES 2000

extern int mallopt(int option, int value) __attribute__((weak));

struct slot {
        _Atomic(void *) arena;
        _Atomic(void *) handle; /* NULL: none; IN_HAND: the agent is at it */
};

static char in_hand;
#define IN_HAND ((void *) &in_hand)

static struct slot slots[MAX_HANDLES];
static const char *refusal = "not started";
static bool thresholds_fixed_by_operator;
static bool thresholds_fixed_by_us;
static atomic_bool threshold_is_lowered;

void handles_enable(bool served, const struct mg_malloc_settings *settings) {
        struct rlimit limit;

        thresholds_fixed_by_operator = settings->thresholds;
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

/* The compiler knows what malloc() returns, and that nothing lies before it: it is not told that this is such a block. */
static uintptr_t forget_origin(const void *block) {
        uintptr_t address = (uintptr_t) block;

        __asm__("" : "+r"(address));
        return address;
}

static uint64_t chunk_word(const void *block) {
        return *(const volatile size_t *) (forget_origin(block) - sizeof(size_t));
}

static uint64_t chunk_bytes(const void *block) {
        return chunk_word(block) & ~CHUNK_FLAGS;
}

static struct heap_header *heap_of(const void *block) {
        return (struct heap_header *) (forget_origin(block) & ~(uintptr_t) (HEAP_ALIGNMENT - 1));
}

static bool is_in_thread_arena(const void *block) {
        return (chunk_word(block) & (CHUNK_NON_MAIN | CHUNK_IS_MMAPPED)) == CHUNK_NON_MAIN;
}

static bool adopt(struct slot *slot, void *block) {
        void *expected = NULL;
        return atomic_compare_exchange_strong(&slot->handle, &expected, block);
}

static bool register_handle(void *arena, void *block) {
        for (size_t i = 0; i < MAX_HANDLES; i++) {
                void *known = atomic_load(&slots[i].arena);
                if (!known && atomic_compare_exchange_strong(&slots[i].arena, &known, arena))
                        known = arena;
                if (known == arena)
                        return adopt(&slots[i], block);
        }
        return false;
}

void handle_make(void) {
        int saved = errno;

        if (!refusal) {
                void *block = malloc(HANDLE_BYTES);
                if (block && (!is_in_thread_arena(block) || !register_handle(heap_of(block)->arena, block)))
                        free(block);
        }
        errno = saved;
}

size_t handles_count(void) {
        size_t n = 0;

        for (size_t i = 0; i < MAX_HANDLES && atomic_load(&slots[i].arena); i++)
                n += atomic_load(&slots[i].handle) != NULL;
        return n;
}

void handles_after_fork(void) {
        for (size_t i = 0; i < MAX_HANDLES && atomic_load(&slots[i].arena); i++)
                if (atomic_load(&slots[i].handle) == IN_HAND)
                        atomic_store(&slots[i].handle, NULL);
        if (atomic_exchange(&threshold_is_lowered, false))
                mallopt(OPTION_TRIM_THRESHOLD, CLIMBED_TRIM_THRESHOLD);
}

/* A handle that no longer looks like one means a damaged heap, or a layout that is not the known one: hands off. */
static bool is_sane(const struct slot *slot, const void *handle) {
        uint64_t bytes = chunk_bytes(handle);
        return bytes >= HANDLE_BYTES && bytes <= 2 * HANDLE_BYTES && is_in_thread_arena(handle) &&
               heap_of(handle)->arena == atomic_load(&slot->arena);
}

/* Returns what becomes the slot's handle: NULL when it left its arena (which was out of memory) or broke. */
static void *poke(struct slot *slot, void *handle) {
        if (!is_sane(slot, handle))
                return NULL;
        void *grown = realloc(handle, POKE_BYTES);
        if (!grown)
                return handle;
        void *shrunk = realloc(grown, HANDLE_BYTES);
        if (!shrunk)
                shrunk = grown;
        if (is_sane(slot, shrunk))
                return shrunk;
        free(shrunk);
        return NULL;
}

static uint64_t poke_slot(struct slot *slot) {
        void *handle = atomic_load(&slot->handle);

        if (!handle || handle == IN_HAND)
                return 0;
        atomic_store(&slot->handle, IN_HAND);
        uint64_t started = process_now_usec();
        handle = poke(slot, handle);
        uint64_t pause = process_now_usec() - started;
        atomic_store(&slot->handle, handle);
        return pause;
}

static uint64_t poke_all(const struct mg_trim_request *request, bool *ret_complete) {
        uint64_t longest = 0;

        *ret_complete = true;
        for (size_t i = 0; i < MAX_HANDLES && atomic_load(&slots[i].arena); i++) {
                if (trim_is_over(request)) {
                        *ret_complete = false;
                        break;
                }
                longest = MG_MAX(longest, poke_slot(&slots[i]));
        }
        return longest;
}

/* Where the chunk behind the handle reaches to the end of its heap, it is the arena's top. */
static uint64_t top_above(const void *handle) {
        const struct heap_header *heap = heap_of(handle);
        const char *next = (const char *) handle + chunk_bytes(handle);
        const char *end = (const char *) heap + heap->size;

        if (next >= end || next + chunk_bytes(next) - sizeof(size_t) * 2 != end)
                return 0;
        return chunk_bytes(next);
}

static bool has_large_top(void) {
        for (size_t i = 0; i < MAX_HANDLES && atomic_load(&slots[i].arena); i++) {
                void *handle = atomic_load(&slots[i].handle);
                if (handle && handle != IN_HAND && is_sane(&slots[i], handle) &&
                    top_above(handle) > MG_MIB)
                        return true;
        }
        return false;
}

/* Frees a block that may be mmapped, without glibc learning a new mmap threshold from its size. */
static void free_unlearned(void *block) {
        if (chunk_word(block) & CHUNK_IS_MMAPPED) {
                void *page = realloc(block, HANDLE_BYTES);
                block = page ? page : block;
                if (chunk_bytes(block) > LOW_TRIM_THRESHOLD)
                        return; /* untouched address space, better lost than learned */
        }
        free(block);
}

/*
 * Whether the mmap threshold stands above CLIMBED_PROBE_BYTES: a block of that size made the agent's own arena grow.
 * Anything else (mmapped; cut from a free piece; the main arena) proves nothing.
 */
static bool has_threshold_climbed(void) {
        bool climbed = false;
        char *marker = malloc(MARKER_BYTES);

        if (!marker)
                return false;
        if (is_in_thread_arena(marker)) {
                size_t before = heap_of(marker)->size;
                char *probe = malloc(CLIMBED_PROBE_BYTES);
                if (probe) {
                        climbed = is_in_thread_arena(probe) && heap_of(probe) == heap_of(marker) &&
                                  heap_of(probe)->size > before;
                        free_unlearned(probe);
                }
        }
        free(marker);
        return climbed;
}

/*
 * Whether glibc moves its thresholds by itself. Freeing an mmapped block below 32 MiB makes it learn that size,
 * unless the program has set a threshold. 1 yes, 0 no, -1 cannot tell (it stands at its maximum).
 */
static int are_thresholds_dynamic(void) {
        int dynamic = -1;

        char *first = malloc(DYNAMIC_PROBE_BYTES);
        if (!first)
                return 0;
        bool was_mmapped = chunk_word(first) & CHUNK_IS_MMAPPED;
        free(first);
        if (was_mmapped) {
                char *second = malloc(DYNAMIC_PROBE_BYTES);
                if (!second)
                        return 0;
                dynamic = !(chunk_word(second) & CHUNK_IS_MMAPPED);
                free_unlearned(second);
        }
        return dynamic;
}

/*
 * heap_trim() leaves tops below the trim threshold, which glibc raises with the mmap threshold up to 64 MiB. Setting it
 * ends that dynamic for good; so only where it has come to its end by itself, and then it is put back there.
 */
static bool may_lower_threshold(void) {
        if (!mallopt || thresholds_fixed_by_operator)
                return false;
        if (thresholds_fixed_by_us)
                return true;
        if (!has_threshold_climbed())
                return false;
        int dynamic = are_thresholds_dynamic();
        return dynamic > 0 || (dynamic < 0 && has_large_top());
}

uint64_t handles_trim_tops(const struct mg_trim_request *request, bool *ret_complete) {
        uint64_t longest = 0;

        *ret_complete = true;
        if (refusal || handles_count() == 0)
                return 0;
        longest = poke_all(request, ret_complete);
        if (!*ret_complete || !may_lower_threshold())
                return longest;
        atomic_store(&threshold_is_lowered, true);
        thresholds_fixed_by_us = true;
        mallopt(OPTION_TRIM_THRESHOLD, LOW_TRIM_THRESHOLD);
        longest = MG_MAX(longest, poke_all(request, ret_complete));
        mallopt(OPTION_TRIM_THRESHOLD, CLIMBED_TRIM_THRESHOLD);
        atomic_store(&threshold_is_lowered, false);
        return longest;
}
