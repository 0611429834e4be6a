/* SPDX-License-Identifier: MIT */
/* The daemon's answers; see decode.h. Layer: exporter. */
#include "exporter/decode.h"

#include <errno.h>

#include "base/macros.h"
#include "exporter/dictionary.h"

/* Puts a number into its slot of NUMBERS; anything else is nobody's. */
static int take_number(
                const struct metric *table,
                size_t n,
                uint64_t *numbers,
                const struct value *value) {
        int slot = metric_find(table, n, value->key);

        if (slot >= 0 && (value->type == SD_BUS_TYPE_UINT64 || value->type == SD_BUS_TYPE_BOOLEAN))
                numbers[slot] = value->number;
        return 0;
}

static int take_host(const struct value *value, void *userdata) {
        struct snapshot *snapshot = userdata;

        if (mg_streq(value->key, "version") && value->text)
                return snapshot_keep_text(&snapshot->version, value->text);
        return take_number(host_metrics, HOST_METRICS, snapshot->number, value);
}

static int take_heap(const struct value *value, void *userdata) {
        struct snapshot_heap *heap = userdata;

        if (mg_streq(value->key, "name") && value->text)
                return snapshot_keep_text(&heap->allocator, value->text);
        if (mg_streq(value->key, "version") && value->text)
                return snapshot_keep_text(&heap->version, value->text);
        if (mg_streq(value->key, "pid"))
                heap->pid = value->number;
        return take_number(heap_metrics, HEAP_METRICS, heap->number, value);
}

static int read_heap(sd_bus_message *message, void *userdata) {
        struct snapshot_unit *unit = userdata;
        struct snapshot_heap *heap = snapshot_add_heap(unit);
        int r;

        if (!heap)
                return -ENOMEM;
        r = dictionary_walk(message, take_heap, heap);
        if (r >= 0 && unit->n_heaps > 1 && heap[-1].pid == heap->pid)
                heap->index = heap[-1].index + 1;
        return r;
}

static int take_count(const struct value *value, void *userdata) {
        return value->type == SD_BUS_TYPE_UINT64
                               ? snapshot_add_count(userdata, value->key, value->number)
                               : 0;
}

struct bucket {
        uint64_t up_to_usec;
        uint64_t count;
};

static int take_bucket(const struct value *value, void *userdata) {
        struct bucket *bucket = userdata;

        if (mg_streq(value->key, "up_to_usec"))
                bucket->up_to_usec = value->number;
        if (mg_streq(value->key, "count"))
                bucket->count = value->number;
        return 0;
}

static int read_bucket(sd_bus_message *message, void *userdata) {
        struct bucket bucket = { .up_to_usec = MG_UNKNOWN };
        struct snapshot_pauses *pauses = userdata;
        int r = dictionary_walk(message, take_bucket, &bucket);

        if (r < 0 || pauses->n == SNAPSHOT_BUCKETS_MAX)
                return r;
        pauses->up_to_usec[pauses->n] = bucket.up_to_usec;
        pauses->count[pauses->n++] = bucket.count;
        return 0;
}

static int take_array(const struct value *value, struct snapshot_unit *unit) {
        int r = 0;

        if (mg_streq(value->contents, "{sv}")) {
                if (mg_streq(value->key, "results"))
                        r = dictionary_walk(value->message, take_count, &unit->results);
                else if (mg_streq(value->key, "held_usec"))
                        r = dictionary_walk(value->message, take_count, &unit->held_usec);
                else
                        return 0;
        } else if (mg_streq(value->contents, "a{sv}")) {
                if (mg_streq(value->key, "allocators"))
                        r = dictionary_list_walk(value->message, read_heap, unit);
                else if (mg_streq(value->key, "pauses"))
                        r = dictionary_list_walk(value->message, read_bucket, &unit->pauses);
                else
                        return 0;
        } else
                return 0;
        return r < 0 ? r : 1;
}

static int take_unit(const struct value *value, void *userdata) {
        struct snapshot_unit *unit = userdata;
        const struct {
                const char *key;
                char **place;
        } texts[] = {
                { "unit", &unit->name },       { "cgroup", &unit->cgroup }, { "mode", &unit->mode },
                { "verdict", &unit->verdict }, { "reason", &unit->reason },
        };

        if (value->type == SD_BUS_TYPE_ARRAY)
                return take_array(value, unit);
        for (size_t i = 0; value->text && i < MG_ELEMENTS(texts); i++)
                if (mg_streq(texts[i].key, value->key))
                        return snapshot_keep_text(texts[i].place, value->text);
        if (mg_streq(value->key, "slope_bytes_per_hour") && value->type == SD_BUS_TYPE_INT64) {
                unit->slope_bytes_per_hour = value->whole;
                unit->slope_known = true;
        }
        if (mg_streq(value->key, "pause_sum_usec"))
                unit->pauses.sum_usec = value->number;
        return take_number(unit_metrics, UNIT_METRICS, unit->number, value);
}

static int read_unit(sd_bus_message *message, void *userdata) {
        struct snapshot_unit *unit = snapshot_add_unit(userdata);

        return unit ? dictionary_walk(message, take_unit, unit) : -ENOMEM;
}

int decode_host(sd_bus_message *reply, struct snapshot *snapshot) {
        return dictionary_walk(reply, take_host, snapshot);
}

int decode_units(sd_bus_message *reply, struct snapshot *snapshot) {
        return dictionary_list_walk(reply, read_unit, snapshot);
}
