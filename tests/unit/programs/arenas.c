/* SPDX-License-Identifier: MIT */
/* A process with as many thread arenas as it has threads, ARGV[1], each with one block in it. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_barrier_t barrier;

static void *allocate(void *unused) {
        void *volatile block = malloc(100000);
        pthread_barrier_wait(&barrier);
        for (;;)
                pause();
        free(block);
        return unused;
}

int main(int argc, char **argv) {
        int n = argc > 1 ? atoi(argv[1]) : 1;
        pthread_t thread;
        char c;

        pthread_barrier_init(&barrier, NULL, (unsigned) n + 1);
        for (int i = 0; i < n; i++)
                if (pthread_create(&thread, NULL, allocate, NULL) != 0)
                        return 1;
        pthread_barrier_wait(&barrier);
        if (write(STDOUT_FILENO, "ready\n", 6) != 6)
                return 1;
        while (read(STDIN_FILENO, &c, 1) > 0)
                ;
        return 0;
}
