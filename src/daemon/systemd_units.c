/* SPDX-License-Identifier: MIT */
/*
 * systemd's units over D-Bus: the connection, the list, the signals. Layer: daemon.
 *
 * An entry is kept for every loaded .service and .scope; the owner hears of those that have processes and a cgroup.
 */
#include "daemon/systemd_units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "daemon/systemd_unit_entry.h"

#define SYSTEM_BUS_ADDRESS "unix:path=/run/dbus/system_bus_socket"
#define RETRY_MIN_USEC     MG_USEC_PER_SEC
#define RETRY_MAX_USEC     MG_USEC_PER_MIN

bool activity_from_state(const char *active_state, enum mg_activity *ret_activity) {
        static const struct {
                const char *state;
                bool has_processes;
                enum mg_activity activity;
        } states[] = {
                { "active", true, MG_ACTIVITY_ACTIVE },
                { "refreshing", true, MG_ACTIVITY_RELOADING },
                { "reloading", true, MG_ACTIVITY_RELOADING },
                { "activating", true, MG_ACTIVITY_ACTIVATING },
                { "deactivating", true, MG_ACTIVITY_DEACTIVATING },
        };

        for (size_t i = 0; i < MG_ELEMENTS(states); i++)
                if (mg_streq(active_state, states[i].state)) {
                        *ret_activity = states[i].activity;
                        return true;
                }
        return false; /* inactive, failed, maintenance, and what a later systemd may invent */
}

/* ---- what the owner hears ---- */

static void tell_state(struct unit_entry *entry) {
        struct systemd_units *units = entry->units;

        if (!entry->has_processes || !entry->cgroup_path) {
                unit_entry_tell_removed(entry);
                return;
        }
        entry->told = true;
        units->callbacks.changed(
                        units->userdata, &(struct systemd_unit){
                                                         .name = entry->name,
                                                         .cgroup_path = entry->cgroup_path,
                                                         .invocation_id = entry->invocation_id,
                                                         .activity = entry->activity,
                                                         .watchdog_usec = entry->watchdog_usec,
                                                         .sets_agent = entry->sets_agent,
                                                         .forbids_unix = entry->forbids_unix,
                                         });
}

static void set_available(struct systemd_units *units, bool available) {
        if (units->available == available)
                return;
        units->available = available;
        if (units->callbacks.available)
                units->callbacks.available(units->userdata, available);
}

static void check_complete(struct systemd_units *units) {
        if (units->listed && units->in_flight == 0 && list_is_empty(&units->queue))
                set_available(units, true);
}

static void schedule_retry(struct systemd_units *units);

void units_entry_answered(struct unit_entry *entry) {
        struct systemd_units *units = entry->units;

        if (entry->dropped)
                unit_entry_free(entry);
        else if (entry->gone)
                unit_entry_drop(entry);
        else if (!entry->failed)
                tell_state(entry);
        else {
                /* No answer, or one that makes no sense: everything anew, but not at once. */
                units->retry_usec = RETRY_MAX_USEC;
                schedule_retry(units);
        }
        check_complete(units);
}

/* A unit's state as the list or a signal has it; asks for the rest only where that may have changed. */
static void entry_set_state(
                struct unit_entry *entry,
                const char *state,
                const char *invocation_id) {
        enum mg_activity before = entry->activity;
        bool new_life = invocation_id && !mg_streq(invocation_id, entry->invocation_id);

        entry->has_processes = activity_from_state(state, &entry->activity);
        if (!entry->has_processes) {
                entry->again = false;
                if (entry->pending == 0)
                        list_remove(&entry->link);
                unit_entry_tell_removed(entry);
                return;
        }
        if (!entry->told || new_life || entry->pending > 0)
                unit_entry_ask(entry);
        else if (entry->activity != before)
                tell_state(entry);
}

/* ---- signals ---- */

static bool is_wanted_name(const char *name) {
        const char *suffix = strrchr(name, '.');

        return suffix && (mg_streq(suffix, ".service") || mg_streq(suffix, ".scope"));
}

static int on_unit_new(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct systemd_units *units = userdata;
        const char *name, *object_path;
        struct unit_entry *entry;

        if (sd_bus_message_read(message, "so", &name, &object_path) < 0 || !is_wanted_name(name))
                return 0;
        if (unit_entry_get(units, name, object_path, &entry) >= 0) {
                entry->generation = units->generation;
                unit_entry_ask(entry);
        }
        return 0;
}

static int on_unit_removed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct systemd_units *units = userdata;
        const char *name;
        bool found;
        size_t place;

        if (sd_bus_message_read(message, "so", &name, NULL) < 0)
                return 0;
        place = units_find_place(units, name, &found);
        if (found)
                unit_entry_drop(units->entries[place]);
        check_complete(units);
        return 0;
}

