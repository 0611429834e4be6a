/* SPDX-License-Identifier: MIT */
/*
 * Asking systemd for the few properties of a unit that matter, a bounded number of units at a time. Layer: daemon.
 * Single Gets: a GetAll of a service is 20 KiB of which 100 bytes are wanted. First of all GetUnit, whether there is such a unit at all:
 * systemd loads whatever unit a path names, says so (UnitNew) and forgets it again, and who asks on UnitNew would then go round for ever.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "daemon/systemd_unit_entry.h"

#define NO_SUCH_UNIT SYSTEMD_NAME ".NoSuchUnit"

/* Bus daemons limit replies that a connection waits for (128 on the system bus of dbus-daemon); 16 units are 96 calls. */
#define MAX_IN_FLIGHT 16

void invocation_id_to_hex(const uint8_t *bytes, size_t n, char ret_hex[static 33]) {
        static const char digits[] = "0123456789abcdef";

        ret_hex[0] = '\0';
        if (n != INVOCATION_ID_BYTES)
                return;
        for (size_t i = 0; i < n; i++) {
                ret_hex[2 * i] = digits[bytes[i] >> 4];
                ret_hex[2 * i + 1] = digits[bytes[i] & 15];
        }
        ret_hex[2 * n] = '\0';
}

static int take_active_state(struct unit_entry *entry, sd_bus_message *reply) {
        const char *state;
        int r = sd_bus_message_read(reply, "v", "s", &state);

        if (r >= 0)
                entry->has_processes = activity_from_state(state, &entry->activity);
        return r;
}

static int take_invocation_id(struct unit_entry *entry, sd_bus_message *reply) {
        const void *bytes;
        size_t n;
        int r = sd_bus_message_enter_container(reply, 'v', "ay");

        if (r >= 0)
                r = sd_bus_message_read_array(reply, 'y', &bytes, &n);
        if (r >= 0)
                invocation_id_to_hex(bytes, n, entry->invocation_id);
        return r;
}

static int take_control_group(struct unit_entry *entry, sd_bus_message *reply) {
        const char *path;
        char *copy = NULL;
        int r = sd_bus_message_read(reply, "v", "s", &path);

        if (r < 0)
                return r;
        /* "" is no cgroup, "/" would be the host's root: neither is a unit's own. */
        if (path[0] == '/' && path[1] != '\0') {
                copy = strdup(path);
                if (!copy)
                        return -ENOMEM;
        }
        free(entry->cgroup_path);
        entry->cgroup_path = copy;
        return 0;
}

static int take_watchdog(struct unit_entry *entry, sd_bus_message *reply) {
        uint64_t usec;
        int r = sd_bus_message_read(reply, "v", "t", &usec);

        if (r >= 0)
                entry->watchdog_usec = usec == 0 ? MG_UNKNOWN : usec;
        return r;
}

/* The last assignment counts. EnvironmentFile= is not looked into: one that overrides makes this say too much. */
static int take_environment(struct unit_entry *entry, sd_bus_message *reply) {
        enum mg_fact sets_agent = MG_FACT_NO;
        const char *assignment;
        int r = sd_bus_message_enter_container(reply, 'v', "as");

        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'a', "s");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read_basic(reply, 's', &assignment)) > 0) {
                struct mg_agent_facts facts = {};

                why_no_agent_environment(&facts, assignment);
                if (facts.preloaded != MG_FACT_UNKNOWN)
                        sets_agent = facts.preloaded;
        }
        if (r >= 0)
                entry->sets_agent = sets_agent;
        return r;
}

/* A list of what is allowed, or of what is not. */
static int take_address_families(struct unit_entry *entry, sd_bus_message *reply) {
        const char *family;
        bool named = false;
        int allowed;
        int r = sd_bus_message_enter_container(reply, 'v', "(bas)");

        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'r', "bas");
        if (r >= 0)
                r = sd_bus_message_read_basic(reply, 'b', &allowed);
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'a', "s");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read_basic(reply, 's', &family)) > 0)
                named |= mg_streq(family, "AF_UNIX");
        if (r >= 0)
                entry->forbids_unix = named == (allowed != 0) ? MG_FACT_NO : MG_FACT_YES;
        return r;
}

static const struct property {
        const char *interface; /* NULL: the unit type's own */
        const char *name;
        bool services_only;
        int (*take)(struct unit_entry *entry, sd_bus_message *reply);
} properties[] = {
        [PROPERTY_ACTIVE_STATE] = { SYSTEMD_UNIT, "ActiveState", false, take_active_state },
        [PROPERTY_INVOCATION_ID] = { SYSTEMD_UNIT, "InvocationID", false, take_invocation_id },
        [PROPERTY_CONTROL_GROUP] = { NULL, "ControlGroup", false, take_control_group },
        [PROPERTY_WATCHDOG] = { NULL, "WatchdogUSec", true, take_watchdog },
        [PROPERTY_ENVIRONMENT] = { NULL, "Environment", true, take_environment },
        [PROPERTY_ADDRESS_FAMILIES] = { NULL, "RestrictAddressFamilies", true,
                                        take_address_families },
};
_Static_assert(MG_ELEMENTS(properties) == _UNIT_PROPERTY_MAX, "a property without a row");

