/* SPDX-License-Identifier: MIT *
 * Measured 2026-11-30, glibc 2.36, 2 cores, s3-sweep --self-trim --hold=0: RSS/live 9.6, after malloc_trim(0) 9.4;
 * with --clustered 7.7, after it 1.13.
 */
/*
 * S3: a ledger in memory. Each round grows a map of small nodes to --size, then a sweep frees most of them. --scattered (the
 * default) keeps each --keep'th node, so that nearly every page keeps a survivor and no allocator can give it back;
 * --clustered keeps as many, but neighbours. With --checkpoint each sweep is announced by memguard_checkpoint("sweep"),
 * looked up at run time: a program that links nothing stays a plain one where no agent is loaded.
 */
#include "workload.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct node {
        struct node *next;
        uint64_t key;
        uint32_t bytes;
        char value[];
};

/* A partition of the map: its nodes in the order in which they were made. */
struct partition {
        struct node *first;
        uint64_t nodes, bytes;
} partitions[256];

static bool clustered, scattered, announce;
static uint64_t rounds = 4, keep = 32, pause_msec;
static struct workload self = {
        .name = "s3-sweep",
        .title = "a large map of small nodes, swept",
        .size = 256 << 20,
        .threads = 4,
        .hold_seconds = UINT64_MAX,
};
static const struct workload_option options[] = {
        { "clustered", OPTION_FLAG, &clustered, "the survivors are neighbours" },
        { "scattered", OPTION_FLAG, &scattered, "the survivors are everywhere (default)" },
        { "checkpoint", OPTION_FLAG, &announce,
          "call memguard_checkpoint() after each sweep, if it is there" },
        { "rounds", OPTION_COUNT, &rounds, "how often to grow and sweep" },
        { "keep", OPTION_COUNT, &keep, "one node of so many survives" },
        { "pause", OPTION_COUNT, &pause_msec, "milliseconds between rounds" },
        {},
};

static void grow(unsigned index, void *argument) {
        struct partition *partition = &partitions[index];
        uint64_t round = *(uint64_t *) argument;
        struct random random = random_of(index + (unsigned) round * 1000);

        while (partition->bytes < self.size / self.threads && workload_goes_on(0)) {
                uint64_t started = workload_now_usec();
                uint32_t bytes =
                                (uint32_t) (sizeof(struct node) + random_between(&random, 24, 232));
                struct node *node = workload_alloc(bytes);
                node->bytes = bytes;
                node->key = partition->nodes++;
                node->next = partition->first;
                partition->first = node;
                partition->bytes += bytes;
                workload_count(started);
        }
}

static bool survives(uint64_t key) {
        return clustered ? key / 65536 % keep == 0 : key % keep == 0;
}

static void sweep(unsigned index, void *argument) {
        struct partition *partition = &partitions[index];
        struct node **at = &partition->first;

        (void) argument;
        while (*at != NULL) {
                struct node *node = *at;
                if (survives(node->key)) {
                        at = &node->next;
                        continue;
                }
                *at = node->next;
                partition->bytes -= node->bytes;
                free(node);
        }
}

static void checkpoint(void) {
        void (*hook)(const char *) = (__typeof__(hook)) dlsym(RTLD_DEFAULT, "memguard_checkpoint");

        if (hook != NULL)
                hook("sweep");
}

static uint64_t live_bytes(void) {
        uint64_t sum = 0;

        for (unsigned i = 0; i < self.threads; i++)
                sum += partitions[i].bytes;
        return sum;
}

int main(int argc, char **argv) {
        self.operations = UINT64_MAX; /* rounds end the load */
        workload_start(&self, options, argc, argv);
        if (keep == 0)
                keep = 1;
        for (uint64_t round = 0; round < rounds && workload_goes_on(0); round++) {
                workload_run(grow, &round);
                workload_phase("grown", "live_bytes=%lu", live_bytes());
                workload_run(sweep, NULL);
                workload_phase("swept", "live_bytes=%lu", live_bytes());
                if (announce)
                        checkpoint();
                workload_sleep_msec(pause_msec);
        }
        return workload_finish(live_bytes());
}
