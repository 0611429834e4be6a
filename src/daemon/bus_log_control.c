/* SPDX-License-Identifier: MIT */
/* org.freedesktop.LogControl1, as org.freedesktop.LogControl1(5) of systemd 252 has it. Layer: daemon. */
#include <errno.h>

#include "daemon/bus_server.h"
#include "daemon/journal.h"

#define LOG_CONTROL_PATH      "/org/freedesktop/LogControl1"
#define LOG_CONTROL_INTERFACE "org.freedesktop.LogControl1"

static int get_level(
                sd_bus *bus,
                const char *path,
                const char *interface,
                const char *property,
                sd_bus_message *reply,
                void *userdata,
                sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", log_level_to_string(journal_level()));
}

static int set_level(
                sd_bus *bus,
                const char *path,
                const char *interface,
                const char *property,
                sd_bus_message *value,
                void *userdata,
                sd_bus_error *error) {
        struct bus_server *server = userdata;
        const char *name;
        int level, r = sd_bus_message_read(value, "s", &name);

        if (r < 0)
                return r;
        level = log_level_from_string(name);
        if (level < 0)
                return sd_bus_error_setf(
                                error, SD_BUS_ERROR_INVALID_ARGS, "Unknown log level '%s'", name);
        manager_set_log_level(server->manager, level);
        return 0;
}

static int get_target(
                sd_bus *bus,
                const char *path,
                const char *interface,
                const char *property,
                sd_bus_message *reply,
                void *userdata,
                sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", log_target_to_string(journal_sink()->target));
}

static int set_target(
                sd_bus *bus,
                const char *path,
                const char *interface,
                const char *property,
                sd_bus_message *value,
                void *userdata,
                sd_bus_error *error) {
        const char *name;
        int target, r = sd_bus_message_read(value, "s", &name);

        if (r < 0)
                return r;
        target = log_target_from_string(name);
        if (target < 0)
                return sd_bus_error_setf(
                                error, SD_BUS_ERROR_INVALID_ARGS,
                                "Unknown log target '%s': auto journal console null", name);
        sink_set_target(journal_sink(), (enum mg_log_target) target);
        return 0;
}

static int get_identifier(
                sd_bus *bus,
                const char *path,
                const char *interface,
                const char *property,
                sd_bus_message *reply,
                void *userdata,
                sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", journal_sink()->identifier);
}

static const sd_bus_vtable log_control_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_level, set_level, 0, 0),
        SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", get_target, set_target, 0, 0),
        SD_BUS_PROPERTY("SyslogIdentifier", "s", get_identifier, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};

int bus_publish_log_control(struct bus_server *server, sd_bus *bus) {
        return sd_bus_add_object_vtable(
                        bus, NULL, LOG_CONTROL_PATH, LOG_CONTROL_INTERFACE, log_control_vtable,
                        server);
}
