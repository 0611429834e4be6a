/* SPDX-License-Identifier: MIT */
/*
 * Stands in for mimalloc of any version without a purge, which no Debian has all of: mi_version() is the first argument, and mi_collect() only
 * says that it was called, and whether by a thread that mimalloc knew. What a real one gives back, this cannot show.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int version;
static atomic_int collected;
static _Thread_local bool is_known;

#pragma GCC visibility push(default)
int mi_version(void);
void mi_collect(bool force);
void mi_thread_init(void);
#pragma GCC visibility pop

int mi_version(void) {
        return version;
}

void mi_thread_init(void) {
        is_known = true;
}

/* In the agent's thread, whose descriptors are not the program's. */
void mi_collect(bool force) {
        atomic_store(&collected, !is_known ? 3 : force ? 1 : 2);
}

static void *tell(void *argument) {
        static const char *const texts[] = { NULL, "collected", "not forced", "unknown thread" };

        for (;;) {
                int how = atomic_exchange(&collected, 0);
                if (how > 0)
                        puts(texts[how]);
                usleep(10000);
        }
        return NULL;
}

int main(int argc, char **argv) {
        pthread_t thread;

        setvbuf(stdout, NULL, _IOLBF, 0);
        version = argc > 1 ? atoi(argv[1]) : 0;
        if (pthread_create(&thread, NULL, tell, NULL) != 0)
                return 1;
        tell(NULL);
        return 0;
}
