/* SPDX-License-Identifier: MIT *
 * Measured 2026-11-30, glibc 2.36, 2 cores, c10-not-heap --hold=0: RssAnon 20.2 MiB all through.
 */
/*
 * C10: memory that is no heap: a large file written and read again, many small files, a shared anonymous map, a file on a
 * tmpfs, and beside them a heap of 20 MiB, all of it in use. Nothing here is retained; a trim would be wrong. --directory is where
 * the files go (on a real disk, removed at the end), --tmpfs where the tmpfs is. --scale=100 is the case in full (2 GiB, 200,000
 * files, 500 MiB, 300 MiB), the default a tenth of it.
 */
#include "workload.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAP_BLOCK (16 << 10)

static const char *directory = "/var/tmp", *tmpfs = "/dev/shm";
static uint64_t scale = 10;
static char root[PATH_MAX], tmpfs_file[PATH_MAX];
static char page[1 << 16];
static struct workload self = {
        .name = "c10-not-heap",
        .title = "page cache, slab, shared maps and tmpfs beside a small heap",
        .size = 20 << 20,
        .threads = 1,
        .hold_seconds = UINT64_MAX,
};
static const struct workload_option options[] = {
        { "directory", OPTION_TEXT, &directory, "for the files" },
        { "tmpfs", OPTION_TEXT, &tmpfs, "a tmpfs" },
        { "scale", OPTION_COUNT, &scale, "percent of the full case" },
        {},
};

static void fail(const char *what) {
        perror(what);
        exit(1);
}

static void write_file(const char *path, uint64_t bytes) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        if (fd < 0)
                fail(path);
        while (bytes > 0) {
                ssize_t n = write(fd, page, bytes < sizeof(page) ? bytes : sizeof(page));
                if (n <= 0)
                        fail(path);
                bytes -= (uint64_t) n;
        }
        if (lseek(fd, 0, SEEK_SET) < 0)
                fail(path);
        while (read(fd, page, sizeof(page)) > 0)
                ;
        close(fd);
}

static void small_file(uint64_t number, bool create) {
        char path[PATH_MAX + 64];

        snprintf(path, sizeof(path), "%s/small-%lu", root, number);
        if (create)
                write_file(path, 100);
        else
                unlink(path);
}

static void *shared_map(uint64_t bytes) {
        char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (map == MAP_FAILED)
                fail("mmap");
        memset(map, 1, bytes);
        return map;
}

static void remove_files(uint64_t files) {
        char large[PATH_MAX + 64];

        for (uint64_t i = 0; i < files; i++)
                small_file(i, false);
        snprintf(large, sizeof(large), "%s/large", root);
        unlink(large);
        unlink(tmpfs_file);
        rmdir(root);
}

static void make_files(uint64_t files) {
        char large[PATH_MAX + 64];

        snprintf(root, sizeof(root), "%s/c10-not-heap.%d", directory, (int) getpid());
        snprintf(tmpfs_file, sizeof(tmpfs_file), "%s/c10-not-heap.%d", tmpfs, (int) getpid());
        if (mkdir(root, 0700) < 0)
                fail(root);
        snprintf(large, sizeof(large), "%s/large", root);
        write_file(large, (2UL << 30) / 100 * scale);
        workload_phase("large-file", NULL);
        for (uint64_t i = 0; i < files; i++)
                small_file(i, true);
        workload_phase("small-files", "files=%lu", files);
        write_file(tmpfs_file, (300UL << 20) / 100 * scale);
        workload_phase("tmpfs", NULL);
}

int main(int argc, char **argv) {
        workload_start(&self, options, argc, argv);
        uint64_t files = 200000 / 100 * scale;
        for (uint64_t bytes = 0; bytes < self.size; bytes += HEAP_BLOCK)
                workload_alloc(HEAP_BLOCK);
        make_files(files);
        shared_map((500UL << 20) / 100 * scale);
        workload_phase("shared-map", NULL);
        int status = workload_finish(self.size);
        remove_files(files);
        return status;
}
