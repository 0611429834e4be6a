/* SPDX-License-Identifier: MIT */
/* Connection, call, and the one line that an error is worth. Layer: ctl. */
#include "ctl/client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <systemd/sd-bus.h>

#include "base/macros.h"
#include "busclient/busclient.h"
#include "ctl/bus_json.h"
#include "ctl/ctl.h"
#include "host/bus_api.h"

/* A trim is answered when the whole round of a unit is over: AgentTimeoutSec= for each of its processes. */
#define CALL_TIMEOUT_USEC (5 * MG_USEC_PER_MIN)

static bool is_no_daemon(int error) {
        return error == -ENOENT || error == -ECONNREFUSED || error == -ENOTDIR ||
               error == -ECONNRESET || error == -EPIPE;
}

static int report_unreachable(const char *directory, int error) {
        if (is_no_daemon(error)) {
                fprintf(stderr,
                        "memguardctl: memguardd is not running (nothing listens on %s/%s)\n",
                        directory, MG_BUS_SOCKET);
                return CTL_NO_DAEMON;
        }
        fprintf(stderr, "memguardctl: cannot reach memguardd on %s/%s: %s\n", directory,
                MG_BUS_SOCKET, strerror(-error));
        return error == -EACCES || error == -EPERM ? CTL_DENIED : CTL_FAILED;
}

int client_open(sd_bus **ret_bus, const char **ret_destination) {
        const char *directory = ctl_options.runtime_directory;
        int r = busclient_open(directory, ret_bus, ret_destination);

        return r < 0 ? report_unreachable(directory ?: MG_RUNTIME_DIRECTORY, r) : CTL_OK;
}

static bool is_denied(const sd_bus_error *error) {
        return sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED);
}

int client_report(const sd_bus_error *error, int r) {
        static const struct {
                const char *name;
                enum ctl_exit exit;
        } known[] = {
                { MG_BUS_ERROR_NO_SUCH_UNIT, CTL_NO_SUCH_UNIT },
                { SD_BUS_ERROR_ACCESS_DENIED, CTL_DENIED },
                { SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED, CTL_DENIED },
                { SD_BUS_ERROR_SERVICE_UNKNOWN, CTL_NO_DAEMON },
                { SD_BUS_ERROR_NAME_HAS_NO_OWNER, CTL_NO_DAEMON },
        };

        for (size_t i = 0; i < MG_ELEMENTS(known); i++) {
                if (!sd_bus_error_has_name(error, known[i].name))
                        continue;
                if (known[i].exit == CTL_NO_DAEMON)
                        return report_unreachable(MG_RUNTIME_DIRECTORY, -ENOENT);
                if (is_denied(error))
                        fputs("memguardctl: permission denied: acting is for root, and for whom polkit allows it\n",
                              stderr);
                else if (known[i].exit == CTL_DENIED)
                        fputs("memguardctl: permission denied: authentication is required, and no agent is there to ask for it\n",
                              stderr);
                else
                        fprintf(stderr, "memguardctl: %s\n", error->message);
                return known[i].exit;
        }
        if (!sd_bus_error_is_set(error) && is_no_daemon(r)) {
                fputs("memguardctl: memguardd went away before it answered\n", stderr);
                return CTL_NO_DAEMON;
        }
        fprintf(stderr, "memguardctl: %s\n",
                sd_bus_error_is_set(error) && error->message ? error->message : strerror(-r));
        return CTL_FAILED;
}

struct request {
        const char *method;
        int (*append)(sd_bus_message *call,
                      void *userdata); /* the arguments; may be needed twice */
        void *userdata;
};

static int send_request(
                sd_bus *bus,
                const char *destination,
                const struct request *request,
                sd_bus_error *error,
                sd_bus_message **ret_reply) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *call = NULL;

        int r = sd_bus_message_new_method_call(
                        bus, &call, destination, MG_BUS_PATH, MG_BUS_INTERFACE, request->method);
        if (r >= 0)
                r = sd_bus_message_set_allow_interactive_authorization(call, true);
        if (r >= 0)
                r = request->append(call, request->userdata);
        return r < 0 ? r : sd_bus_call(bus, call, CALL_TIMEOUT_USEC, error, ret_reply);
}

/*
 * The private socket knows root alone; on the system bus polkit may allow it, after asking the person at the terminal. Where
 * the daemon is not on the system bus, the socket's answer stays.
 */
static int send_by_polkit(
                const struct request *request,
                sd_bus_error *error,
                sd_bus_message **ret_reply) {
        MG_CLEANUP(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        MG_CLEANUP(sd_bus_error_free) sd_bus_error second = SD_BUS_ERROR_NULL;

        if (ctl_options.runtime_directory || sd_bus_open_system(&bus) < 0)
                return -EACCES;
        int r = send_request(bus, MG_BUS_NAME, request, &second, ret_reply);
        if (r >= 0 || sd_bus_error_has_name(&second, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
            sd_bus_error_has_name(&second, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                return r;
        sd_bus_error_free(error);
        *error = second;
        second = SD_BUS_ERROR_NULL;
        return r;
}

static int read_reply(sd_bus_message *reply, json_t **ret_reply) {
        json_t *value = NULL;

        int r = bus_to_json(reply, &value);
        if (r < 0) {
                fprintf(stderr, "memguardctl: memguardd's answer cannot be read: %s\n",
                        strerror(-r));
                return CTL_FAILED;
        }
        *ret_reply = value;
        return CTL_OK;
}

static int call_daemon(json_t **ret_reply, const struct request *request) {
        MG_CLEANUP(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        MG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *destination;

        int exit_code = client_open(&bus, &destination);
        if (exit_code != CTL_OK)
                return exit_code;
        int r = send_request(bus, destination, request, &error, &reply);
        if (r < 0 && !destination && is_denied(&error))
                r = send_by_polkit(request, &error, &reply);
        return r < 0 ? client_report(&error, r) : read_reply(reply, ret_reply);
}

struct typed_arguments {
        const char *types;
        va_list values;
};

static int append_typed(sd_bus_message *call, void *userdata) {
        struct typed_arguments *arguments = userdata;

        if (!*arguments->types)
                return 0;
        va_list values;
        va_copy(values, arguments->values);
        int r = sd_bus_message_appendv(call, arguments->types, values);
        va_end(values);
        return r;
}

int client_call(json_t **ret_reply, const char *method, const char *types, ...) {
        struct typed_arguments arguments = { .types = types };

        va_start(arguments.values, types);
        int exit_code = call_daemon(
                        ret_reply, &(struct request){ method, append_typed, &arguments });
        va_end(arguments.values);
        return exit_code;
}

static int append_names(sd_bus_message *call, void *userdata) {
        return sd_bus_message_append_strv(call, userdata);
}

int client_call_names(json_t **ret_reply, const char *method, char **names) {
        return call_daemon(ret_reply, &(struct request){ method, append_names, names });
}
