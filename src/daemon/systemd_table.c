/* SPDX-License-Identifier: MIT */
/* The table of systemd's units, sorted by name. Layer: daemon. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "daemon/systemd_unit_entry.h"

size_t units_find_place(const struct systemd_units *units, const char *name, bool *ret_found) {
        size_t low = 0, high = units->n_entries;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int order = strcmp(units->entries[middle]->name, name);

                if (order == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (order < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        *ret_found = false;
        return low;
}

struct unit_entry *unit_entry_free(struct unit_entry *entry) {
        if (!entry)
                return NULL;
        unit_entry_stop_asking(entry);
        free(entry->cgroup_path);
        free(entry->object_path);
        free(entry->name);
        free(entry);
        return NULL;
}
MG_DEFINE_CLEANUP(struct unit_entry *, unit_entry_free)

static int make_room(struct systemd_units *units) {
        size_t room = units->room > 0 ? 2 * units->room : 64;
        struct unit_entry **entries;

        if (units->n_entries < units->room)
                return 0;
        entries = reallocarray(units->entries, room, sizeof(*entries));
        if (!entries)
                return -ENOMEM;
        units->entries = entries;
        units->room = room;
        return 0;
}

int unit_entry_get(
                struct systemd_units *units,
                const char *name,
                const char *object_path,
                struct unit_entry **ret_entry) {
        MG_CLEANUP(unit_entry_freep) struct unit_entry *entry = NULL;
        bool found;
        size_t place = units_find_place(units, name, &found);

        if (found) {
                *ret_entry = units->entries[place];
                return 0;
        }
        entry = calloc(1, sizeof(*entry));
        if (!entry)
                return -ENOMEM;
        entry->units = units;
        entry->watchdog_usec = MG_UNKNOWN;
        list_init(&entry->link);
        entry->name = strdup(name);
        entry->object_path = strdup(object_path);
        if (!entry->name || !entry->object_path || make_room(units) < 0)
                return -ENOMEM;
        memmove(units->entries + place + 1, units->entries + place,
                (units->n_entries - place) * sizeof(struct unit_entry *));
        units->entries[place] = entry;
        units->n_entries++;
        *ret_entry = MG_TAKE(entry);
        return 0;
}

void unit_entry_tell_removed(struct unit_entry *entry) {
        if (!entry->told)
                return;
        entry->told = false;
        entry->units->callbacks.removed(entry->units->userdata, entry->name);
}

void unit_entry_drop(struct unit_entry *entry) {
        struct systemd_units *units = entry->units;
        bool found;
        size_t place = units_find_place(units, entry->name, &found);

        if (found) {
                memmove(units->entries + place, units->entries + place + 1,
                        (units->n_entries - place - 1) * sizeof(struct unit_entry *));
                units->n_entries--;
        }
        unit_entry_tell_removed(entry);
        if (entry->pending > 0)
                entry->dropped = true;
        else
                unit_entry_free(entry);
}
