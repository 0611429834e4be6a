/* SPDX-License-Identifier: MIT */
/* See private_socket.h. Layer: host. */
#include "host/private_socket.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/bus_api.h"

int private_socket_connect(const char *directory, int *ret_fd) {
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
