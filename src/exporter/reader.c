/* SPDX-License-Identifier: MIT */
/* Asking memguardd; see reader.h. Layer: exporter. */
#include "exporter/reader.h"

#include <errno.h>

#include "base/macros.h"
#include "busclient/busclient.h"
#include "exporter/decode.h"
#include "host/bus_api.h"
#include "host/clock.h"

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
                r = decode_host(host, snapshot);
        if (r >= 0)
                r = call(bus, destination, "ListUnits", until_usec, &units);
        return r < 0 ? r : decode_units(units, snapshot);
}

int reader_read(const char *directory, uint64_t timeout_usec, struct snapshot *ret_snapshot) {
        MG_CLEANUP(sd_bus_close_unrefp) sd_bus *bus = NULL;
        uint64_t began_usec = clock_now_usec();
        const char *destination = NULL;
        int r = busclient_open(directory, &bus, &destination);

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
