/* SPDX-License-Identifier: MIT */
/*
 * org.memguard1.Manager and the server behind it. Layer: daemon. Methods without the UNPRIVILEGED flag are refused by sd-bus
 * to all but root and the daemon's own user; those that act and have it ask bus_authorize().
 */
#include "daemon/bus.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/bus_server.h"
#include "daemon/runtime_dir.h"
#include "host/bus_api.h"

#define BUS_BACKLOG 64

#define EVERYONE SD_BUS_VTABLE_UNPRIVILEGED

/* clang-format off */
static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("GetHost", SD_BUS_NO_ARGS,
                SD_BUS_RESULT("a{sv}", host), bus_get_host, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("ListUnits", SD_BUS_ARGS("as", names),
                SD_BUS_RESULT("aa{sv}", units), bus_list_units, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("ListProcesses", SD_BUS_ARGS("s", unit),
                SD_BUS_RESULT("aa{sv}", processes), bus_list_processes, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("GetHistory", SD_BUS_ARGS("s", unit, "t", since_usec),
                SD_BUS_RESULT("a{sv}", history), bus_get_history, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Explain", SD_BUS_ARGS("s", unit),
                SD_BUS_RESULT("a{sv}", explanation), bus_explain, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Advise", SD_BUS_ARGS("s", unit),
                SD_BUS_RESULT("aa{sv}", advice), bus_advise, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("GetLogLevel", SD_BUS_NO_ARGS,
                SD_BUS_RESULT("s", level), bus_get_log_level, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("TrimUnit", SD_BUS_ARGS("s", unit, "b", dry_run),
                SD_BUS_RESULT("a{sv}", outcome), bus_trim_unit, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Reload", SD_BUS_NO_ARGS,
                SD_BUS_RESULT("as", warnings), bus_reload, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Pause", SD_BUS_ARGS("s", unit),
                SD_BUS_NO_RESULT, bus_pause, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("Resume", SD_BUS_ARGS("s", unit),
                SD_BUS_NO_RESULT, bus_resume, EVERYONE),
        SD_BUS_METHOD_WITH_ARGS("SetLogLevel", SD_BUS_ARGS("s", level),
                SD_BUS_NO_RESULT, bus_set_log_level, 0),
        SD_BUS_VTABLE_END,
};
/* clang-format on */

int bus_publish(struct bus_server *server, sd_bus *bus) {
        int r = sd_bus_add_object_vtable(
                        bus, NULL, MG_BUS_PATH, MG_BUS_INTERFACE, manager_vtable, server);

        if (r >= 0)
                r = bus_publish_units(server, bus);
        return r < 0 ? r : bus_publish_log_control(server, bus);
}

/* ---- the server ---- */

static int open_socket(struct bus_server *server) {
        struct manager *manager = server->manager;
        int r;

        server->listen_fd = MG_TAKE_FD(manager->bus_fd);
        if (server->listen_fd < 0) {
                r = runtime_dir_listen(
                                manager->options.runtime_directory, MG_BUS_SOCKET, SOCK_STREAM,
                                0666, BUS_BACKLOG, &server->listen_fd);
                if (r < 0)
                        return r;
                server->socket_own = true;
        }
        return bus_peers_start(server);
}

int bus_server_new(struct manager *manager, struct bus_server **ret_server) {
        struct bus_server *server = calloc(1, sizeof(*server));
        int r;

        if (!server)
                return -ENOMEM;
        server->manager = manager;
        server->listen_fd = -EBADF;
        list_init(&server->peers);
        list_init(&server->authorizations);
        r = open_socket(server);
        if (r < 0) {
                bus_server_free(server);
                return r;
        }
        if (!manager->options.by_hand)
                bus_system_start(server);
        *ret_server = server;
        return 0;
}

struct bus_server *bus_server_free(struct bus_server *server) {
        if (!server)
                return NULL;
        bus_peers_done(server);
        bus_system_done(server);
        if (server->socket_own)
                (void) unlinkat(server->manager->runtime_dir_fd, MG_BUS_SOCKET, 0);
        free(server);
        return NULL;
}
