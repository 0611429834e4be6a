/* SPDX-License-Identifier: MIT */
/*
 * The variant trim-every: preloaded into a program, calls malloc_trim(0) every MEMGUARD_TRIM_EVERY_USEC microseconds, blindly, from a
 * thread of its own. What many services do by hand; here to be compared with. Layer: replay, in foreign programs: libc alone.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static struct timespec interval;

static void *trim_for_ever(void *argument) {
        for (;;) {
                nanosleep(&interval, NULL);
                malloc_trim(0);
        }
        return NULL;
}

static __attribute__((constructor)) void start(void) {
        const char *text = getenv("MEMGUARD_TRIM_EVERY_USEC");
        uint64_t usec = text ? strtoull(text, NULL, 10) : 0;
        sigset_t all;
        sigset_t before;
        pthread_t thread;

        if (usec == 0)
                return;
        interval = (struct timespec){ .tv_sec = (time_t) (usec / 1000000),
                                      .tv_nsec = (long) (usec % 1000000 * 1000) };
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        if (pthread_create(&thread, NULL, trim_for_ever, NULL) == 0)
                pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}
