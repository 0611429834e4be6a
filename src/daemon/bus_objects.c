/* SPDX-License-Identifier: MIT */
/*
 * Units as objects: org.memguard1.Unit at MG_BUS_UNIT_PATH/NAME, below an object manager. Layer: daemon.
 *
 * Nothing is kept for an object: its path follows from the unit, and one vtable serves all of them. A property has to have a
 * value: what is not known is UINT64_MAX, INT64_MIN for the slope, and "" for a text.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/macros.h"
#include "daemon/bus_server.h"
#include "host/bus_api.h"
#include "host/cleanup.h"

int bus_unit_path(const struct unit *unit, char **ret_path) {
        return sd_bus_path_encode(MG_BUS_UNIT_PATH, unit_label(unit), ret_path);
}

/* What is found is read at once and by nobody else: all objects share the server's one structure. */
static int find_unit(
                sd_bus *bus,
                const char *path,
                const char *interface,
                void *userdata,
                void **ret_found,
                sd_bus_error *error) {
        MG_CLEANUP(freep) char *label = NULL;
        struct bus_server *server = userdata;
        struct unit *unit;
        int r = sd_bus_path_decode(path, MG_BUS_UNIT_PATH, &label);

        if (r <= 0)
                return r;
        unit = unit_find_label(server->manager, label);
        if (!unit)
                return 0;
        unit_facts_take(unit, &server->facts);
        *ret_found = &server->facts;
        return 1;
}

static void free_paths(char ***paths) {
        for (char **path = *paths; path && *path; path++)
                free(*path);
        free(*paths);
}

static int list_units(
                sd_bus *bus,
                const char *prefix,
                void *userdata,
                char ***ret_nodes,
                sd_bus_error *error) {
        struct bus_server *server = userdata;
        MG_CLEANUP(free_paths)
        char **paths = calloc(server->manager->n_units + 1, sizeof(*paths));
        size_t n = 0;

        if (!paths)
                return -ENOMEM;
        for (const struct unit *u = unit_first(server->manager); u; u = unit_next(u)) {
                int r = bus_unit_path(u, &paths[n++]);

                if (r < 0)
                        return r;
        }
        *ret_nodes = MG_TAKE(paths);
        return 0;
}

static int get_text(
                sd_bus *bus,
                const char *path,
                const char *interface,
                const char *property,
                sd_bus_message *reply,
                void *userdata,
                sd_bus_error *error) {
        const char **text = userdata;
        struct dict dict = { .message = reply };

        dict_item(&dict, *text ?: "");
        return dict.error;
}

static int get_last_trim(
                sd_bus *bus,
                const char *path,
                const char *interface,
                const char *property,
                sd_bus_message *reply,
                void *userdata,
                sd_bus_error *error) {
        struct unit *const *unit = userdata;
        struct dict dict = { .message = reply };

        dict_begin(&dict);
        if ((*unit)->last_round_wall_usec > 0)
                bus_last_trim(&dict, *unit);
        dict_end(&dict);
        return dict.error;
}

static int get_allocators(
                sd_bus *bus,
                const char *path,
                const char *interface,
                const char *property,
                sd_bus_message *reply,
                void *userdata,
                sd_bus_error *error) {
        struct unit *const *unit = userdata;
        struct dict dict = { .message = reply };
        int r = sd_bus_message_open_container(reply, 'a', "a{sv}");

        if (r < 0)
                return r;
        bus_allocators(&dict, *unit);
        dict_end(&dict);
        return dict.error;
}

/* clang-format off */
#define FACT(name, type, member, flags) \
        SD_BUS_PROPERTY(name, type, NULL, offsetof(struct unit_facts, member), flags)
#define TEXT(name, member, flags) \
        SD_BUS_PROPERTY(name, "s", get_text, offsetof(struct unit_facts, member), flags)
#define FIXED    SD_BUS_VTABLE_PROPERTY_CONST
#define SIGNALLED SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
/* What each tick measures anew: no signals. */
#define MEASURED 0

static const sd_bus_vtable unit_vtable[] = {
        SD_BUS_VTABLE_START(0),
        TEXT("Name", name, FIXED),
        TEXT("CGroup", cgroup, FIXED),
        TEXT("Source", source, MEASURED),
        TEXT("Mode", mode, SIGNALLED),
        TEXT("Activity", activity, MEASURED),
        FACT("Paused", "b", paused, SIGNALLED),
        FACT("Breaker", "b", breaker, SIGNALLED),
        FACT("AnonBytes", "t", anon_bytes, MEASURED),
        FACT("SwapBytes", "t", swap_bytes, MEASURED),
        FACT("LiveBytes", "t", live_bytes, MEASURED),
        FACT("RetainedBytes", "t", retained_bytes, MEASURED),
        FACT("FreeableBytes", "t", freeable_bytes, MEASURED),
        FACT("PinnedBytes", "t", pinned_bytes, MEASURED),
        FACT("OtherBytes", "t", other_bytes, MEASURED),
        FACT("ShmemBytes", "t", shmem_bytes, MEASURED),
        FACT("FileBytes", "t", file_bytes, MEASURED),
        FACT("TrimAboveBytes", "t", trim_above_bytes, MEASURED),
        TEXT("Verdict", verdict, SIGNALLED),
        FACT("SlopeBytesPerHour", "x", slope_bytes_per_hour, MEASURED),
        TEXT("Reason", reason, SIGNALLED),
        FACT("Processes", "t", processes, MEASURED),
        FACT("Agents", "t", agents, MEASURED),
        FACT("Trims", "t", trims, SIGNALLED),
        FACT("TrimmedBytes", "t", trimmed_bytes, SIGNALLED),
        FACT("WouldTrim", "t", would_trim, MEASURED),
        SD_BUS_PROPERTY("LastTrim", "a{sv}", get_last_trim, offsetof(struct unit_facts, unit), SIGNALLED),
        SD_BUS_PROPERTY("Allocators", "aa{sv}", get_allocators, offsetof(struct unit_facts, unit), MEASURED),
        SD_BUS_VTABLE_END,
};
/* clang-format on */

int bus_publish_units(struct bus_server *server, sd_bus *bus) {
        int r = sd_bus_add_object_manager(bus, NULL, MG_BUS_PATH);

        if (r >= 0)
                r = sd_bus_add_fallback_vtable(
                                bus, NULL, MG_BUS_UNIT_PATH, MG_BUS_UNIT_INTERFACE, unit_vtable,
                                find_unit, server);
        if (r >= 0)
                r = sd_bus_add_node_enumerator(bus, NULL, MG_BUS_UNIT_PATH, list_units, server);
        return r;
}
