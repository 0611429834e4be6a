/* SPDX-License-Identifier: MIT */
/*
 * One walk over /proc: each process adds to its unit. What vanishes meanwhile is left out; what may not be read is counted.
 * Layer: ctl.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctl/survey.h"
#include "host/allocator.h"
#include "host/cgroup.h"
#include "host/elf_file.h"
#include "host/maps.h"
#include "host/memory_stat.h"
#include "host/proc.h"

struct gathering {
        const char *proc_root;
        char own_path[MG_CGROUP_PATH_MAX]; /* the unit this program runs in */
        struct survey survey;
};

void survey_done(struct survey *survey) {
        for (size_t i = 0; i < survey->n; i++)
                free(survey->units[i].path);
        free(survey->units);
        *survey = (struct survey){};
}

/*
 * As memguardd sees it: a login session, and whatever shares the caller's own unit, is a terminal or a container's only
 * cgroup and tells nothing about a service.
 */
static bool is_own_unit(const struct gathering *gathering, const char *path, size_t length) {
        return strncmp(gathering->own_path, path, length) == 0 &&
               (gathering->own_path[length] == '\0' || gathering->own_path[length] == '/');
}

/* IDENTITY's path is *PATH, cut to the unit's own, or NULL. */
static int name_process(
                const struct gathering *gathering,
                pid_t pid,
                uid_t uid,
                char *path,
                struct mg_unit_name *identity) {
        char executable[MG_CGROUP_PATH_MAX];
        int r = unit_name_from_cgroup(path, identity);

        if (r >= 0 && fnmatch("session-*.scope", identity->unit, 0) != 0 &&
            !is_own_unit(gathering, path, identity->path_length)) {
                path[identity->path_length] = '\0';
                return 0;
        }
        path[0] = '\0';
        r = proc_exe(gathering->proc_root, pid, executable, sizeof(executable));
        if (r < 0)
                r = proc_comm(gathering->proc_root, pid, executable, sizeof(executable));
        if (r < 0)
                return r;
        identity->user = false;
        unit_name_for_process(executable, uid, getuid(), identity->unit);
        return 0;
}

static struct survey_unit *find(
                struct survey *survey,
                const char *path,
                const struct mg_unit_name *identity) {
        for (size_t i = 0; i < survey->n; i++) {
                struct survey_unit *unit = &survey->units[i];
                if (unit->path ? mg_streq(unit->path, path)
                               : path[0] == '\0' && mg_streq(unit->name, identity->unit))
                        return unit;
        }
        return NULL;
}

static struct survey_unit *add(
                struct survey *survey,
                const char *path,
                const struct mg_unit_name *identity) {
        struct survey_unit *units =
                        reallocarray(survey->units, survey->n + 1, sizeof(*survey->units));
        char *copy = path[0] ? strdup(path) : NULL;

        if (units)
                survey->units = units;
        if (!units || (path[0] && !copy)) {
                free(copy);
                return NULL;
        }
        units[survey->n] = (struct survey_unit){ .path = copy, .user = identity->user };
        memcpy(units[survey->n].name, identity->unit, sizeof(units->name));
        return &units[survey->n++];
}

/* What the process adds to UNIT. */
static void look_at(const struct gathering *gathering, pid_t pid, struct survey_unit *unit) {
        struct mg_proc proc;
        struct mg_maps maps;
        uint64_t anon_bytes = 0;

        if (proc_open(gathering->proc_root, pid, &proc) >= 0) {
                (void) proc_rss_anon(&proc, &anon_bytes);
                proc_close(&proc);
        }
        unit->processes++;
        unit->anon_bytes = mg_add_cap(unit->anon_bytes, anon_bytes);
        if (anon_bytes >= unit->largest_bytes) {
                unit->largest_bytes = anon_bytes;
                unit->largest_pid = pid;
        }
        if (maps_read(gathering->proc_root, pid, &maps) < 0) {
                unit->unreadable++;
                return;
        }
        unit->allocators |= maps.allocators;
        unit->arena_heaps += maps.arena_heaps;
        unit->agents += maps.has_agent;
}

static int visit(void *userdata, pid_t pid) {
        struct gathering *gathering = userdata;
        char path[MG_CGROUP_PATH_MAX];
        struct mg_proc_status status;
        struct mg_unit_name identity = {};
        char executable[MG_CGROUP_PATH_MAX];

        if (proc_status(gathering->proc_root, pid, &status) < 0 || status.state == 'Z' ||
            proc_exe(gathering->proc_root, pid, executable, sizeof(executable)) == -ENODATA ||
            proc_cgroup_path(gathering->proc_root, pid, path, sizeof(path)) < 0 ||
            name_process(gathering, pid, status.uid, path, &identity) < 0)
                return 0;
        struct survey_unit *unit = find(&gathering->survey, path, &identity)
                                                   ?: add(&gathering->survey, path, &identity);
        if (!unit)
                return -ENOMEM;
        unit->threads += status.threads;
        look_at(gathering, pid, unit);
        return 0;
}

/* What no map shows: allocators linked into the program, and that it is static. Of the largest process alone: symbol tables are long. */
static void look_at_program(const char *proc_root, struct survey_unit *unit) {
        MG_CLEANUP(elf_freep) struct mg_elf *elf = NULL;
        struct mg_elf_allocators allocators;
        struct mg_elf_facts facts;
        char path[64];

        snprintf(path, sizeof(path), "%s/%d/exe", proc_root, (int) unit->largest_pid);
        if (elf_open(path, &elf) < 0)
                return;
        if (elf_facts(elf, &facts) >= 0)
                unit->is_static = facts.is_static;
        if (elf_find_allocators(elf, &allocators) >= 0)
                unit->allocators |= allocators.mask;
}

/* The cgroup counts pages that processes share once. */
static void take_cgroup(const char *cgroup_root, struct survey_unit *unit) {
        struct mg_cgroup cgroup = { .dir_fd = -EBADF, .stat_fd = -EBADF, .swap_fd = -EBADF };
        struct mg_memory memory;

        if (cgroup_open(cgroup_root, unit->path, &cgroup) < 0)
                return;
        memory_unknown(&memory);
        if (cgroup_sample(&cgroup, &memory) >= 0 && memory.anon_bytes != MG_UNKNOWN)
                unit->anon_bytes = memory.anon_bytes;
        cgroup_close(&cgroup);
}

static int find_own_path(struct gathering *gathering) {
        struct mg_unit_name own;
        int r = proc_cgroup_path(
                        gathering->proc_root, getpid(), gathering->own_path,
                        sizeof(gathering->own_path));

        if (r < 0 || unit_name_from_cgroup(gathering->own_path, &own) < 0)
                own.path_length = 0;
        gathering->own_path[own.path_length] = '\0';
        return r == -ENOMEM ? r : 0;
}

int survey_gather(const char *proc_root, const char *cgroup_root, struct survey *ret_survey) {
        struct gathering gathering = { .proc_root = proc_root };
        int r = find_own_path(&gathering);

        if (r >= 0)
                r = proc_walk(proc_root, visit, &gathering);
        if (r < 0) {
                survey_done(&gathering.survey);
                return r;
        }
        for (size_t i = 0; i < gathering.survey.n; i++) {
                struct survey_unit *unit = &gathering.survey.units[i];
                look_at_program(proc_root, unit);
                if (cgroup_root && unit->path)
                        take_cgroup(cgroup_root, unit);
        }
        *ret_survey = gathering.survey;
        return 0;
}
