/* SPDX-License-Identifier: MIT */
/* Small files that are replaced whole; see store_file.h. */
#include "daemon/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"

#define NAME_SIZE 128

static int write_all(int fd, const char *bytes, size_t length) {
        while (length > 0) {
                ssize_t n = write(fd, bytes, length);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                bytes += n;
                length -= n;
        }
        return 0;
}

/* EINVAL is a file system that knows no such thing: it does what it can by itself. */
static int sync_to_disk(int fd) {
        while (fsync(fd) < 0)
                if (errno != EINTR)
                        return errno == EINVAL ? 0 : -errno;
        return 0;
}

int store_file_replace(
                int dir_fd,
                const char *name,
                const char *bytes,
                size_t length,
                bool durable) {
        MG_CLEANUP(file_closep) int fd = -EBADF;
        char temporary[NAME_SIZE];
        int r = snprintf(temporary, sizeof(temporary), "%s.new", name);

        if (r < 0 || (size_t) r >= sizeof(temporary))
                return -ENAMETOOLONG;
        fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
                return -errno;
        r = write_all(fd, bytes, length);
        if (r >= 0 && durable)
                r = sync_to_disk(fd);
        if (r >= 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
                r = -errno;
        if (r < 0) {
                (void) unlinkat(dir_fd, temporary, 0);
                return r;
        }
        return durable ? sync_to_disk(dir_fd) : 0;
}

int store_file_read(int dir_fd, const char *name, size_t max, char **ret_text, size_t *ret_length) {
        MG_CLEANUP(file_closep)
        int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        struct stat status;
        char *text;
        ssize_t n;

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return -EBADMSG;
        if ((uint64_t) status.st_size > max)
                return -EFBIG;
        text = malloc(status.st_size + 2);
        if (!text)
                return -ENOMEM;
        n = file_pread(fd, text, status.st_size + 2);
        if (n < 0) {
                free(text);
                return (int) n;
        }
        *ret_text = text;
        *ret_length = n;
        return 0;
}
