/* SPDX-License-Identifier: MIT */
/* Small kernel files, read whole. Layer: base; no allocation. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/macros.h"

static ssize_t read_retried(int fd, char *buffer, size_t size, off_t offset) {
        ssize_t n;

        do
                n = pread(fd, buffer, size, offset);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

ssize_t file_pread(int fd, char *buffer, size_t size) {
        ssize_t length = read_retried(fd, buffer, size, 0);
        if (length < 0)
                return length;
        if ((size_t) length == size)
                return -EFBIG;
        buffer[length] = '\0';
        return length;
}

ssize_t file_read_at(int dir_fd, const char *path, char *buffer, size_t size) {
        MG_CLEANUP(file_closep) int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;

        size_t length = 0;
        for (;;) {
                ssize_t n = read_retried(fd, buffer + length, size - length, (off_t) length);
                if (n < 0)
                        return n;
                length += (size_t) n;
                if (length == size)
                        return -EFBIG;
                if (n == 0)
                        break;
        }
        buffer[length] = '\0';
        return (ssize_t) length;
}

void file_closep(int *fd) {
        if (*fd < 0)
                return;
        int saved = errno;
        close(*fd);
        errno = saved;
        *fd = -EBADF;
}
