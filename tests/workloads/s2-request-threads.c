/* SPDX-License-Identifier: MIT *
 * Measured 2026-11-30, glibc 2.36, 2 cores, s2-request-threads --self-trim --hold=0: RSS/live 30 (246 MiB for 8
 * MiB), 6.1 after malloc_trim(0): the rest is arena tops, which it does not reach.
 */
/*
 * S2: a server that makes a worker thread for each request, several at a time. A request decodes an image (buffers of
 * 64 KiB to 4 MiB, freed at its end) and leaves a small result in a shared ring, where a later request frees it. Every
 * thread gets some arena of glibc's; each arena keeps the top that its biggest request once needed, pinned by a result.
 * The ring holds an eighth of --size when it is full.
 */
#include "workload.h"

#include <pthread.h>
#include <stdlib.h>

#define RESULT_MIN 256
#define RESULT_MAX 8192
#define BUFFERS    6
#define BUFFER_MAX (4 << 20)

struct result {
        void *block;
        size_t bytes;
};

static struct {
        pthread_mutex_t lock;
        struct result *ring;
        uint64_t count, next;
} results = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --threads are the requests in flight; --size bounds what they hold together. */
static struct workload self = {
        .name = "s2-request-threads",
        .title = "a worker thread for each request",
        .size = 256 << 20,
        .threads = 16,
        .operations = 3000,
        .hold_seconds = UINT64_MAX,
};

static void keep_result(struct random *random) {
        size_t bytes = random_between(random, RESULT_MIN, RESULT_MAX);
        struct result made = { workload_alloc(bytes), bytes };

        pthread_mutex_lock(&results.lock);
        struct result *place = &results.ring[results.next++ % results.count];
        struct result old = *place;
        *place = made;
        pthread_mutex_unlock(&results.lock);
        free(old.block);
}

static void *serve_request(void *argument) {
        struct random *random = argument;
        uint64_t largest = self.size / self.threads / BUFFERS * 2;
        void *buffer[BUFFERS];

        if (largest > BUFFER_MAX)
                largest = BUFFER_MAX;
        for (unsigned i = 0; i < BUFFERS; i++)
                buffer[i] = workload_alloc(random_between(random, 64 << 10, largest));
        keep_result(random);
        for (unsigned i = 0; i < BUFFERS; i++)
                free(buffer[i]);
        return NULL;
}

/* One acceptor: a request after the other, each in a thread of its own. */
static void accept_requests(unsigned index, void *argument) {
        struct random random = random_of(index);

        (void) argument;
        for (uint64_t done = 0; workload_goes_on(done); done++) {
                uint64_t started = workload_now_usec();
                pthread_t thread;
                if (pthread_create(&thread, NULL, serve_request, &random) == 0)
                        pthread_join(thread, NULL);
                workload_count(started);
        }
}

int main(int argc, char **argv) {
        uint64_t live = 0;

        workload_start(&self, NULL, argc, argv);
        results.count = self.size / 8 / ((RESULT_MIN + RESULT_MAX) / 2) + 1;
        results.ring = calloc(results.count, sizeof(*results.ring));
        if (!results.ring)
                return EXIT_FAILURE;
        workload_run(accept_requests, NULL);
        for (uint64_t i = 0; i < results.count; i++)
                live += results.ring[i].bytes;
        return workload_finish(live);
}
