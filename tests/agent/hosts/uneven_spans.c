/* SPDX-License-Identifier: MIT */
/*
 * Frees one block of 384 MiB and, at SIGUSR1, 100 of 1 MiB. Small blocks that stay lie between them, or an allocator would
 * join their spans.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCKS      100
#define BLOCK_BYTES ((size_t) 1 << 20)
#define LARGE_BYTES ((size_t) 384 << 20)
/* Large enough for a span of its own in tcmalloc, small beside what is freed. */
#define BETWEEN_BYTES 40000

static void *take(size_t bytes) {
        void *block = malloc(bytes);

        if (!block) {
                perror("malloc");
                exit(1);
        }
        return memset(block, 1, bytes);
}

int main(void) {
        static void *blocks[BLOCKS];
        sigset_t signals;
        int number;

        sigemptyset(&signals);
        sigaddset(&signals, SIGUSR1);
        sigprocmask(SIG_BLOCK, &signals, NULL);
        setvbuf(stdout, NULL, _IOLBF, 0);
        void *large = take(LARGE_BYTES);
        for (size_t i = 0; i < BLOCKS; i++) {
                take(BETWEEN_BYTES);
                blocks[i] = take(BLOCK_BYTES);
        }
        free(large);
        puts("one large span is free");
        if (sigwait(&signals, &number) != 0)
                return 1;
        for (size_t i = 0; i < BLOCKS; i++)
                free(blocks[i]);
        puts("all are free");
        for (;;)
                pause();
}
