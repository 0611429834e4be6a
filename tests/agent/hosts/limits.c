/* SPDX-License-Identifier: MIT */
/* Hosts near their limits, and hosts that do nothing but allocate. */
#include "host.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void *sleep_on(void *argument) {
        host_pause(1500);
        return NULL;
}

/* For tests of what the agent says: a second thread, and nothing else, until it is killed. */
static int run_idle(void) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, sleep_on, NULL) != 0)
                return 1;
        for (;;)
                pause();
}

/* Exactly as many threads as the limit leaves for the program, once the agent has been there. */
static int run_thread_limit(void) {
        struct rlimit limit = { 6, 6 };
        pthread_t thread;
        int n = 0, r = 0;

        host_pause(300);
        if (setuid(54321) < 0)
                return 77;
        setrlimit(RLIMIT_NPROC, &limit);
        while (n < 50 && (r = pthread_create(&thread, NULL, sleep_on, NULL)) == 0)
                n++;
        printf("made %d, then %s\n", n, strerror(r));
        host_pause(700);
        return 0;
}

static int run_address_space(void) {
        struct rlimit limit = { 600 << 20, 600 << 20 };
        size_t mib = 0;

        setrlimit(RLIMIT_AS, &limit);
        host_work(500);
        while (mib < 300 && malloc(1 << 20))
                mib++;
        printf("got %zu MiB\n", mib);
        host_pause(300);
        return 0;
}

/* Not a page more than there is: what fails must fail, and work again when the limit is gone. */
static int run_tight_address_space(void) {
        struct rlimit old, none = { 0, RLIM_INFINITY };
        pthread_t thread;

        host_work(300);
        getrlimit(RLIMIT_AS, &old);
        none.rlim_max = old.rlim_max;
        setrlimit(RLIMIT_AS, &none);
        errno = 0;
        bool has_block = malloc(64 << 20) != NULL;
        int block_errno = errno, thread_result = pthread_create(&thread, NULL, sleep_on, NULL);
        host_pause(500);
        setrlimit(RLIMIT_AS, &old);
        printf("block %d %s, thread %s\n", has_block, strerror(block_errno),
               strerror(thread_result));
        thread_result = pthread_create(&thread, NULL, sleep_on, NULL);
        printf("then %s\n", strerror(thread_result));
        host_pause(300);
        return 0;
}

static int run_locked_memory(void) {
        int r = mlockall(MCL_CURRENT | MCL_FUTURE);

        host_work(700);
        printf("mlockall %s\n", r == 0 ? "ok" : strerror(errno));
        return 0;
}

#define WORKERS 64
#define BLOCKS  200

static atomic_bool is_over;
static atomic_ulong damaged;

/* Every block is filled with a value of its own, and must still have it when it is freed. */
static void *check_blocks(void *argument) {
        unsigned seed = (unsigned) (uintptr_t) argument;
        unsigned char *block[BLOCKS] = { 0 };
        size_t size[BLOCKS] = { 0 };

        while (!atomic_load(&is_over)) {
                unsigned i = (unsigned) rand_r(&seed) % BLOCKS;
                for (size_t at = 0; at < size[i]; at += 61)
                        if (block[i][at] != (unsigned char) i)
                                atomic_fetch_add(&damaged, 1);
                if (rand_r(&seed) % 3 == 0) {
                        free(block[i]);
                        block[i] = NULL;
                        size[i] = 0;
                        continue;
                }
                size[i] = 1 + (size_t) rand_r(&seed) % (rand_r(&seed) % 50 == 0 ? 400000 : 6000);
                unsigned char *grown = realloc(block[i], size[i]);
                if (!grown)
                        return NULL;
                block[i] = grown;
                memset(grown, (int) i, size[i]);
        }
        for (size_t i = 0; i < BLOCKS; i++)
                free(block[i]);
        return NULL;
}

static int run_many_allocators(void) {
        pthread_t thread[WORKERS];

        for (uintptr_t i = 0; i < WORKERS; i++)
                if (pthread_create(&thread[i], NULL, check_blocks, (void *) (i + 1)) != 0)
                        return 1;
        /* Longer by hand: see test_soak.py. */
        const char *seconds = getenv("HOST_SECONDS");
        host_pause(1000 * (seconds ? (unsigned) atoi(seconds) : 4));
        atomic_store(&is_over, true);
        for (int i = 0; i < WORKERS; i++)
                pthread_join(thread[i], NULL);
        printf("damaged %lu\n", atomic_load(&damaged));
        return atomic_load(&damaged) ? 1 : 0;
}

static void *check_once(void *argument) {
        void *block = calloc(1000, 10);
        int r = block && ((char *) block)[9999] == 0;

        free(block);
        return (void *) (intptr_t) r;
}

/* Threads that come and go, with the smallest stack there is. */
static int run_thread_churn(void) {
        pthread_attr_t attributes;
        int good = 0;

        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 16384);
        for (int i = 0; i < 3000; i++) {
                pthread_t thread[4];
                void *result;
                for (int j = 0; j < 4; j++)
                        if (pthread_create(&thread[j], &attributes, check_once, NULL) != 0)
                                return 1;
                for (int j = 0; j < 4; j++) {
                        pthread_join(thread[j], &result);
                        good += (int) (intptr_t) result;
                }
        }
        printf("good %d\n", good);
        return 0;
}

/* errno is the program's, whatever the wrapped calls had to do. */
static int run_errno(void) {
        pthread_t thread;

        errno = 4711;
        pthread_create(&thread, NULL, check_once, NULL);
        int created = errno;
        pthread_join(thread, NULL);
        errno = 4712;
        seteuid(geteuid());
        int switched = errno;
        printf("%d %d\n", created, switched);
        host_pause(500);
        return 0;
}

const struct host_case limit_cases[] = {
        { "thread-limit", run_thread_limit },
        { "address-space", run_address_space },
        { "tight-address-space", run_tight_address_space },
        { "locked-memory", run_locked_memory },
        { "many-allocators", run_many_allocators },
        { "idle", run_idle },
        { "thread-churn", run_thread_churn },
        { "errno", run_errno },
        { NULL, NULL },
};
