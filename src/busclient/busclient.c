/* SPDX-License-Identifier: MIT */
/* See busclient.h. Layer: busclient. */
#include "busclient/busclient.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/bus_api.h"

static int connect_socket(const char *directory, int *ret_fd) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        MG_CLEANUP(file_closep) int fd = -EBADF;
        int n =
                        snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory,
                                 MG_BUS_SOCKET);

        if (n < 0 || (size_t) n >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        *ret_fd = MG_TAKE_FD(fd);
        return 0;
}

int busclient_open_private(const char *directory, sd_bus **ret_bus) {
        MG_CLEANUP(sd_bus_close_unrefp) sd_bus *bus = NULL;
        MG_CLEANUP(file_closep) int fd = -EBADF;
        int r = connect_socket(directory, &fd);

        if (r >= 0)
                r = sd_bus_new(&bus);
        if (r >= 0)
                r = sd_bus_set_fd(bus, fd, fd);
        if (r < 0)
                return r;
        (void) MG_TAKE_FD(fd);
        r = sd_bus_start(bus);
        if (r < 0)
                return r;
        *ret_bus = MG_TAKE(bus);
        return 0;
}

int busclient_open(const char *directory, sd_bus **ret_bus, const char **ret_destination) {
        const char *destination = NULL;
        int r = busclient_open_private(directory ?: MG_RUNTIME_DIRECTORY, ret_bus);

        if (r < 0 && !directory && sd_bus_open_system(ret_bus) >= 0) {
                destination = MG_BUS_NAME;
                r = 0;
        }
        if (r < 0)
                return r;
        *ret_destination = destination;
        return 0;
}
