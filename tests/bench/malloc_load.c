/* SPDX-License-Identifier: MIT */
/*
 * A malloc-heavy load, to see what an agent costs: each thread replaces random ones of its 2,048 blocks (16 bytes to 4 KiB, now and then
 * 64 KiB; or to MOST-BYTES and never more) for a fixed number of operations. Prints the time an operation takes, on the clock and
 * of CPU. With one thread the process stays single-threaded, as far as it is up to this program.
 *
 *   malloc-load THREADS OPERATIONS [HOLD-SECONDS [MOST-BYTES]]
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 2048

static unsigned long operations, most_bytes;

static void *load(void *argument) {
        uint64_t state = 88172645463325252U + (uintptr_t) argument;
        void *slot[SLOTS] = {};

        for (unsigned long i = 0; i < operations; i++) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                unsigned at = state % SLOTS;
                size_t bytes = 16 + (state >> 40) % (most_bytes ? most_bytes - 15 : 4080);
                if (!most_bytes && (state >> 32) % 1000 == 0)
                        bytes = 65536;
                free(slot[at]);
                /* calloc now and then: it is what a second thread makes slower. */
                slot[at] = i % 8 == 0 ? calloc(1, bytes) : malloc(bytes);
                *(volatile char *) slot[at] = 1;
        }
        for (unsigned at = 0; at < SLOTS; at++)
                free(slot[at]);
        return NULL;
}

static uint64_t now_nsec(clockid_t clock) {
        struct timespec now;

        clock_gettime(clock, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

int main(int argc, char **argv) {
        unsigned threads = argc > 1 ? (unsigned) atoi(argv[1]) : 1;
        pthread_t ids[64];

        operations = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000;
        most_bytes = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
        if (threads < 1 || threads > 64 || operations == 0 || (most_bytes && most_bytes < 16))
                return 2;
        uint64_t started = now_nsec(CLOCK_MONOTONIC), cpu = now_nsec(CLOCK_PROCESS_CPUTIME_ID);
        for (unsigned i = 1; i < threads; i++)
                if (pthread_create(&ids[i], NULL, load, (void *) (uintptr_t) i) != 0)
                        return 1;
        load(NULL);
        for (unsigned i = 1; i < threads; i++)
                pthread_join(ids[i], NULL);
        uint64_t nsec = now_nsec(CLOCK_MONOTONIC) - started;
        cpu = now_nsec(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        printf("picosec_per_operation=%lu cpu_picosec_per_operation=%lu\n",
               nsec * 1000 / (operations * threads), cpu * 1000 / (operations * threads));
        fflush(stdout);
        if (argc > 3)
                sleep((unsigned) atoi(argv[3]));
        return 0;
}
