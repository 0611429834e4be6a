/* SPDX-License-Identifier: MIT */
/* Transient scopes by sd-bus, and what their cgroup tells. Layer: replay. */
#include "replay/scope.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/parse.h"
#include "host/memory_stat.h"
#include "host/proc.h"

#define MANAGER \
        "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"
#define CALL_USEC    (10 * MG_USEC_PER_SEC)
#define MOVE_TRIES   500 /* times 10 ms: how long systemd may take to move a process */
#define STAT_MAX     16384
#define PRESSURE_MAX 512

static int open_bus(sd_bus **ret_bus) {
        return geteuid() == 0 ? sd_bus_open_system(ret_bus) : sd_bus_open_user(ret_bus);
}

static int append_properties(sd_bus_message *call, pid_t pid, uint64_t memory_max) {
        int r = sd_bus_message_open_container(call, 'a', "(sv)");

        if (r >= 0)
                r = sd_bus_message_append(
                                call, "(sv)(sv)(sv)(sv)", "PIDs", "au", 1, (uint32_t) pid,
                                "Description", "s", "A program measured by memguard-replay",
                                "CollectMode", "s", "inactive-or-failed", "MemoryAccounting", "b",
                                1);
        if (r >= 0 && memory_max != MG_UNKNOWN)
                r = sd_bus_message_append(call, "(sv)", "MemoryMax", "t", memory_max);
        if (r >= 0)
                r = sd_bus_message_close_container(call);
        return r < 0 ? r : sd_bus_message_append(call, "a(sa(sv))", 0);
}

static int start_unit(const char *name, pid_t pid, uint64_t memory_max) {
        MG_CLEANUP(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        int r = open_bus(&bus);

        if (r >= 0)
                r = sd_bus_message_new_method_call(bus, &call, MANAGER, "StartTransientUnit");
        if (r >= 0)
                r = sd_bus_message_append(call, "ss", name, "fail");
        if (r >= 0)
                r = append_properties(call, pid, memory_max);
        return r < 0 ? r : sd_bus_call(bus, call, CALL_USEC, NULL, NULL);
}

/* The job is done when the process is where it belongs. */
static int wait_moved(const char *name, pid_t pid, char *ret_path, size_t size) {
        for (int i = 0; i < MOVE_TRIES; i++) {
                int r = proc_cgroup_path("/proc", pid, ret_path, size);

                if (r < 0)
                        return r;
                const char *last = strrchr(ret_path, '/');
                if (last && mg_streq(last + 1, name))
                        return 0;
                nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
        }
        return -ETIMEDOUT;
}

static uint64_t keyed(int dir_fd, const char *file, const char *key) {
        char text[STAT_MAX];

        return file_read_at(dir_fd, file, text, sizeof(text)) < 0 ? MG_UNKNOWN
                                                                  : flat_keyed_find(text, key);
}

static uint64_t cgroup_oom_kills(const struct scope *scope) {
        return keyed(scope->cgroup.dir_fd, "memory.events", "oom_kill");
}

static uint64_t host_oom_kills(void) {
        return keyed(AT_FDCWD, "/proc/vmstat", "oom_kill");
}

static int open_cgroup(struct scope *scope, const char *path) {
        char root[MG_CGROUP_PATH_MAX];
        enum mg_hierarchy hierarchy;
        int r = cgroup_find_root(NULL, root, sizeof(root), &hierarchy);

        if (r < 0)
                return r;
        if (hierarchy != MG_HIERARCHY_UNIFIED)
                return -EOPNOTSUPP;
        r = cgroup_open(root, path, &scope->cgroup);
        if (r < 0)
                return r;
        scope->has_cgroup = true;
        scope->cgroup_oom_kills = cgroup_oom_kills(scope);
        return 0;
}

void scope_init(struct scope *scope) {
        *scope = (struct scope){ .host_oom_kills = host_oom_kills() };
}

int scope_open(struct scope *scope, pid_t pid, uint64_t memory_max) {
        char path[MG_CGROUP_PATH_MAX];

        if (sd_booted() <= 0)
                return -EOPNOTSUPP;
        snprintf(scope->name, sizeof(scope->name), "memguard-replay-%d.scope", (int) pid);
        int r = start_unit(scope->name, pid, memory_max);
        if (r < 0) {
                scope->name[0] = '\0';
                return r;
        }
        r = wait_moved(scope->name, pid, path, sizeof(path));
        return r < 0 ? r : open_cgroup(scope, path);
}

/* The "some" line's total. */
static uint64_t read_pressure(int dir_fd, const char *file) {
        char text[PRESSURE_MAX];
        uint64_t total;

        if (file_read_at(dir_fd, file, text, sizeof(text)) < 0 || strncmp(text, "some ", 5) != 0)
                return MG_UNKNOWN;
        const char *at = strstr(text, "total=");
        if (!at)
                return MG_UNKNOWN;
        at += strlen("total=");
        return parse_u64_span(at, strcspn(at, " \n"), &total) < 0 ? MG_UNKNOWN : total;
}

void scope_measure(const struct scope *scope, struct replay_sample *sample) {
        struct mg_memory memory;

        if (!scope->has_cgroup) {
                sample->psi_usec = read_pressure(AT_FDCWD, "/proc/pressure/memory");
                return;
        }
        memory_unknown(&memory);
        if (cgroup_sample(&scope->cgroup, &memory) < 0)
                return;
        if (memory.anon_bytes != MG_UNKNOWN)
                sample->anon_bytes = memory.anon_bytes;
        if (memory.swap_bytes != MG_UNKNOWN)
                sample->swap_bytes = memory.swap_bytes;
        (void) cgroup_cpu_usage(&scope->cgroup, &sample->cpu_usec);
        uint64_t faults = keyed(scope->cgroup.dir_fd, "memory.stat", "pgfault");
        uint64_t major = keyed(scope->cgroup.dir_fd, "memory.stat", "pgmajfault");
        if (faults != MG_UNKNOWN && major != MG_UNKNOWN) {
                sample->minor_faults = mg_sub_floor(faults, major);
                sample->major_faults = major;
        }
        sample->psi_usec = read_pressure(scope->cgroup.dir_fd, "memory.pressure");
}

static bool rose(uint64_t before, uint64_t now) {
        return before != MG_UNKNOWN && now != MG_UNKNOWN && now > before;
}

bool scope_saw_oom_kill(const struct scope *scope) {
        uint64_t kills = scope->has_cgroup ? cgroup_oom_kills(scope) : MG_UNKNOWN;

        return kills != MG_UNKNOWN ? rose(scope->cgroup_oom_kills, kills)
                                   : rose(scope->host_oom_kills, host_oom_kills());
}

void scope_close(struct scope *scope) {
        MG_CLEANUP(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;

        if (scope->has_cgroup)
                cgroup_close(&scope->cgroup);
        if (scope->name[0] != '\0' && open_bus(&bus) >= 0)
                (void) sd_bus_call_method(
                                bus, MANAGER, "StopUnit", NULL, NULL, "ss", scope->name, "replace");
        *scope = (struct scope){};
}
