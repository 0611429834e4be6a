/* SPDX-License-Identifier: MIT */
/*
 * cgroup v2 as memguard reads it. libcgroup finds the mount; the tick preads descriptors that stay open: memory.stat and
 * memory.swap.current, two system calls a unit. Layer: host; never logs.
 */
#pragma once

#include "core/sample.h"

#define MG_CGROUP_PATH_MAX 4096

enum mg_hierarchy {
        MG_HIERARCHY_UNIFIED, /* cgroup v2 with the memory controller */
        MG_HIERARCHY_LEGACY,  /* v1, or hybrid with memory on v1: numbers come from /proc */
        MG_HIERARCHY_NONE,
        _MG_HIERARCHY_MAX,
};

const char *hierarchy_to_string(enum mg_hierarchy hierarchy);

/*
 * Where the memory controller is mounted, found by libcgroup: a unified root is what cgroup_open() takes; a legacy one is for
 * messages. MG_HIERARCHY_NONE gives "". ROOT_OVERRIDE (--cgroup-root) is taken as unified, without a trailing "/". Not thread-safe.
 */
int cgroup_find_root(
                const char *root_override,
                char *ret_root,
                size_t size,
                enum mg_hierarchy *ret_hierarchy);

/* A unit's cgroup, held open. */
struct mg_cgroup {
        int dir_fd;
        int stat_fd;
        int swap_fd; /* -EBADF: the kernel has no swap accounting, or there is no such file */
        uint64_t inode;
        bool no_swap_file;
};

/* PATH is as in /proc/PID/cgroup ("/system.slice/foo.service"). -ENOENT or -ENODEV: gone. -EOPNOTSUPP: no memory controller here. */
int cgroup_open(const char *root, const char *path, struct mg_cgroup *ret_cgroup);
void cgroup_close(struct mg_cgroup *cgroup);

/*
 * The tick: two preads, no allocation. Fills the members of memory.stat and swap_bytes. -ENODEV: the cgroup is gone (also when its
 * inode was reused). Other members stay.
 */
int cgroup_sample(const struct mg_cgroup *cgroup, struct mg_memory *memory);

/* Each minute or on notification: memory.current, .high, .max and .events. Absent files leave MG_UNKNOWN. */
int cgroup_limits(const struct mg_cgroup *cgroup, struct mg_memory *memory);

/* cpu.stat's usage_usec; -EOPNOTSUPP without. */
int cgroup_cpu_usage(const struct mg_cgroup *cgroup, uint64_t *ret_usec);

/* Whether the kernel says that there is no process in PATH or below; false where it says nothing. */
bool cgroup_is_empty(const char *root, const char *path);

/* nr_dying_descendants of cgroup.stat. */
int cgroup_dying(const struct mg_cgroup *cgroup, uint64_t *ret_count);

/*
 * The pids in PATH and below, into PIDS (room for MAX). Returns how many there are, which may be more than MAX. Left out: threaded
 * subgroups (their processes are listed by the domain above), cgroups below that are units of their own, as user@1000.service has, and
 * all beyond the first MG_CGROUP_TREE_MAX.
 */
int cgroup_pids(const char *root, const char *path, pid_t *pids, size_t max);

/*
 * What one walk visits: each costs an open, and where it has children a list of its some seventy files, and the daemon's watchdog has
 * 30 s for everything. Slices are root's, but in a tree that was handed to somebody (unit_name_tree_length()) that one can make
 * cgroups without end.
 */
#define MG_CGROUP_WALK_MAX 65536u
#define MG_CGROUP_TREE_MAX 8192u

/*
 * Calls VISIT with each cgroup's path below the root ("/" first), parents before children. Non-zero from VISIT ends the walk
 * and is returned. What vanishes meanwhile is left out. -E2BIG at its end: there were more cgroups than it visits.
 */
typedef int (*mg_cgroup_visitor)(void *userdata, const char *path);
int cgroup_walk(const char *root, mg_cgroup_visitor visit, void *userdata);
