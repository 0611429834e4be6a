/* SPDX-License-Identifier: MIT *
 * Measured 2026-11-30, glibc 2.36, 2 cores, s1-lru-cache --self-trim --hold=0: RSS/live 2.58 at the end, 1.09
 * after malloc_trim(0) (128 MiB live).
 */
/*
 * S1: LRU caches at their capacity, evicting, with values whose usual size drifts: each generation of values leaves holes
 * that fit the next one badly. The caches stay full, so live is flat from the first fill on while RSS climbs.
 * A cache is split in shards; any thread puts into any shard, so blocks are freed in other threads' arenas.
 */
#include "workload.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SHARDS  16
#define BUCKETS 65536 /* of each shard; chains are short at any size a test uses */

/* The usual size of a value goes through these, one after the other, again and again. */
static const uint64_t usual_sizes[] = { 512, 6000, 1500, 24000, 3000, 700, 48000, 10000 };
#define GENERATIONS (sizeof(usual_sizes) / sizeof(usual_sizes[0]))

struct entry {
        struct entry *newer, *older, *chained;
        uint64_t key;
        size_t bytes;
};

static struct shard {
        pthread_mutex_t lock;
        struct entry **bucket;
        struct entry *newest, *oldest;
        uint64_t bytes;
} shards[SHARDS];

static uint64_t drift_operations = 60000;
static struct workload self = {
        .name = "s1-lru-cache",
        .title = "LRU caches at capacity, sizes drift",
        .size = 128 << 20,
        .threads = 4,
        .operations = 1000000,
        .hold_seconds = UINT64_MAX,
};
static const struct workload_option options[] = {
        { "drift", OPTION_COUNT, &drift_operations,
          "operations after which the usual size changes" },
        {},
};

static void unlink_entry(struct shard *shard, struct entry *entry) {
        *(entry->newer ? &entry->newer->older : &shard->newest) = entry->older;
        *(entry->older ? &entry->older->newer : &shard->oldest) = entry->newer;
}

static void push_newest(struct shard *shard, struct entry *entry) {
        entry->newer = NULL;
        entry->older = shard->newest;
        *(shard->newest ? &shard->newest->newer : &shard->oldest) = entry;
        shard->newest = entry;
}

static struct entry **find(struct shard *shard, uint64_t key) {
        struct entry **at = &shard->bucket[key / SHARDS % BUCKETS];

        while (*at != NULL && (*at)->key != key)
                at = &(*at)->chained;
        return at;
}

static void evict_oldest(struct shard *shard) {
        struct entry *victim = shard->oldest;

        *find(shard, victim->key) = victim->chained;
        unlink_entry(shard, victim);
        shard->bytes -= victim->bytes;
        free(victim);
}

static void insert(struct shard *shard, uint64_t key, size_t bytes) {
        struct entry *entry = workload_alloc(sizeof(*entry) + bytes);
        struct entry **bucket = &shard->bucket[key / SHARDS % BUCKETS];

        entry->key = key;
        entry->bytes = sizeof(*entry) + bytes;
        entry->chained = *bucket;
        *bucket = entry;
        push_newest(shard, entry);
        shard->bytes += entry->bytes;
        while (shard->bytes > self.size / SHARDS)
                evict_oldest(shard);
}

static void get_or_insert(uint64_t key, size_t bytes) {
        struct shard *shard = &shards[key % SHARDS];

        pthread_mutex_lock(&shard->lock);
        struct entry *entry = *find(shard, key);
        if (entry != NULL) {
                unlink_entry(shard, entry);
                push_newest(shard, entry);
        } else
                insert(shard, key, bytes);
        pthread_mutex_unlock(&shard->lock);
}

static void serve(unsigned index, void *argument) {
        struct random random = random_of(index);

        (void) argument;
        for (uint64_t done = 0; workload_goes_on(done); done++) {
                uint64_t usual = usual_sizes[done * self.threads / drift_operations % GENERATIONS];
                /* One request in four is for one of a few popular keys; the others are mostly new. */
                uint64_t key = random_between(&random, 0, 3) == 0 ? random_between(&random, 0, 2000)
                                                                  : random_next(&random);
                uint64_t started = workload_now_usec();
                get_or_insert(key, random_between(&random, usual / 2, usual + usual / 2));
                workload_count(started);
        }
}

int main(int argc, char **argv) {
        uint64_t live = 0;

        workload_start(&self, options, argc, argv);
        for (unsigned i = 0; i < SHARDS; i++) {
                pthread_mutex_init(&shards[i].lock, NULL);
                shards[i].bucket = workload_map(BUCKETS * sizeof(struct entry *));
        }
        workload_run(serve, NULL);
        for (unsigned i = 0; i < SHARDS; i++)
                live += shards[i].bytes;
        return workload_finish(live);
}
