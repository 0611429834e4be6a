/* SPDX-License-Identifier: MIT */
/* What one look has brought; see snapshot.h. Layer: exporter. */
#include "exporter/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

static void fill_unknown(uint64_t *numbers, size_t n) {
        for (size_t i = 0; i < n; i++)
                numbers[i] = MG_UNKNOWN;
}

void snapshot_init(struct snapshot *snapshot) {
        *snapshot = (struct snapshot){};
        fill_unknown(snapshot->number, HOST_METRICS);
}

static void counts_done(struct snapshot_counts *counts) {
        for (size_t i = 0; i < counts->n; i++)
                free(counts->list[i].name);
        free(counts->list);
}

static void heap_done(struct snapshot_heap *heap) {
        free(heap->allocator);
        free(heap->version);
}

static void unit_done(struct snapshot_unit *unit) {
        free(unit->name);
        free(unit->cgroup);
        free(unit->mode);
        free(unit->verdict);
        free(unit->reason);
        counts_done(&unit->results);
        counts_done(&unit->held_usec);
        for (size_t i = 0; i < unit->n_heaps; i++)
                heap_done(&unit->heaps[i]);
        free(unit->heaps);
}

void snapshot_done(struct snapshot *snapshot) {
        for (size_t i = 0; i < snapshot->n_units; i++)
                unit_done(&snapshot->units[i]);
        free(snapshot->units);
        free(snapshot->version);
        *snapshot = (struct snapshot){};
}

/* Room for one more behind N elements of SIZE; grows at powers of two, so that no capacity need be kept. */
static int make_room(void *list, size_t n, size_t size) {
        void **place = list;
        void *larger;

        if (n > 0 && (n & (n - 1)) != 0)
                return 0;
        larger = reallocarray(*place, n > 0 ? 2 * n : 1, size);
        if (!larger)
                return -ENOMEM;
        *place = larger;
        return 0;
}

struct snapshot_unit *snapshot_add_unit(struct snapshot *snapshot) {
        struct snapshot_unit *unit;

        if (make_room(&snapshot->units, snapshot->n_units, sizeof(*unit)) < 0)
                return NULL;
        unit = &snapshot->units[snapshot->n_units++];
        *unit = (struct snapshot_unit){};
        fill_unknown(unit->number, UNIT_METRICS);
        return unit;
}

struct snapshot_heap *snapshot_add_heap(struct snapshot_unit *unit) {
        struct snapshot_heap *heap;

        if (make_room(&unit->heaps, unit->n_heaps, sizeof(*heap)) < 0)
                return NULL;
        heap = &unit->heaps[unit->n_heaps++];
        *heap = (struct snapshot_heap){};
        fill_unknown(heap->number, HEAP_METRICS);
        return heap;
}

int snapshot_add_count(struct snapshot_counts *counts, const char *name, uint64_t value) {
        struct snapshot_count count = { .value = value };
        int r;

        if (counts->n == SNAPSHOT_COUNTS_MAX)
                return 0;
        if (make_room(&counts->list, counts->n, sizeof(count)) < 0)
                return -ENOMEM;
        r = snapshot_keep_text(&count.name, name);
        if (r < 0)
                return r;
        counts->list[counts->n++] = count;
        return 0;
}

int snapshot_keep_text(char **place, const char *text) {
        size_t length = strlen(text);
        const char *from = text + mg_sub_floor(length, SNAPSHOT_TEXT_MAX);
        char *kept;

        /* Not within a character of several bytes. */
        while (from > text && ((unsigned char) *from & 0xc0) == 0x80)
                from++;
        kept = strdup(from);
        if (!kept)
                return -ENOMEM;
        free(*place);
        *place = kept;
        return 0;
}

/* ---- the limits ---- */

static uint64_t number_of(const struct snapshot_unit *unit, const char *key) {
        int slot = metric_find(unit_metrics, UNIT_METRICS, key);

        return slot < 0 || unit->number[slot] == MG_UNKNOWN ? 0 : unit->number[slot];
}

static int compare_numbers(uint64_t a, uint64_t b) {
        return a < b ? -1 : a > b;
}

static int compare_identities(const void *left, const void *right) {
        const struct snapshot_unit *a = left, *b = right;
        int by_name = strcmp(a->name ?: "", b->name ?: "");

        return by_name != 0 ? by_name : strcmp(a->cgroup ?: "", b->cgroup ?: "");
}

/* Those to be kept first. */
static int compare_ranks(const void *left, const void *right) {
        const struct snapshot_unit *a = left, *b = right;
        int by_agents = compare_numbers(number_of(b, "agents") > 0, number_of(a, "agents") > 0);
        int by_size = compare_numbers(number_of(b, "anon_bytes"), number_of(a, "anon_bytes"));

        if (by_agents != 0)
                return by_agents;
        return by_size != 0 ? by_size : compare_identities(left, right);
}

static bool begins_process(const struct snapshot_unit *unit, size_t heap) {
        return heap == 0 || unit->heaps[heap - 1].pid != unit->heaps[heap].pid;
}

static size_t count_processes(const struct snapshot_unit *unit) {
        size_t n = 0;

        for (size_t i = 0; i < unit->n_heaps; i++)
                n += begins_process(unit, i);
        return n;
}

static void leave_out(struct snapshot *snapshot, struct snapshot_unit *unit) {
        snapshot->units_left_out++;
        snapshot->processes_left_out += count_processes(unit);
        unit_done(unit);
}

/* Two series of the same labels would spoil each other: of units alike the first is kept. */
static void leave_out_doubles(struct snapshot *snapshot) {
        size_t n = 0;

        qsort(snapshot->units, snapshot->n_units, sizeof(*snapshot->units), compare_identities);
        for (size_t i = 0; i < snapshot->n_units; i++) {
                struct snapshot_unit *unit = &snapshot->units[i];

                if (n > 0 && compare_identities(&snapshot->units[n - 1], unit) == 0)
                        leave_out(snapshot, unit);
                else
                        snapshot->units[n++] = *unit;
        }
        snapshot->n_units = n;
}

/* Returns how many processes it has kept. */
static size_t limit_processes(struct snapshot *snapshot, struct snapshot_unit *unit, size_t max) {
        size_t n = count_processes(unit);

        while (n > max) {
                size_t last = --unit->n_heaps;
                bool begins = begins_process(unit, last);

                heap_done(&unit->heaps[last]);
                n -= begins;
                snapshot->processes_left_out += begins;
        }
        return n;
}

void snapshot_limit(struct snapshot *snapshot, size_t max_units, size_t max_processes) {
        size_t room = max_processes;

        if (snapshot->n_units == 0)
                return;
        leave_out_doubles(snapshot);
        qsort(snapshot->units, snapshot->n_units, sizeof(*snapshot->units), compare_ranks);
        while (snapshot->n_units > max_units)
                leave_out(snapshot, &snapshot->units[--snapshot->n_units]);
        for (size_t i = 0; i < snapshot->n_units; i++)
                room -= limit_processes(snapshot, &snapshot->units[i], room);
}
