/* SPDX-License-Identifier: MIT */
/*
 * /proc/PID: opening and reading. Each call opens what it needs below one path, so that fixtures can stand in; only statm
 * stays open. A missing file of a process that is still there is not "gone", and the other way round. Layer: host.
 */
#include "host/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/parse.h"
#include "base/statm.h"
#include "base/text.h"
#include "host/lines.h"

#define PROC_PATH_MAX 512
/* 15 bytes of a program, up to 63 of a kernel thread. */
#define COMM_TEXT_MAX 80
/* stat and statm are one line of numbers; the longest possible stat has under 1,100 characters. */
#define PROC_LINE_MAX 2048
/* One line a hierarchy, each with a path of at most PATH_MAX. */
#define PROC_CGROUP_MAX 16384

static int build_path(
                const char *proc_root,
                pid_t pid,
                const char *name,
                char path[PROC_PATH_MAX]) {
        struct mg_text text;

        if (pid <= 0)
                return -EINVAL;
        text_init(&text, path, PROC_PATH_MAX);
        text_put(&text, proc_root);
        text_put_char(&text, '/');
        text_put_u64(&text, (uint64_t) pid);
        text_put_char(&text, '/');
        text_put(&text, name);
        return text.overflow ? -ENAMETOOLONG : 0;
}

/* ENOENT below /proc/PID is the process's end or a file this kernel or process lacks: ABSENT then. */
static int gone_or(const char *proc_root, pid_t pid, int error, int absent) {
        char path[PROC_PATH_MAX];

        if (error != -ENOENT)
                return error;
        int r = build_path(proc_root, pid, "", path);
        if (r < 0)
                return r;
        return access(path, F_OK) < 0 ? -ESRCH : absent;
}

int proc_open_file(const char *proc_root, pid_t pid, const char *name) {
        char path[PROC_PATH_MAX];

        int r = build_path(proc_root, pid, name, path);
        if (r < 0)
                return r;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        return fd < 0 ? gone_or(proc_root, pid, -errno, -ENODATA) : fd;
}

/* Returns the length, -ENODATA where the process lives but has no such file. */
static ssize_t read_file(
                const char *proc_root,
                pid_t pid,
                const char *name,
                char *buffer,
                size_t size) {
        MG_CLEANUP(file_closep) int fd = proc_open_file(proc_root, pid, name);

        return fd < 0 ? fd : file_pread(fd, buffer, size);
}

int proc_open(const char *proc_root, pid_t pid, struct mg_proc *ret_proc) {
        MG_CLEANUP(file_closep) int fd = proc_open_file(proc_root, pid, "statm");
        char text[PROC_LINE_MAX];
        uint64_t start_time;

        if (fd < 0)
                return fd;
        int r = proc_start_time(proc_root, pid, &start_time);
        if (r < 0)
                return r;
        /* statm answers for the process it was opened of alone: if that has ended, the start time was another's. */
        ssize_t n = file_pread(fd, text, sizeof(text));
        if (n < 0)
                return (int) n;
        *ret_proc = (struct mg_proc){ .pid = pid,
                                      .start_time = start_time,
                                      .statm_fd = MG_TAKE_FD(fd) };
        return 0;
}

void proc_close(struct mg_proc *proc) {
        file_closep(&proc->statm_fd);
}

int proc_rss_anon(const struct mg_proc *proc, uint64_t *ret_bytes) {
        static uint64_t page_size;
        char text[PROC_LINE_MAX];

        if (page_size == 0)
                page_size = (uint64_t) sysconf(_SC_PAGESIZE);
        ssize_t n = file_pread(proc->statm_fd, text, sizeof(text));
        if (n < 0)
                return (int) n;
        return statm_parse_anon(text, page_size, ret_bytes);
}

int proc_start_time(const char *proc_root, pid_t pid, uint64_t *ret_start_time) {
        char text[PROC_LINE_MAX];
        ssize_t n = read_file(proc_root, pid, "stat", text, sizeof(text));
        if (n < 0)
                return (int) n;
        return proc_stat_parse_start_time(text, ret_start_time);
}

int proc_cpu_usage(const char *proc_root, pid_t pid, uint64_t *ret_usec) {
        char text[PROC_LINE_MAX];
        uint64_t ticks;
        ssize_t n = read_file(proc_root, pid, "stat", text, sizeof(text));
        if (n < 0)
                return (int) n;
        int r = proc_stat_parse_cpu_ticks(text, &ticks);
        if (r < 0)
                return r;
        *ret_usec = mg_scale(ticks, MG_USEC_PER_SEC, (uint64_t) sysconf(_SC_CLK_TCK));
        return 0;
}

int proc_cgroup_path(const char *proc_root, pid_t pid, char *ret_path, size_t size) {
        char text[PROC_CGROUP_MAX];
        ssize_t n = read_file(proc_root, pid, "cgroup", text, sizeof(text));
        if (n == -ENODATA)
                text[0] = '\0';
        else if (n < 0)
                return (int) n;
        return proc_cgroup_parse(text, ret_path, size);
}

