/* SPDX-License-Identifier: MIT */
/*
 * A malloc-heavy load, to see what an agent costs: each thread replaces random ones of its 2,048 blocks (16 bytes to 4 KiB, now and then
 * 64 KiB) for a fixed number of operations. Prints nanoseconds an operation and the memory at the end. With one thread the process
 * stays single-threaded, as far as it is up to this program.
 *
 *   malloc-load THREADS OPERATIONS [HOLD-SECONDS]
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 2048

static unsigned long operations;

static void *load(void *argument) {
        uint64_t state = 88172645463325252U + (uintptr_t) argument;
        void *slot[SLOTS] = {};

        for (unsigned long i = 0; i < operations; i++) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                unsigned at = state % SLOTS;
                size_t bytes = (state >> 32) % 1000 == 0 ? 65536 : 16 + (state >> 40) % 4080;
                free(slot[at]);
                /* calloc now and then: it is what a second thread makes slower. */
                slot[at] = i % 8 == 0 ? calloc(1, bytes) : malloc(bytes);
                *(volatile char *) slot[at] = 1;
        }
        for (unsigned at = 0; at < SLOTS; at++)
                free(slot[at]);
        return NULL;
}

static uint64_t now_nsec(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

int main(int argc, char **argv) {
        unsigned threads = argc > 1 ? (unsigned) atoi(argv[1]) : 1;
        pthread_t ids[64];

        operations = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
        if (threads < 1 || threads > 64 || operations == 0)
                return 2;
        uint64_t started = now_nsec();
        for (unsigned i = 1; i < threads; i++)
                if (pthread_create(&ids[i], NULL, load, (void *) (uintptr_t) i) != 0)
                        return 1;
        load(NULL);
        for (unsigned i = 1; i < threads; i++)
                pthread_join(ids[i], NULL);
        uint64_t nsec = now_nsec() - started;
        printf("picosec_per_operation=%lu\n", nsec * 1000 / (operations * threads));
        fflush(stdout);
        if (argc > 3)
                sleep((unsigned) atoi(argv[3]));
        return 0;
}