static bool is_service(const struct unit_entry *entry) {
        const char *suffix = strrchr(entry->name, '.');

        return suffix && mg_streq(suffix, ".service");
}

static void finish(struct unit_entry *entry) {
        struct systemd_units *units = entry->units;

        units->in_flight--;
        list_remove(&entry->link);
        if (MG_TAKE_AS(entry->again, false) && !entry->dropped)
                unit_entry_ask(entry);
        else
                units_entry_answered(entry); /* may free ENTRY */
        units_ask_next(units);
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct unit_entry *entry = userdata;
        sd_bus_slot *slot = sd_bus_get_current_slot(sd_bus_message_get_bus(reply));
        int r = 0;

        for (size_t i = 0; i < _UNIT_PROPERTY_MAX; i++) {
                if (entry->slots[i] != slot)
                        continue;
                if (!sd_bus_message_is_method_error(reply, NULL))
                        r = properties[i].take(entry, reply);
                else if (sd_bus_message_is_method_error(reply, SD_BUS_ERROR_UNKNOWN_OBJECT))
                        entry->gone = true;
                else
                        r = -EIO;
                entry->slots[i] = sd_bus_slot_unref(slot);
                entry->pending--;
                break;
        }
        if (r < 0)
                entry->failed = true;
        if (entry->pending == 0)
                finish(entry);
        return 1;
}

static int send_get(struct unit_entry *entry, enum unit_property which) {
        const struct property *property = &properties[which];
        const char *interface = property->interface;

        if (!interface)
                interface = is_service(entry) ? SYSTEMD_NAME ".Service" : SYSTEMD_NAME ".Scope";
        return sd_bus_call_method_async(
                        entry->units->bus, &entry->slots[which], SYSTEMD_NAME, entry->object_path,
                        "org.freedesktop.DBus.Properties", "Get", on_reply, entry, "ss", interface,
                        property->name);
}

static void send_gets(struct unit_entry *entry) {
        for (size_t i = 0; i < _UNIT_PROPERTY_MAX; i++) {
                if (properties[i].services_only && !is_service(entry))
                        continue;
                if (send_get(entry, (enum unit_property) i) < 0)
                        entry->failed = true;
                else
                        entry->pending++;
        }
}

static int on_loaded(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct unit_entry *entry = userdata;

        entry->loaded_slot = sd_bus_slot_unref(entry->loaded_slot);
        entry->pending--;
        if (sd_bus_message_is_method_error(reply, NO_SUCH_UNIT))
                entry->gone = true;
        else if (sd_bus_message_is_method_error(reply, NULL))
                entry->failed = true;
        else if (!entry->dropped)
                send_gets(entry);
        if (entry->pending == 0)
                finish(entry);
        return 1;
}

static void send_is_loaded(struct unit_entry *entry) {
        struct systemd_units *units = entry->units;

        entry->failed = entry->gone = false;
        if (sd_bus_call_method_async(
                            units->bus, &entry->loaded_slot, SYSTEMD_NAME, SYSTEMD_PATH,
                            SYSTEMD_MANAGER, "GetUnit", on_loaded, entry, "s", entry->name) < 0) {
                entry->failed = true;
                return;
        }
        entry->pending++;
        list_append(&units->asking, &entry->link);
        units->in_flight++;
}

void units_ask_next(struct systemd_units *units) {
        while (units->bus && units->in_flight < MAX_IN_FLIGHT && !list_is_empty(&units->queue)) {
                struct unit_entry *entry =
                                MG_CONTAINER_OF(units->queue.next, struct unit_entry, link);

                list_remove(&entry->link);
                send_is_loaded(entry);
        }
}

void unit_entry_ask(struct unit_entry *entry) {
        if (entry->pending > 0) {
                entry->again = true;
                return;
        }
        if (list_is_empty(&entry->link))
                list_append(&entry->units->queue, &entry->link);
        units_ask_next(entry->units);
}

void unit_entry_stop_asking(struct unit_entry *entry) {
        list_remove(&entry->link);
        entry->loaded_slot = sd_bus_slot_unref(entry->loaded_slot);
        for (size_t i = 0; i < _UNIT_PROPERTY_MAX; i++)
                entry->slots[i] = sd_bus_slot_unref(entry->slots[i]);
        if (entry->pending > 0)
                entry->units->in_flight--;
        entry->pending = 0;
        entry->again = false;
}
