/* SPDX-License-Identifier: MIT */
/*
 * All of libmemguard's functions from many threads at once, while the agent is started and ended, the process forks, and a daemon asks. What
 * must hold: no callback after its cache was unregistered, depths that add up, and (in the builds made for it) nothing that a
 * sanitizer has to say.
 */
#include <errno.h>
#include <memguard.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 6

static atomic_bool is_over;
static atomic_uint late_calls, wrong_results, calls;

struct cache {
        atomic_bool is_registered;
};

static uint64_t count(void *userdata) {
        struct cache *cache = userdata;

        atomic_fetch_add(&calls, 1);
        if (!atomic_load(&cache->is_registered))
                atomic_fetch_add(&late_calls, 1);
        free(malloc(10000));
        return 1000;
}

static uint64_t shrink(uint64_t goal_bytes, void *userdata) {
        return count(userdata) / 2;
}

static void expect(bool good) {
        if (!good)
                atomic_fetch_add(&wrong_results, 1);
}

static void use_cache(struct cache *cache) {
        struct memguard_cache *registered = NULL;

        atomic_store(&cache->is_registered, true);
        expect(memguard_cache_register("stress", count, shrink, cache, &registered) == 0);
        for (int i = 0; i < 20; i++)
                free(malloc(5000));
        expect(memguard_cache_unregister(registered) == 0);
        atomic_store(&cache->is_registered, false);
}

static void *stress(void *argument) {
        struct cache cache = { 0 };

        while (!atomic_load(&is_over)) {
                errno = 4711;
                use_cache(&cache);
                expect(memguard_checkpoint("stress") == 0);
                expect(memguard_suspend("stress") >= 1);
                expect(memguard_resume(NULL) >= 0);
                expect(errno == 4711);
        }
        return NULL;
}

static void *start_and_stop(void *argument) {
        const struct timespec while_running = { .tv_nsec = 30000000 };

        while (!atomic_load(&is_over)) {
                expect(memguard_start(NULL) == 0);
                nanosleep(&while_running, NULL);
                expect(memguard_stop() == 0);
                expect(memguard_open(NULL) == 0);
                for (int i = 0; i < 5; i++)
                        expect(memguard_dispatch() >= 0);
                expect(memguard_close() == 0);
        }
        return NULL;
}

static void fork_some(int n) {
        for (int i = 0; i < n; i++) {
                int pid = fork(), status;
                if (pid == 0)
                        _exit(memguard_checkpoint("child") == 0 && memguard_close() == 0 ? 0 : 1);
                expect(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
        }
}

int main(int argc, char **argv) {
        const struct timespec tenth = { .tv_nsec = 100000000 };
        pthread_t thread[THREADS + 1];

        expect(memguard_dispatch() == -EBADF && memguard_get_fd() == -EBADF);
        expect(memguard_resume("nothing") == -EINVAL && memguard_checkpoint("") == -EINVAL);
        expect(memguard_start(&(struct memguard_options){ .size = 1 }) == -EINVAL);
        for (int i = 0; i < THREADS; i++)
                expect(pthread_create(&thread[i], NULL, stress, NULL) == 0);
        expect(pthread_create(&thread[THREADS], NULL, start_and_stop, NULL) == 0);
        /* At least two seconds, and until the daemon has met a registered cache. */
        for (int i = 0; i < 600 && (i < 20 || atomic_load(&calls) == 0); i++)
                nanosleep(&tenth, NULL);
        /* No sanitizer survives forks of a program with threads for sure. */
        if (argc < 2)
                fork_some(30);
        atomic_store(&is_over, true);
        for (int i = 0; i <= THREADS; i++)
                pthread_join(thread[i], NULL);
        expect(memguard_suspend("last") == 1);
        printf("called back: %s, late %u, wrong %u\n", atomic_load(&calls) > 0 ? "yes" : "no",
               atomic_load(&late_calls), atomic_load(&wrong_results));
        return atomic_load(&late_calls) || atomic_load(&wrong_results) ? 1 : 0;
}
