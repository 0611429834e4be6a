/* SPDX-License-Identifier: MIT */
/*
 * org.memguard1 on the system bus. Layer: daemon. All of it happens in the background: an absent bus is waited for, a
 * bus that goes away is come back to.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "daemon/bus_server.h"
#include "daemon/journal.h"
#include "host/bus_api.h"

#define SYSTEM_BUS_ADDRESS "unix:path=/run/dbus/system_bus_socket"
#define RETRY_MIN_USEC     MG_USEC_PER_SEC
#define RETRY_MAX_USEC     MG_USEC_PER_MIN

/* sd-bus asks the bus who the sender of an acting call is, and waits for that: so long at most. */
#define CALL_TIMEOUT_USEC (2 * MG_USEC_PER_SEC)

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        bus_system_leave(userdata);
        return 0;
}

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct bus_server *server = userdata;
        const sd_bus_error *why = sd_bus_message_get_error(reply);
        uint32_t answer = 0;

        if (!why) {
                (void) sd_bus_message_read(reply, "u", &answer);
                if (answer == 1 || answer == 4) { /* primary owner, already owner */
                        server->system_retry_usec = RETRY_MIN_USEC;
                        bus_signals_begin(server);
                        return 1;
                }
        }
        if (!server->system_refused)
                journal_log(LOG_NOTICE, NULL,
                            "cannot have the name " MG_BUS_NAME " on the system bus: %s",
                            why && why->message ? why->message : "another process has it");
        server->system_refused = true;
        server->system_retry_usec = RETRY_MAX_USEC;
        bus_system_leave(server);
        return 1;
}

static int open_bus(struct bus_server *server) {
        const char *address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
        int r = sd_bus_new(&server->system);

        if (r < 0)
                return r;
        r = sd_bus_set_address(server->system, address ? address : SYSTEM_BUS_ADDRESS);
        if (r >= 0)
                r = sd_bus_set_bus_client(server->system, true);
        if (r >= 0)
                r = sd_bus_set_description(server->system, "system");
        if (r >= 0)
                r = sd_bus_set_method_call_timeout(server->system, CALL_TIMEOUT_USEC);
        if (r >= 0)
                r = sd_bus_start(server->system);
        if (r >= 0)
                r = sd_bus_attach_event(server->system, server->manager->event, BUS_PRIORITY);
        return r;
}

static void connect_bus(struct bus_server *server) {
        int r = open_bus(server);

        if (r >= 0)
                r = sd_bus_add_match(
                                server->system, NULL,
                                "type='signal',path='/org/freedesktop/DBus/Local',"
                                "interface='org.freedesktop.DBus.Local',member='Disconnected'",
                                on_disconnected, server);
        if (r >= 0)
                r = bus_publish(server, server->system);
        if (r >= 0)
                r = sd_bus_request_name_async(
                                server->system, NULL, MG_BUS_NAME, 0, on_name, server);
        if (r < 0)
                bus_system_leave(server);
}

static void close_bus(struct bus_server *server) {
        bus_polkit_forget(server);
        server->system = sd_bus_close_unref(server->system);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        struct bus_server *server = userdata;

        close_bus(server);
        connect_bus(server);
        return 0;
}

/* The bus whose handler this may be is closed when the timer fires. */
void bus_system_leave(struct bus_server *server) {
        uint64_t wait_usec = server->system_retry_usec;

        server->system_ready = false;
        server->system_retry_usec = MG_MIN(2 * wait_usec, RETRY_MAX_USEC);
        server->system_retry_source = sd_event_source_disable_unref(server->system_retry_source);
        (void) sd_event_add_time_relative(
                        server->manager->event, &server->system_retry_source, CLOCK_MONOTONIC,
                        wait_usec, 0, on_retry, server);
}

void bus_system_start(struct bus_server *server) {
        server->system_retry_usec = RETRY_MIN_USEC;
        connect_bus(server);
}

void bus_system_done(struct bus_server *server) {
        server->system_retry_source = sd_event_source_disable_unref(server->system_retry_source);
        close_bus(server);
}
