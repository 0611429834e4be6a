/* SPDX-License-Identifier: MIT *
 * Measured 2026-11-30, glibc 2.36, 2 cores, s4-large-blocks --self-trim --hold=0: RSS/live 9.2 after the drop (545
 * MiB for 59 MiB), 1.3 after malloc_trim(0).
 */
/*
 * S4: a block-device server that serves many volumes with buffers of several MiB. Freeing the first of them lifts glibc's
 * mmap threshold towards 32 MiB, so that all later ones come from the heaps. Then the volumes are paused: the load drops
 * to --idle percent of the buffers, the heaps stay as large as they were.
 */
#include "workload.h"

#include <stdlib.h>

#define SLOTS_MAX 64

struct volume_set {
        void *buffer[SLOTS_MAX];
        size_t bytes[SLOTS_MAX];
        void *journal[SLOTS_MAX]; /* a small block that outlives its buffer, and pins the heap behind it */
        unsigned slots;
} sets[256];

static uint64_t largest = 8 << 20, idle_percent = 10;
static struct workload self = {
        .name = "s4-large-blocks",
        .title = "multi-MiB churn that lifts the mmap threshold, then the load drops",
        .size = 384 << 20,
        .threads = 4,
        .operations = 6000,
        .hold_seconds = UINT64_MAX,
};
static const struct workload_option options[] = {
        { "largest", OPTION_SIZE, &largest, "the largest buffer" },
        { "idle", OPTION_COUNT, &idle_percent, "percent of the buffers that stay after the drop" },
        {},
};

static void replace(struct volume_set *set, unsigned slot, struct random *random) {
        free(set->buffer[slot]);
        set->bytes[slot] = random_between(random, largest / 8, largest);
        set->buffer[slot] = workload_alloc(set->bytes[slot]);
        free(set->journal[slot]);
        set->journal[slot] = workload_alloc(4096);
}

static void serve(unsigned index, void *argument) {
        struct volume_set *set = &sets[index];
        struct random random = random_of(index);

        (void) argument;
        for (uint64_t done = 0; workload_goes_on(done); done++) {
                uint64_t started = workload_now_usec();
                replace(set, (unsigned) random_between(&random, 0, set->slots - 1), &random);
                workload_count(started);
        }
}

static void pause_volumes(unsigned index, void *argument) {
        struct volume_set *set = &sets[index];

        (void) argument;
        for (unsigned slot = 0; slot < set->slots; slot++)
                if (slot * 100 >= set->slots * idle_percent) {
                        free(set->buffer[slot]);
                        set->buffer[slot] = NULL;
                        set->bytes[slot] = 0;
                }
}

/* So many slots that the buffers are --size together, on average 9/16 of the largest each. */
static unsigned slots_of_each(void) {
        uint64_t slots = self.size / self.threads / (largest * 9 / 16);

        return slots < 2 ? 2 : slots > SLOTS_MAX ? SLOTS_MAX : (unsigned) slots;
}

int main(int argc, char **argv) {
        uint64_t live = 0;

        workload_start(&self, options, argc, argv);
        for (unsigned i = 0; i < self.threads; i++)
                sets[i].slots = slots_of_each();
        /* Freed once while still mapped on its own, the largest buffer lifts the threshold for good. */
        free(workload_alloc(largest * 2 > (30 << 20) ? 30 << 20 : largest * 2));
        workload_run(serve, NULL);
        workload_phase("drop", NULL);
        workload_run(pause_volumes, NULL);
        for (unsigned i = 0; i < self.threads; i++)
                for (unsigned slot = 0; slot < sets[i].slots; slot++)
                        live += sets[i].bytes[slot] + (sets[i].journal[slot] ? 4096 : 0);
        return workload_finish(live);
}
