/* SPDX-License-Identifier: MIT */
/* What the agent reads about its own process. Layer: agent; no allocation. */
#include "agent/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/system.h"
#include "base/file.h"
#include "base/macros.h"
#include "base/statm.h"
#include "base/text.h"

/* Descriptors 0 to 2 stay empty: a message that the C library writes to 2 must not reach the socket. */
#define LOWEST_OWN_FD 3

char process_text[2][MG_PROCESS_FILE_BYTES];

static struct {
        bool keep_open;
        int fd[_MG_PROCESS_FILE_MAX];
} files = { .fd = { -EBADF, -EBADF, -EBADF } };

static void put_path(enum mg_process_file file, char *buffer, size_t size) {
        struct mg_text path;

        text_init(&path, buffer, size);
        switch (file) {
        case MG_PROCESS_STATM:
                text_put(&path, "/proc/self/statm");
                break;
        case MG_PROCESS_MAIN_STATUS:
                text_put(&path, "/proc/self/task/");
                text_put_u64(&path, (uint64_t) getpid());
                text_put(&path, "/status");
                break;
        case MG_PROCESS_OWN_STATUS:
                text_put(&path, "/proc/thread-self/status");
                break;
        case _MG_PROCESS_FILE_MAX:
                break;
        }
}

static int open_file(enum mg_process_file file) {
        char path[64];

        put_path(file, path, sizeof(path));
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? -errno : fd;
}

int process_lift_fd(int fd, int minimum) {
        if (fd < 0 || fd >= minimum)
                return fd;
        int lifted = system_duplicate_above(fd, minimum);
        int saved = errno;
        close(fd);
        return lifted < 0 ? -saved : lifted;
}

int process_files_open(bool own_table) {
        process_files_close();
        files.keep_open = own_table;
        for (int file = 0; own_table && file < _MG_PROCESS_FILE_MAX; file++) {
                int fd = process_lift_fd(open_file((enum mg_process_file) file), LOWEST_OWN_FD);
                if (fd < 0) {
                        process_files_close();
                        return fd;
                }
                files.fd[file] = fd;
        }
        return 0;
}

void process_files_close(void) {
        for (int file = 0; file < _MG_PROCESS_FILE_MAX; file++)
                file_closep(&files.fd[file]);
        files.keep_open = false;
}

void process_files_forget(void) {
        for (int file = 0; file < _MG_PROCESS_FILE_MAX; file++)
                files.fd[file] = -EBADF;
        files.keep_open = false;
}

/* The program may have closed and reused the number meanwhile: then it is no longer ours to close. */
static void close_if_same(int fd, const struct stat *before) {
        struct stat now;

        if (fstat(fd, &now) == 0 && now.st_dev == before->st_dev && now.st_ino == before->st_ino)
                close(fd);
}

static ssize_t read_shared(enum mg_process_file file, char *buffer, size_t size) {
        struct stat before;

        int fd = open_file(file);
        if (fd < 0)
                return fd;
        if (fstat(fd, &before) < 0)
                return -EBADF;
        ssize_t length = file_pread(fd, buffer, size);
        close_if_same(fd, &before);
        return length;
}

ssize_t process_file_read(enum mg_process_file file, char *buffer, size_t size) {
        if (!files.keep_open)
                return read_shared(file, buffer, size);
        return file_pread(files.fd[file], buffer, size);
}

int process_rss_anon(uint64_t *ret_bytes) {
        char text[128];

        ssize_t length = process_file_read(MG_PROCESS_STATM, text, sizeof(text));
        if (length < 0)
                return (int) length;
        return statm_parse_anon(text, (uint64_t) sysconf(_SC_PAGESIZE), ret_bytes);
}

static uint64_t read_clock(clockid_t clock) {
        struct timespec now;

        if (clock_gettime(clock, &now) < 0)
                return 0;
        return (uint64_t) now.tv_sec * MG_USEC_PER_SEC + (uint64_t) now.tv_nsec / 1000;
}

uint64_t process_now_usec(void) {
        return read_clock(CLOCK_MONOTONIC);
}

uint64_t process_thread_cpu_usec(void) {
        return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t process_minor_faults(void) {
        struct rusage usage;

        return getrusage(RUSAGE_SELF, &usage) < 0 ? MG_UNKNOWN : (uint64_t) usage.ru_minflt;
}

static uint64_t count_preemptions(void) {
        struct rusage usage;

        return getrusage(RUSAGE_THREAD, &usage) < 0 ? 0 : (uint64_t) usage.ru_nivcsw;
}

void stopwatch_start(struct mg_stopwatch *watch) {
        watch->preemptions = count_preemptions();
        watch->cpu_usec = process_thread_cpu_usec();
        watch->wall_usec = process_now_usec();
}

uint64_t stopwatch_pause_usec(const struct mg_stopwatch *watch) {
        uint64_t wall = process_now_usec() - watch->wall_usec;
        uint64_t cpu = process_thread_cpu_usec() - watch->cpu_usec;

        return count_preemptions() == watch->preemptions ? MG_MIN(cpu, wall) : wall;
}
