/* SPDX-License-Identifier: MIT */
/*
 * What systemd_units.c keeps of each unit, and the asking for its properties. Layer: daemon; for
 * systemd_*.c alone.
 */
#pragma once

#include <systemd/sd-bus.h>

#include "base/list.h"
#include "daemon/systemd_units.h"

#define SYSTEMD_NAME       "org.freedesktop.systemd1"
#define SYSTEMD_PATH       "/org/freedesktop/systemd1"
#define SYSTEMD_UNITS_PATH "/org/freedesktop/systemd1/unit"
#define SYSTEMD_MANAGER    "org.freedesktop.systemd1.Manager"
#define SYSTEMD_UNIT       "org.freedesktop.systemd1.Unit"

#define INVOCATION_ID_BYTES 16

enum unit_property {
        PROPERTY_ACTIVE_STATE,
        PROPERTY_INVOCATION_ID,
        PROPERTY_CONTROL_GROUP,
        PROPERTY_WATCHDOG,
        PROPERTY_ENVIRONMENT,
        PROPERTY_ADDRESS_FAMILIES,
        _UNIT_PROPERTY_MAX,
};

struct unit_entry {
        struct mg_list link; /* units->queue: to be asked about; units->asking: pending > 0 */
        struct systemd_units *units;
        char *name;
        char *object_path;
        char *cgroup_path; /* NULL: none, or not known */
        char invocation_id[2 * INVOCATION_ID_BYTES + 1];
        enum mg_activity activity;
        uint64_t watchdog_usec;
        enum mg_fact sets_agent;
        enum mg_fact forbids_unix;
        bool has_processes; /* by ActiveState= */
        bool told;          /* the owner knows it */
        uint64_t generation;

        /* being asked for */
        sd_bus_slot *loaded_slot;
        sd_bus_slot *slots[_UNIT_PROPERTY_MAX];
        unsigned pending;
        bool again; /* something changed meanwhile */
        bool failed;
        bool gone;
        bool dropped; /* no longer in the table: freed when the answers are in */
};

struct systemd_units {
        sd_event *event;
        char *address; /* NULL: the system bus */
        struct systemd_units_callbacks callbacks;
        void *userdata;

        sd_bus *bus;
        sd_event_source *retry_source;
        uint64_t retry_usec;

        struct unit_entry **entries; /* sorted by name */
        size_t n_entries;
        size_t room;
        struct mg_list queue;
        struct mg_list asking;
        size_t in_flight; /* entries in it */
        uint64_t generation;
        bool listed; /* the list of this connection is in */
        bool available;
};

/* Puts it at the end of the queue, unless it is there; asks at once where there is room. */
void unit_entry_ask(struct unit_entry *entry);

/* Starts what the queue has and the limit allows. */
void units_ask_next(struct systemd_units *units);

/*
 * Forgets what is in flight. Only when the connection is closed: a bus daemon counts calls that nobody waits for any more,
 * and refuses all others when there are too many.
 */
void unit_entry_stop_asking(struct unit_entry *entry);

/* From the query: everything that was asked for is in. */
void units_entry_answered(struct unit_entry *entry);

/* Where NAME is in the table, or would be. */
size_t units_find_place(const struct systemd_units *units, const char *name, bool *ret_found);

/* Finds or makes. */
int unit_entry_get(
                struct systemd_units *units,
                const char *name,
                const char *object_path,
                struct unit_entry **ret_entry);

/* Out of the table, which the owner hears; freed now, or when nothing is in flight for it any more. */
void unit_entry_drop(struct unit_entry *entry);
void unit_entry_tell_removed(struct unit_entry *entry);
struct unit_entry *unit_entry_free(struct unit_entry *entry);

void invocation_id_to_hex(const uint8_t *bytes, size_t n, char ret_hex[static 33]);
