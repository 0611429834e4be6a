/* SPDX-License-Identifier: MIT */
/* Lock and sockets of the runtime directory; see runtime_dir.h. */
#include "daemon/runtime_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "daemon/provider.h"

#define LOCK_NAME "lock"

int directory_open(const char *path, int *ret_fd) {
        int fd;

        if (mkdir(path, 0755) < 0 && errno != EEXIST && errno != EROFS)
                return -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

/* A POSIX lock, because the kernel then tells whose it is. It ends with the process, whatever becomes of the file. */
static struct flock whole_file(void) {
        return (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET };
}

int runtime_dir_lock(int dir_fd, int *ret_lock_fd, pid_t *ret_holder) {
        struct flock lock = whole_file();
        MG_CLEANUP(file_closep)
        int fd = openat(dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

        if (fd < 0)
                return -errno;
        if (fcntl(fd, F_SETLK, &lock) >= 0) {
                *ret_lock_fd = MG_TAKE_FD(fd);
                return 0;
        }
        if (errno != EAGAIN && errno != EACCES)
                return -errno;
        lock = whole_file();
        *ret_holder = fcntl(fd, F_GETLK, &lock) >= 0 && lock.l_type != F_UNLCK && lock.l_pid > 0
                                      ? lock.l_pid
                                      : 0;
        return -EWOULDBLOCK;
}

static int bind_with_mode(int fd, const struct sockaddr_un *address, mode_t mode) {
        mode_t old =
                        umask(0777 &
                              ~mode); /* bind() has no mode of its own; the daemon has one thread */
        int r = bind(fd, (const struct sockaddr *) address, sizeof(*address)) < 0 ? -errno : 0;

        umask(old);
        return r;
}

int runtime_dir_listen(
                const char *directory,
                const char *name,
                int type,
                mode_t mode,
                int backlog,
                int *ret_fd) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        MG_CLEANUP(file_closep) int fd = -EBADF;
        int r;

        r = snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", directory, name);
        if (r < 0 || (size_t) r >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (unlink(address.sun_path) < 0 && errno != ENOENT)
                return -errno;
        r = bind_with_mode(fd, &address, mode);
        if (r < 0)
                return r;
        if (listen(fd, backlog) < 0)
                return -errno;
        *ret_fd = MG_TAKE_FD(fd);
        return 0;
}

static bool is_listening(int fd, int type) {
        return sd_is_socket(fd, AF_UNIX, type, 1) > 0;
}

static void take_descriptor(struct activation *activation, int fd, const char *name) {
        if (mg_streq(name, PROVIDER_CLIENT_NAME) && sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 0) > 0)
                activation->clients[activation->n_clients++] = fd;
        else if (activation->agent_fd < 0 && is_listening(fd, SOCK_SEQPACKET))
                activation->agent_fd = fd;
        else if (activation->pressure_fd < 0 && mg_streq(name, PROVIDER_LISTEN_NAME) &&
                 is_listening(fd, SOCK_STREAM))
                activation->pressure_fd = fd;
        else if (activation->bus_fd < 0 && is_listening(fd, SOCK_STREAM))
                activation->bus_fd = fd;
        else
                close(fd);
}

static void free_names(char **names) {
        for (char **name = names; name && *name; name++)
                free(*name);
        free(names);
}
MG_DEFINE_CLEANUP(char **, free_names)

int activation_take(struct activation *ret_activation) {
        MG_CLEANUP(free_namesp) char **names = NULL;
        int n = sd_listen_fds_with_names(true, &names);

        *ret_activation = (struct activation){
                .agent_fd = -EBADF,
                .bus_fd = -EBADF,
                .pressure_fd = -EBADF,
        };
        if (n <= 0)
                return n;
        ret_activation->clients = calloc((size_t) n, sizeof(*ret_activation->clients));
        if (!ret_activation->clients)
                return -ENOMEM;
        for (int i = 0; i < n; i++) {
                int fd = SD_LISTEN_FDS_START + i;
                int flags = fcntl(fd, F_GETFL);

                if (flags >= 0)
                        (void) fcntl(fd, F_SETFL, flags | O_NONBLOCK);
                take_descriptor(ret_activation, fd, names[i]);
        }
        return 0;
}

void activation_done(struct activation *activation) {
        free(activation->clients);
        activation->clients = NULL;
}

unsigned long raise_descriptor_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 1024;
        if (limit.rlim_cur < limit.rlim_max) {
                limit.rlim_cur = limit.rlim_max;
                if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                        (void) getrlimit(RLIMIT_NOFILE, &limit);
        }
        return limit.rlim_cur;
}
