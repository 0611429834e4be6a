/* SPDX-License-Identifier: MIT */
/*
 * Estimates live bytes as heap profilers do: about each 256 KiB that a thread takes, the block just taken is noted and stands for
 * them until it is freed. A free looks into a table of bytes that fits the cache, and further only where that says
 * that the block may be a noted one.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define GAP_BYTES   (256 << 10)
#define FILTER      65536
#define BUCKETS     512
#define BUCKET      16 /* of a GiB of live memory 8 would be used on average */
#define INITIAL_TLS __attribute__((tls_model("initial-exec")))

static struct sample {
        void *block;
        int64_t bytes;
} samples[BUCKETS][BUCKET];
static _Atomic(unsigned char) filter[FILTER];
static _Atomic(int64_t) sampled_bytes;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static _Thread_local int64_t left INITIAL_TLS, gap INITIAL_TLS;
static _Thread_local uint64_t random_state INITIAL_TLS;

static inline size_t hash(const void *block) {
        return ((uintptr_t) block * 0x9e3779b97f4a7c15U) >> 48;
}

/* The place of BLOCK in its bucket, or, for NULL, a free one of that of KEY. */
static struct sample *find(const void *key, const void *block) {
        struct sample *bucket = samples[hash(key) % BUCKETS];

        for (size_t i = 0; i < BUCKET; i++)
                if (bucket[i].block == block)
                        return &bucket[i];
        return NULL;
}

static void take_lock(void) {
        while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
                ;
}

static void give_lock(void) {
        atomic_flag_clear_explicit(&lock, memory_order_release);
}

/* Evenly from 1 to twice the gap, so that no pattern of the program falls in step. */
static int64_t next_gap(void) {
        if (random_state == 0)
                random_state = (uintptr_t) &random_state | 1;
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return 1 + (int64_t) (random_state % (2 * GAP_BYTES));
}

__attribute__((noinline, cold)) static void note_sample(void *block) {
        int64_t bytes = gap -
                        left; /* taken since the last one; the thread's first has no gap yet */

        left = gap = next_gap();
        take_lock();
        struct sample *place = find(block, NULL);
        if (!place)
                abort();
        *place = (struct sample){ block, bytes };
        atomic_fetch_add(&filter[hash(block)], 1);
        atomic_fetch_add(&sampled_bytes, bytes);
        give_lock();
}

__attribute__((noinline, cold)) static void forget_sample(void *block) {
        take_lock();
        struct sample *place = find(block, block);
        if (place) {
                place->block = NULL;
                atomic_fetch_sub(&filter[hash(block)], 1);
                atomic_fetch_sub(&sampled_bytes, place->bytes);
        }
        give_lock();
}

static inline void note_taken(void *block, size_t bytes) {
        left -= (int64_t) bytes;
        if (__builtin_expect(left < 0, 0))
                note_sample(block);
}

static inline void note_dropped(void *block) {
        if (__builtin_expect(atomic_load_explicit(&filter[hash(block)], memory_order_relaxed), 0))
                forget_sample(block);
}

#include "live_wrap.h"

int64_t live_counted_bytes(void) {
        return atomic_load(&sampled_bytes);
}