int proc_comm(const char *proc_root, pid_t pid, char *ret_comm, size_t size) {
        char text[COMM_TEXT_MAX];

        ssize_t n = read_file(proc_root, pid, "comm", text, sizeof(text));
        if (n < 0)
                return (int) n;
        if (n > 0 && text[n - 1] == '\n')
                n--;
        if ((size_t) n >= size)
                return -ENAMETOOLONG;
        memcpy(ret_comm, text, (size_t) n);
        ret_comm[n] = '\0';
        return 0;
}

int proc_exe(const char *proc_root, pid_t pid, char *ret_path, size_t size) {
        static const char deleted[] = " (deleted)";
        char path[PROC_PATH_MAX];

        int r = build_path(proc_root, pid, "exe", path);
        if (r < 0)
                return r;
        ssize_t n = readlink(path, ret_path, size);
        if (n < 0)
                return gone_or(proc_root, pid, -errno, -ENODATA);
        if ((size_t) n >= size)
                return -ENAMETOOLONG;
        ret_path[n] = '\0';
        if ((size_t) n > strlen(deleted) && mg_streq(ret_path + n - strlen(deleted), deleted))
                ret_path[(size_t) n - strlen(deleted)] = '\0';
        return 0;
}

static bool take_key(const char *line, const char *key, const char **ret_value) {
        size_t length = strlen(key);

        if (strncmp(line, key, length) != 0 || line[length] != ':')
                return false;
        *ret_value = line + length + 1 + strspn(line + length + 1, " \t");
        return true;
}

/* The number VALUE starts with, up to a blank; MG_UNKNOWN if it is none. */
static uint64_t take_number(const char **value) {
        uint64_t number = MG_UNKNOWN;
        size_t length = strcspn(*value, " \t");

        (void) parse_u64_span(*value, length, &number);
        *value += length;
        *value += strspn(*value, " \t");
        return number;
}

static uint64_t kib_to_bytes(uint64_t kib) {
        return kib == MG_UNKNOWN ? MG_UNKNOWN : mg_scale(kib, MG_KIB, 1);
}

static void parse_status_line(const char *line, struct mg_proc_status *status) {
        const char *value;

        if (take_key(line, "State", &value))
                status->state = value[0] != '\0' ? value[0] : '?';
        else if (take_key(line, "PPid", &value))
                status->parent = (pid_t) take_number(&value);
        else if (take_key(line, "Uid", &value)) {
                status->real_uid = (uid_t) take_number(&value);
                status->uid = (uid_t) take_number(&value);
        } else if (take_key(line, "VmSwap", &value))
                status->swap_bytes = kib_to_bytes(take_number(&value));
        else if (take_key(line, "Threads", &value))
                status->threads = (uint32_t) take_number(&value);
        else if (take_key(line, "NoNewPrivs", &value))
                status->no_new_privs = value[0] == '1';
        else if (take_key(line, "Seccomp", &value))
                status->seccomp = value[0] == '1' || value[0] == '2';
}

int proc_status(const char *proc_root, pid_t pid, struct mg_proc_status *ret_status) {
        struct mg_proc_status status = {
                .uid = (uid_t) -1, .real_uid = (uid_t) -1, .state = '?', .swap_bytes = MG_UNKNOWN
        };
        MG_CLEANUP(file_closep) int fd = proc_open_file(proc_root, pid, "status");
        struct mg_lines lines;
        char *line;
        int r;

        if (fd < 0)
                return fd;
        lines_init(&lines, fd);
        while ((r = lines_next(&lines, &line)) > 0)
                parse_status_line(line, &status);
        if (r < 0)
                return r;
        if (status.uid == (uid_t) -1)
                return -EBADMSG;
        *ret_status = status;
        return 0;
}

int proc_anon_huge(const char *proc_root, pid_t pid, uint64_t *ret_bytes) {
        MG_CLEANUP(file_closep) int fd = proc_open_file(proc_root, pid, "smaps_rollup");
        uint64_t bytes = MG_UNKNOWN;
        struct mg_lines lines;
        const char *value;
        char *line;
        int r;

        if (fd < 0)
                return fd;
        lines_init(&lines, fd);
        while ((r = lines_next(&lines, &line)) > 0)
                if (take_key(line, "AnonHugePages", &value))
                        bytes = kib_to_bytes(take_number(&value));
        if (r < 0)
                return r;
        if (bytes == MG_UNKNOWN)
                return -ENODATA;
        *ret_bytes = bytes;
        return 0;
}

static void close_directoryp(DIR **directory) {
        if (*directory)
                closedir(*directory);
}

int proc_walk(const char *proc_root, mg_proc_visitor visit, void *userdata) {
        MG_CLEANUP(close_directoryp) DIR *directory = opendir(proc_root);
        struct dirent *entry;
        uint64_t pid;

        if (!directory)
                return -errno;
        for (errno = 0; (entry = readdir(directory)); errno = 0) {
                if (parse_u64(entry->d_name, &pid) < 0 || pid == 0 || pid > INT32_MAX)
                        continue;
                int r = visit(userdata, (pid_t) pid);
                if (r != 0)
                        return r;
        }
        return -errno;
}
