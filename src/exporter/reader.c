/* SPDX-License-Identifier: MIT */
/* From the bus into a snapshot; see reader.h. Layer: exporter. */
#include "exporter/reader.h"

#include <errno.h>

#include "base/file.h"
#include "base/macros.h"
#include "exporter/clock.h"
#include "exporter/dictionary.h"
#include "host/bus_api.h"
#include "host/private_socket.h"

/* ---- dictionaries ---- */

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

/* ---- the connection ---- */

static int open_private(const char *directory, sd_bus **ret_bus) {
        MG_CLEANUP(sd_bus_close_unrefp) sd_bus *bus = NULL;
        MG_CLEANUP(file_closep) int fd = -EBADF;
        int r = private_socket_connect(directory, &fd);

        if (r >= 0)
                r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_fd(bus, fd, fd);
        if (r < 0)
                return r;
        (void) MG_TAKE_FD(fd);
        r = sd_bus_start(bus);
        if (r < 0)
                return r;
        *ret_bus = MG_TAKE(bus);
        return 0;
}

/* sd_bus_call() would wait for the authentication as long as it takes. */
static int wait_until_ready(sd_bus *bus, uint64_t until_usec) {
        for (;;) {
                uint64_t left_usec = mg_sub_floor(until_usec, clock_now_usec());
                int r = sd_bus_is_ready(bus);

                if (r != 0)
                        return r < 0 ? r : 0;
                if (left_usec == 0)
                        return -ETIMEDOUT;
                r = sd_bus_process(bus, NULL);
                if (r == 0)
                        r = sd_bus_wait(bus, left_usec);
                if (r < 0 && r != -EINTR)
                        return r;
        }
}

static int call(sd_bus *bus,
                const char *destination,
                const char *method,
                uint64_t until_usec,
                sd_bus_message **ret_reply) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        uint64_t left_usec = mg_sub_floor(until_usec, clock_now_usec());
        int r;

        if (left_usec == 0)
                return -ETIMEDOUT;
        r = sd_bus_message_new_method_call(
                        bus, &message, destination, MG_BUS_PATH, MG_BUS_INTERFACE, method);
        if (r >= 0 && mg_streq(method, "ListUnits"))
                r = sd_bus_message_append(message, "as", 0);
        return r < 0 ? r : sd_bus_call(bus, message, left_usec, NULL, ret_reply);
}

static int read_all(
                sd_bus *bus,
                const char *destination,
                uint64_t until_usec,
                struct snapshot *snapshot) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *host = NULL;
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *units = NULL;
        int r = wait_until_ready(bus, until_usec);

        if (r >= 0)
                r = call(bus, destination, "GetHost", until_usec, &host);
        if (r >= 0)
                r = dictionary_walk(host, take_host, snapshot);
        if (r >= 0)
                r = call(bus, destination, "ListUnits", until_usec, &units);
        return r < 0 ? r : dictionary_list_walk(units, read_unit, snapshot);
}

int reader_read(const char *directory, uint64_t timeout_usec, struct snapshot *ret_snapshot) {
        MG_CLEANUP(sd_bus_close_unrefp) sd_bus *bus = NULL;
        uint64_t began_usec = clock_now_usec();
        const char *destination = NULL;
        int r = open_private(directory ?: MG_RUNTIME_DIRECTORY, &bus);

        if (r < 0 && !directory && sd_bus_open_system(&bus) >= 0) {
                destination = MG_BUS_NAME;
                r = 0;
        }
        if (r >= 0)
                r = read_all(bus, destination, began_usec + timeout_usec, ret_snapshot);
        if (r < 0) {
                snapshot_done(ret_snapshot);
                snapshot_init(ret_snapshot);
        }
        ret_snapshot->up = r >= 0;
        ret_snapshot->read_usec = clock_now_usec() - began_usec;
        return r < 0 ? r : 0;
}
