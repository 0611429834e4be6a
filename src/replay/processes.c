/* SPDX-License-Identifier: MIT */
/* Descent and sums over /proc. Layer: replay. */
#include "replay/processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/cleanup.h"
#include "host/proc.h"
#include "replay/child.h"

#define PROC "/proc"

/* One line of /proc/PID/stat, as far as it is of use. */
struct stat_line {
        pid_t pid;
        pid_t parent;
        char state;
        uint64_t minor_faults; /* with those of children that were waited for */
        uint64_t major_faults;
        uint64_t cpu_ticks;
        uint64_t rss_pages;
};

struct table {
        struct stat_line *lines;
        size_t n;
        size_t capacity;
};

void process_list_done(struct process_list *list) {
        free(list->pids);
        *list = (struct process_list){};
}

static int read_stat(pid_t pid, struct stat_line *ret_line) {
        char path[64];
        char text[2048];
        unsigned long minor, child_minor, major, child_major, user, system, rss;
        long child_user, child_system;
        int parent;
        char state;

        snprintf(path, sizeof(path), PROC "/%d/stat", (int) pid);
        ssize_t n = file_read_at(-1, path, text, sizeof(text));
        if (n < 0)
                return (int) n;
        const char *rest = strrchr(text, ')'); /* a comm may hold anything */
        if (!rest ||
            sscanf(rest + 1,
                   " %c %d %*d %*d %*d %*d %*u %lu %lu %lu %lu %lu %lu %ld %ld %*d %*d %*d %*d %*u %*u %lu",
                   &state, &parent, &minor, &child_minor, &major, &child_major, &user, &system,
                   &child_user, &child_system, &rss) != 11)
                return -EBADMSG;
        *ret_line = (struct stat_line){
                .pid = pid,
                .parent = parent,
                .state = state,
                .minor_faults = minor + child_minor,
                .major_faults = major + child_major,
                .cpu_ticks = user + system + (unsigned long) (child_user + child_system),
                .rss_pages = rss,
        };
        return 0;
}

static int add_line(void *userdata, pid_t pid) {
        struct table *table = userdata;
        struct stat_line line;

        if (read_stat(pid, &line) < 0)
                return 0; /* gone meanwhile */
        if (table->n == table->capacity) {
                size_t capacity = table->capacity > 0 ? 2 * table->capacity : 256;
                struct stat_line *lines = reallocarray(table->lines, capacity, sizeof(*lines));
                if (!lines)
                        return -ENOMEM;
                table->lines = lines;
                table->capacity = capacity;
        }
        table->lines[table->n++] = line;
        return 0;
}

static const struct stat_line *find_line(const struct table *table, pid_t pid) {
        for (size_t i = 0; i < table->n; i++)
                if (table->lines[i].pid == pid)
                        return &table->lines[i];
        return NULL;
}

/* The child of the harness above LINE (or LINE itself); 0: it is not below the harness. */
static pid_t find_top(const struct table *table, const struct stat_line *line, pid_t harness) {
        /* A chain is never longer than the table; a pid reused while it was read could make a circle. */
        for (size_t steps = 0; line && steps <= table->n; steps++) {
                if (line->parent == harness)
                        return line->pid;
                line = find_line(table, line->parent);
        }
        return 0;
}

static int append(struct process_list *list, pid_t pid) {
        if (list->n == list->capacity) {
                size_t capacity = list->capacity > 0 ? 2 * list->capacity : 32;
                pid_t *pids = reallocarray(list->pids, capacity, sizeof(*pids));
                if (!pids)
                        return -ENOMEM;
                list->pids = pids;
                list->capacity = capacity;
        }
        list->pids[list->n++] = pid;
        return 0;
}

static bool is_one_of(pid_t pid, const pid_t *pids, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (pids[i] == pid)
                        return true;
        return false;
}

/* Lost children of the load are told by what the harness put into its environment. */
static bool is_of_load(pid_t pid) {
        MG_CLEANUP(freep) char *text = NULL;
        MG_CLEANUP(file_closep) int fd = proc_open_file(PROC, pid, "environ");
        size_t size = 256 * 1024;
        ssize_t n;

        if (fd < 0 || !(text = malloc(size)))
                return false;
        n = read(fd, text, size);
        return n > 0 &&
               memmem(text, (size_t) n, REPLAY_LOAD_MARK, sizeof(REPLAY_LOAD_MARK)) != NULL;
}

static int collect(
                const struct table *table,
                pid_t root,
                const pid_t *others,
                size_t n_others,
                struct process_list *list) {
        pid_t harness = getpid();

        for (size_t i = 0; i < table->n; i++) {
                const struct stat_line *line = &table->lines[i];
                pid_t top = line->state == 'Z' ? 0 : find_top(table, line, harness);

                if (top == 0 || is_one_of(top, others, n_others))
                        continue;
                if (root > 0 && top != root && is_of_load(line->pid))
                        continue;
                int r = append(list, line->pid);
                if (r < 0)
                        return r;
        }
        return 0;
}

int processes_find(
                pid_t root,
                const pid_t *others,
                size_t n_others,
                struct process_list *ret_list) {
        struct process_list list = {};
        struct table table = {};

        int r = proc_walk(PROC, add_line, &table);
        if (r >= 0)
                r = collect(&table, root, others, n_others, &list);
        free(table.lines);
        if (r < 0) {
                process_list_done(&list);
                return r;
        }
        *ret_list = list;
        return 0;
}

int processes_below(struct process_list *ret_list) {
        return processes_find(0, NULL, 0, ret_list);
}

static void add(uint64_t *sum, uint64_t value) {
        *sum = *sum == MG_UNKNOWN ? value : mg_add_cap(*sum, value);
}

static void measure_memory(pid_t pid, struct replay_sample *sample) {
        struct mg_proc_status status;
        struct mg_proc proc;
        uint64_t anon;

        if (proc_open(PROC, pid, &proc) < 0)
                return;
        if (proc_rss_anon(&proc, &anon) == 0)
                add(&sample->anon_bytes, anon);
        proc_close(&proc);
        if (proc_status(PROC, pid, &status) == 0 && status.swap_bytes != MG_UNKNOWN)
                add(&sample->swap_bytes, status.swap_bytes);
}

void processes_measure(const struct process_list *list, struct replay_sample *sample) {
        uint64_t page_size = (uint64_t) sysconf(_SC_PAGESIZE);
        uint64_t ticks = (uint64_t) sysconf(_SC_CLK_TCK);

        sample->processes = 0;
        for (size_t i = 0; i < list->n; i++) {
                struct stat_line line;

                if (read_stat(list->pids[i], &line) < 0 || line.state == 'Z')
                        continue;
                sample->processes++;
                measure_memory(line.pid, sample);
                add(&sample->rss_bytes, line.rss_pages * page_size);
                add(&sample->minor_faults, line.minor_faults);
                add(&sample->major_faults, line.major_faults);
                add(&sample->cpu_usec, mg_scale(line.cpu_ticks, MG_USEC_PER_SEC, ticks));
        }
}
