/* SPDX-License-Identifier: MIT */
/* The socket to serve; see listen.h. Layer: exporter. */
#include "exporter/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/parse.h"

#define BACKLOG 64

int listen_inherited(int *ret_fd) {
        int n = sd_listen_fds(true);
        int r;

        if (n <= 0)
                return n < 0 ? n : -ENOENT;
        r = n == 1 ? sd_is_socket(SD_LISTEN_FDS_START, AF_UNSPEC, SOCK_STREAM, 1) : 0;
        if (r <= 0)
                return r < 0 ? r : -EINVAL;
        *ret_fd = SD_LISTEN_FDS_START;
        return 0;
}

/* Splits "[HOST]:PORT" and "HOST:PORT"; NULL for "*". */
static int split(char *address, const char **ret_host, const char **ret_port) {
        char *colon = strrchr(address, ':');
        uint64_t port;
        size_t length;

        if (!colon || colon == address || parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
                return -EINVAL;
        *colon = '\0';
        length = strlen(address);
        if (address[0] == '[' && address[length - 1] == ']') {
                address[length - 1] = '\0';
                address++;
        }
        *ret_host = mg_streq(address, "*") ? NULL : address;
        *ret_port = colon + 1;
        return 0;
}

static int open_socket(const struct addrinfo *info, int *ret_fd) {
        MG_CLEANUP(file_closep)
        int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int on = 1;

        if (fd < 0)
                return -errno;
        (void) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
                return -errno;
        *ret_fd = MG_TAKE_FD(fd);
        return 0;
}

int listen_on(const char *address, int *ret_fd) {
        /* No names: what a name means is not for a resolver to say. */
        const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
                                        .ai_socktype = SOCK_STREAM };
        struct addrinfo *found = NULL;
        const char *host, *port;
        char copy[128];
        int r;

        if (strlen(address) >= sizeof(copy))
                return -EINVAL;
        memcpy(copy, address, strlen(address) + 1);
        if (split(copy, &host, &port) < 0 || getaddrinfo(host, port, &hints, &found) != 0)
                return -EINVAL;
        r = open_socket(found, ret_fd);
        freeaddrinfo(found);
        return r;
}