static int read_invocation_id(sd_bus_message *message, char ret_hex[static 33]) {
        const void *bytes;
        size_t n;
        int r = sd_bus_message_enter_container(message, 'v', "ay");

        if (r >= 0)
                r = sd_bus_message_read_array(message, 'y', &bytes, &n);
        if (r < 0)
                return r;
        invocation_id_to_hex(bytes, n, ret_hex);
        return sd_bus_message_exit_container(message);
}

static int read_changes(sd_bus_message *message, const char **ret_state, char ret_id[static 33]) {
        const char *key;
        int r = sd_bus_message_enter_container(message, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
                r = sd_bus_message_read(message, "s", &key);
                if (r < 0)
                        break;
                if (mg_streq(key, "ActiveState"))
                        r = sd_bus_message_read(message, "v", "s", ret_state);
                else if (mg_streq(key, "InvocationID"))
                        r = read_invocation_id(message, ret_id);
                else
                        r = sd_bus_message_skip(message, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(message);
        }
        return r;
}

static int on_properties_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct systemd_units *units = userdata;
        const char *interface, *state = NULL;
        char *name = NULL;
        char id[33] = "";
        bool found = false;
        size_t place = 0;

        if (sd_bus_message_read(message, "s", &interface) < 0 || !mg_streq(interface, SYSTEMD_UNIT))
                return 0;
        if (sd_bus_path_decode(sd_bus_message_get_path(message), SYSTEMD_UNITS_PATH, &name) > 0)
                place = units_find_place(units, name, &found);
        free(name);
        if (found && read_changes(message, &state, id) >= 0 && state)
                entry_set_state(units->entries[place], state, id[0] != '\0' ? id : NULL);
        check_complete(units);
        return 0;
}

/* ---- the list ---- */

static int read_unit(struct systemd_units *units, sd_bus_message *reply) {
        const char *name, *state, *object_path;
        struct unit_entry *entry;
        int r = sd_bus_message_read(
                        reply, "(ssssssouso)", &name, NULL, NULL, &state, NULL, NULL, &object_path,
                        NULL, NULL, NULL);

        if (r <= 0)
                return r;
        r = unit_entry_get(units, name, object_path, &entry);
        if (r < 0)
                return r;
        entry->generation = units->generation;
        /* The list has no InvocationID; after a reload or a lost connection everything is asked for again. */
        entry->has_processes = activity_from_state(state, &entry->activity);
        if (entry->has_processes)
                unit_entry_ask(entry);
        else
                unit_entry_tell_removed(entry);
        return 1;
}

static void drop_unlisted(struct systemd_units *units) {
        for (size_t i = units->n_entries; i > 0; i--)
                if (units->entries[i - 1]->generation != units->generation)
                        unit_entry_drop(units->entries[i - 1]);
}

static int on_list(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct systemd_units *units = userdata;
        int r = -EIO;

        if (!sd_bus_message_is_method_error(reply, NULL))
                r = sd_bus_message_enter_container(reply, 'a', "(ssssssouso)");
        units->generation++;
        while (r > 0)
                r = read_unit(units, reply);
        if (r < 0) {
                schedule_retry(units);
                return 1;
        }
        drop_unlisted(units);
        units->listed = true;
        units->retry_usec = RETRY_MIN_USEC;
        check_complete(units);
        return 1;
}

/* "Already subscribed" is as good. */
static int on_subscribed(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return 1;
}

static int subscribe(struct systemd_units *units) {
        return sd_bus_call_method_async(
                        units->bus, NULL, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER, "Subscribe",
                        on_subscribed, units, NULL);
}

static int call_list(struct systemd_units *units) {
        sd_bus_message *call = NULL;
        int r = sd_bus_message_new_method_call(
                        units->bus, &call, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_MANAGER,
                        "ListUnitsByPatterns");

        if (r >= 0)
                r = sd_bus_message_append(call, "asas", 0, 2, "*.service", "*.scope");
        if (r >= 0)
                r = sd_bus_call_async(units->bus, NULL, call, on_list, units, 0);
        sd_bus_message_unref(call);
        return r;
}

static void list_units(struct systemd_units *units) {
        if (call_list(units) < 0)
                schedule_retry(units);
}

static int on_reloading(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct systemd_units *units = userdata;
        int active;

        if (sd_bus_message_read(message, "b", &active) >= 0 && !active)
                list_units(units);
        return 0;
}

static int on_owner_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct systemd_units *units = userdata;
        const char *owner;

        if (sd_bus_message_read(message, "sss", NULL, NULL, &owner) < 0 || owner[0] == '\0')
                return 0;
        (void) subscribe(units);
        list_units(units);
        return 0;
}

/* ---- the connection ---- */

static void close_bus(struct systemd_units *units) {
        while (!list_is_empty(&units->asking)) {
                struct unit_entry *entry =
                                MG_CONTAINER_OF(units->asking.next, struct unit_entry, link);

                unit_entry_stop_asking(entry);
                if (entry->dropped)
                        unit_entry_free(entry);
        }
        while (!list_is_empty(&units->queue))
                list_remove(units->queue.next);
        units->listed = false;
        units->bus = sd_bus_close_unref(units->bus);
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct systemd_units *units = userdata;

        set_available(units, false);
        schedule_retry(units);
        return 0;
}

