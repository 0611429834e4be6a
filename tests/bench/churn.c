/* SPDX-License-Identifier: MIT */
/*
 * Threads that come and go, each with its own short life of small and large blocks, of which a few stay behind in a ring that
 * other threads empty: what makes arenas grow tops and lets live blocks of one arena be freed from another. Works for
 * SECONDS, ends all threads, prints what is live, waits for a line, and begins again, until its input ends.
 *
 *   churn [SECONDS]
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS    12
#define BLOCKS     1500
#define SURVIVORS  20000 /* about 30 MiB */
#define KEPT_IN    40    /* one block in so many outlives its thread */
#define MOST_STEPS 60000

static _Atomic(void *) ring[SURVIVORS];
static _Atomic(size_t) ring_at;
static _Atomic(uint64_t) live_bytes;
static atomic_bool is_over;

static uint64_t next_random(uint64_t *state) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

static void drop(void *block) {
        if (block)
                atomic_fetch_sub(&live_bytes, malloc_usable_size(block));
        free(block);
}

/* 16 bytes to 8 KiB, evenly over the powers of two; one in 500 is of 64 KiB to 1 MiB. */
static void *take(uint64_t *state) {
        uint64_t random = next_random(state);
        size_t bytes = random % 500 == 0 ? 65536 + (random >> 20) % 983040
                                         : (size_t) 16 << ((random >> 10) % 9);
        void *block = malloc(bytes + (random >> 32) % bytes);

        if (!block)
                abort();
        atomic_fetch_add(&live_bytes, malloc_usable_size(block));
        memset(block, 1, bytes);
        return block;
}

static void leave(void *block) {
        drop(atomic_exchange(&ring[atomic_fetch_add(&ring_at, 1) % SURVIVORS], block));
}

static void *live_once(void *argument) {
        uint64_t state = 88172645463325252U ^ (uintptr_t) argument;
        void *block[BLOCKS] = { 0 };
        uint64_t steps = 1000 + next_random(&state) % MOST_STEPS;

        for (uint64_t i = 0; i < steps && !atomic_load(&is_over); i++) {
                void **slot = &block[next_random(&state) % BLOCKS];
                if (*slot && malloc_usable_size(*slot) < 16384 &&
                    next_random(&state) % KEPT_IN == 0)
                        leave(*slot);
                else
                        drop(*slot);
                *slot = take(&state);
        }
        for (size_t i = 0; i < BLOCKS; i++)
                drop(block[i]);
        return NULL;
}

static void *follow_each_other(void *argument) {
        uintptr_t number = (uintptr_t) argument;

        while (!atomic_load(&is_over)) {
                pthread_t thread;
                number += THREADS;
                if (pthread_create(&thread, NULL, live_once, (void *) number) != 0)
                        abort();
                pthread_join(thread, NULL);
        }
        return NULL;
}

static void work(unsigned seconds, unsigned round) {
        pthread_t thread[THREADS];

        atomic_store(&is_over, false);
        for (uintptr_t i = 0; i < THREADS; i++)
                if (pthread_create(&thread[i], NULL, follow_each_other,
                                   (void *) (i + round * 1000003UL + 1)) != 0)
                        abort();
        nanosleep(&(struct timespec){ .tv_sec = seconds }, NULL);
        atomic_store(&is_over, true);
        for (size_t i = 0; i < THREADS; i++)
                pthread_join(thread[i], NULL);
}

int main(int argc, char **argv) {
        unsigned seconds = argc > 1 ? (unsigned) atoi(argv[1]) : 10;
        char line[16];

        setvbuf(stdout, NULL, _IOLBF, 0);
        for (unsigned round = 0;; round++) {
                work(seconds, round);
                printf("live %lu\n", (unsigned long) atomic_load(&live_bytes));
                if (!fgets(line, sizeof(line), stdin))
                        return 0;
        }
}
