/* SPDX-License-Identifier: MIT */
/* Lock and sockets of the runtime directory; see runtime_dir.h. */
#include "daemon/runtime_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"

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

static void take_socket(int fd, int *ret_seqpacket_fd, int *ret_stream_fd) {
        if (*ret_seqpacket_fd < 0 && sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 1) > 0)
                *ret_seqpacket_fd = fd;
        else if (*ret_stream_fd < 0 && sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) > 0)
                *ret_stream_fd = fd;
        else
                close(fd);
}

int activation_sockets(int *ret_seqpacket_fd, int *ret_stream_fd) {
        int n = sd_listen_fds(true);

        *ret_seqpacket_fd = -EBADF;
        *ret_stream_fd = -EBADF;
        for (int i = 0; i < n; i++) {
                int fd = SD_LISTEN_FDS_START + i;
                int flags = fcntl(fd, F_GETFL);

                if (flags >= 0)
                        (void) fcntl(fd, F_SETFL, flags | O_NONBLOCK);
                take_socket(fd, ret_seqpacket_fd, ret_stream_fd);
        }
        return n;
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