#define FROM_MANAGER                                                  \
        "type='signal',sender='" SYSTEMD_NAME "',path='" SYSTEMD_PATH \
        "',interface='" SYSTEMD_MANAGER "',member="

static int add_matches(struct systemd_units *units) {
        static const struct {
                const char *rule;
                sd_bus_message_handler_t handler;
        } rules[] = {
                { FROM_MANAGER "'UnitNew'", on_unit_new },
                { FROM_MANAGER "'UnitRemoved'", on_unit_removed },
                { FROM_MANAGER "'Reloading'", on_reloading },
                { "type='signal',sender='" SYSTEMD_NAME "',path_namespace='" SYSTEMD_UNITS_PATH
                  "',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='" SYSTEMD_UNIT
                  "'",
                  on_properties_changed },
                { "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',"
                  "member='NameOwnerChanged',arg0='" SYSTEMD_NAME "'",
                  on_owner_changed },
        };
        int r = sd_bus_add_match(
                        units->bus, NULL,
                        "type='signal',path='/org/freedesktop/DBus/Local',"
                        "interface='org.freedesktop.DBus.Local',member='Disconnected'",
                        on_disconnected, units);

        for (size_t i = 0; r >= 0 && i < MG_ELEMENTS(rules); i++)
                r = sd_bus_add_match_async(
                                units->bus, NULL, rules[i].rule, rules[i].handler, NULL, units);
        return r;
}

static int open_bus(struct systemd_units *units) {
        const char *address = units->address;
        int r;

        if (!address)
                address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
        r = sd_bus_new(&units->bus);
        if (r < 0)
                return r;
        r = sd_bus_set_address(units->bus, address ? address : SYSTEM_BUS_ADDRESS);
        if (r >= 0)
                r = sd_bus_set_bus_client(units->bus, true);
        if (r >= 0)
                r = sd_bus_set_description(units->bus, "systemd-units");
        if (r >= 0)
                r = sd_bus_start(units->bus);
        if (r >= 0)
                r = sd_bus_attach_event(units->bus, units->event, SD_EVENT_PRIORITY_NORMAL);
        return r;
}

static void connect_bus(struct systemd_units *units) {
        int r = open_bus(units);

        if (r >= 0)
                r = add_matches(units);
        if (r >= 0)
                r = subscribe(units);
        if (r >= 0)
                r = call_list(units);
        if (r < 0)
                schedule_retry(units);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        struct systemd_units *units = userdata;

        close_bus(units);
        connect_bus(units);
        return 0;
}

/* Not from within: the bus whose handler this may be is closed when the timer fires. */
static void schedule_retry(struct systemd_units *units) {
        uint64_t wait_usec = units->retry_usec;

        units->retry_usec = MG_MIN(2 * wait_usec, RETRY_MAX_USEC);
        if (units->retry_source) {
                int enabled;

                if (sd_event_source_get_enabled(units->retry_source, &enabled) >= 0 &&
                    enabled != SD_EVENT_OFF)
                        return;
                (void) sd_event_source_set_time_relative(units->retry_source, wait_usec);
                (void) sd_event_source_set_enabled(units->retry_source, SD_EVENT_ONESHOT);
                return;
        }
        (void) sd_event_add_time_relative(
                        units->event, &units->retry_source, CLOCK_MONOTONIC, wait_usec, 0, on_retry,
                        units);
}

int systemd_units_new(
                sd_event *event,
                const char *address,
                const struct systemd_units_callbacks *callbacks,
                void *userdata,
                struct systemd_units **ret_units) {
        struct systemd_units *units = calloc(1, sizeof(*units));

        if (!units)
                return -ENOMEM;
        list_init(&units->queue);
        list_init(&units->asking);
        units->event = sd_event_ref(event);
        units->callbacks = *callbacks;
        units->userdata = userdata;
        units->retry_usec = RETRY_MIN_USEC;
        if (address && !(units->address = strdup(address))) {
                systemd_units_free(units);
                return -ENOMEM;
        }
        connect_bus(units);
        *ret_units = units;
        return 0;
}

struct systemd_units *systemd_units_free(struct systemd_units *units) {
        if (!units)
                return NULL;
        close_bus(units);
        sd_event_source_disable_unref(units->retry_source);
        for (size_t i = 0; i < units->n_entries; i++)
                unit_entry_free(units->entries[i]);
        free(units->entries);
        free(units->address);
        sd_event_unref(units->event);
        free(units);
        return NULL;
}

bool systemd_units_available(const struct systemd_units *units) {
        return units->available;
}

size_t systemd_units_count(const struct systemd_units *units) {
        size_t count = 0;

        for (size_t i = 0; i < units->n_entries; i++)
                count += units->entries[i]->told;
        return count;
}
