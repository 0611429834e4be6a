/* SPDX-License-Identifier: MIT */
/*
 * A heap to be measured and trimmed, and a thread that feels it. Each of four threads takes its share of blocks and frees
 * all of them (large) or every second one (small); the first of them then allocates and frees for good, from the same arena. For each
 * line that comes it prints the longest time that took since the last one, leaving out where it was preempted.
 *
 *   costs large|small MIB
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4

/* Beyond what any of the allocators caches for a thread by the hundred, and not a size of either load. */
#define PROBE_BYTES 3000

static size_t block_bytes, n_blocks;
static unsigned step;
static atomic_int ready;
static _Atomic(uint64_t) longest_usec;

static uint64_t now_usec(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

static long count_preemptions(void) {
        struct rusage usage;

        getrusage(RUSAGE_THREAD, &usage);
        return usage.ru_nivcsw;
}

static void probe_once(void) {
        void *volatile block[16];
        long preemptions = count_preemptions();
        uint64_t started = now_usec();

        for (size_t i = 0; i < 16; i++)
                block[i] = malloc(PROBE_BYTES);
        for (size_t i = 0; i < 16; i++)
                free(block[i]);
        uint64_t took = now_usec() - started;
        if (count_preemptions() == preemptions && took > atomic_load(&longest_usec))
                atomic_store(&longest_usec, took);
}

static void *run(void *argument) {
        char **block = malloc(n_blocks * sizeof(*block));

        for (size_t i = 0; i < n_blocks; i++) {
                block[i] = malloc(block_bytes);
                memset(block[i], 1, block_bytes);
        }
        /* The last one stays, or glibc would give the top back by itself. */
        for (size_t i = 0; i + 1 < n_blocks; i += step)
                free(block[i]);
        atomic_fetch_add(&ready, 1);
        while (argument)
                pause();
        while (usleep(50) == 0)
                probe_once();
        return NULL;
}

int main(int argc, char **argv) {
        pthread_t thread;
        char line[16];

        if (argc != 3)
                return 2;
        int is_large = strcmp(argv[1], "large") == 0;
        block_bytes = is_large ? 16384 : 200;
        step = is_large ? 1 : 2;
        n_blocks = (size_t) atoi(argv[2]) * 1048576 / block_bytes / THREADS;
        setvbuf(stdout, NULL, _IOLBF, 0);
        for (uintptr_t i = 0; i < THREADS; i++)
                if (pthread_create(&thread, NULL, run, (void *) i) != 0)
                        return 1;
        while (atomic_load(&ready) < THREADS)
                usleep(1000);
        puts("ready");
        while (fgets(line, sizeof(line), stdin))
                printf("%lu\n", (unsigned long) atomic_exchange(&longest_usec, 0));
        return 0;
}
