/* SPDX-License-Identifier: MIT */
/*
 * One unit's cgroup through descriptors that stay open. A cgroup that was removed answers ENODEV on an open file and ENOENT on
 * a new look-up; both are reported as the unit's end, once it is sure that not only the file is missing. Layer: host.
 */
#include "host/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/cgroup_tree.h"
#include "host/memory_stat.h"

/* memory.stat has under 2.5 KiB on 6.12 (`wc -c`, 70 lines); room for what later kernels add. */
#define STAT_TEXT_MAX  16384
#define VALUE_TEXT_MAX 64
#define KEYED_TEXT_MAX 4096

/* Every cgroup has cgroup.procs; a removed one has nothing. */
static bool is_gone(int dir_fd) {
        return faccessat(dir_fd, "cgroup.procs", F_OK, 0) < 0 && errno != EACCES;
}

static int open_file(int dir_fd, const char *name) {
        int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd >= 0)
                return fd;
        if (errno != ENOENT)
                return -errno;
        return is_gone(dir_fd) ? -ENOENT : -EOPNOTSUPP;
}

void cgroup_close(struct mg_cgroup *cgroup) {
        file_closep(&cgroup->swap_fd);
        file_closep(&cgroup->stat_fd);
        file_closep(&cgroup->dir_fd);
}

int cgroup_open(const char *root, const char *path, struct mg_cgroup *ret_cgroup) {
        MG_CLEANUP(cgroup_close)
        struct mg_cgroup cgroup = {
                .dir_fd = -EBADF,
                .stat_fd = -EBADF,
                .swap_fd = -EBADF,
        };
        struct stat status;

        cgroup.dir_fd = cgroup_open_directory(root, path);
        if (cgroup.dir_fd < 0)
                return cgroup.dir_fd;
        if (fstat(cgroup.dir_fd, &status) < 0)
                return -errno;
        cgroup.inode = status.st_ino;

        cgroup.stat_fd = open_file(cgroup.dir_fd, "memory.stat");
        if (cgroup.stat_fd < 0)
                return cgroup.stat_fd;
        cgroup.swap_fd = open_file(cgroup.dir_fd, "memory.swap.current");
        if (cgroup.swap_fd == -EOPNOTSUPP)
                cgroup.no_swap_file = true;
        else if (cgroup.swap_fd < 0)
                return cgroup.swap_fd;

        *ret_cgroup = cgroup;
        cgroup = (struct mg_cgroup){ .dir_fd = -EBADF, .stat_fd = -EBADF, .swap_fd = -EBADF };
        return 0;
}

/* Of this kernel; the programs that sample are single-threaded. */
static struct memory_stat_layout stat_layout;

int cgroup_sample(const struct mg_cgroup *cgroup, struct mg_memory *memory) {
        char text[STAT_TEXT_MAX], swap_text[VALUE_TEXT_MAX];
        uint64_t swap = MG_UNKNOWN;

        ssize_t length = file_pread(cgroup->stat_fd, text, sizeof(text));
        if (length < 0)
                return (int) length;
        if (cgroup->swap_fd >= 0) {
                ssize_t n = file_pread(cgroup->swap_fd, swap_text, sizeof(swap_text));
                if (n < 0)
                        return (int) n;
                (void) memory_value_parse(swap_text, &swap);
        }
        memory_stat_parse(text, (size_t) length, &stat_layout, memory);
        memory->swap_bytes = swap;
        return 0;
}

/* 0 also where the file is not there: *RET_VALUE is MG_UNKNOWN then. */
static int read_value(int dir_fd, const char *name, uint64_t *ret_value) {
        char text[VALUE_TEXT_MAX];

        *ret_value = MG_UNKNOWN;
        ssize_t n = file_read_at(dir_fd, name, text, sizeof(text));
        if (n == -ENOENT)
                return 0;
        if (n < 0)
                return (int) n;
        (void) memory_value_parse(text, ret_value);
        return 0;
}

/* The value of KEY in file NAME; -EOPNOTSUPP without the file or the key, -ENODEV when the cgroup is gone. */
static int read_keyed(int dir_fd, const char *name, const char *key, uint64_t *ret_value) {
        char text[KEYED_TEXT_MAX];

        ssize_t n = file_read_at(dir_fd, name, text, sizeof(text));
        if (n == -ENOENT)
                return is_gone(dir_fd) ? -ENODEV : -EOPNOTSUPP;
        if (n < 0)
                return (int) n;
        uint64_t value = flat_keyed_find(text, key);
        if (value == MG_UNKNOWN)
                return -EOPNOTSUPP;
        *ret_value = value;
        return 0;
}

int cgroup_limits(const struct mg_cgroup *cgroup, struct mg_memory *memory) {
        uint64_t current, high, max, high_events = MG_UNKNOWN;
        int r;

        if ((r = read_value(cgroup->dir_fd, "memory.current", &current)) < 0 ||
            (r = read_value(cgroup->dir_fd, "memory.high", &high)) < 0 ||
            (r = read_value(cgroup->dir_fd, "memory.max", &max)) < 0)
                return r;
        r = read_keyed(cgroup->dir_fd, "memory.events", "high", &high_events);
        if (r < 0 && r != -EOPNOTSUPP)
                return r;

        memory->current_bytes = current;
        memory->high_bytes = high;
        memory->max_bytes = max;
        memory->high_events = high_events;
        return 0;
}

int cgroup_cpu_usage(const struct mg_cgroup *cgroup, uint64_t *ret_usec) {
        return read_keyed(cgroup->dir_fd, "cpu.stat", "usage_usec", ret_usec);
}

bool cgroup_is_empty(const char *root, const char *path) {
        MG_CLEANUP(file_closep) int fd = cgroup_open_directory(root, path);
        uint64_t populated;

        return fd >= 0 && read_keyed(fd, "cgroup.events", "populated", &populated) == 0 &&
               populated == 0;
}

int cgroup_dying(const struct mg_cgroup *cgroup, uint64_t *ret_count) {
        return read_keyed(cgroup->dir_fd, "cgroup.stat", "nr_dying_descendants", ret_count);
}
