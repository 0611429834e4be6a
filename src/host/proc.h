/* SPDX-License-Identifier: MIT */
/*
 * What /proc tells of one process. ESRCH always means: gone. Layer: host; no allocation; never logs. The parsers are
 * pure and take the file's text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Everything below PROC_ROOT ("/proc" in production), so that captured trees can be fixtures. */

/* A process held by (pid, start time) with its statm open: reads of a reused pid fail with ESRCH. */
struct mg_proc {
        pid_t pid;
        uint64_t start_time;
        int statm_fd;
};

int proc_open(const char *proc_root, pid_t pid, struct mg_proc *ret_proc);
void proc_close(struct mg_proc *proc);

/* The tick: one pread of statm. RssAnon = resident - shared, in bytes; 0 of a zombie. */
int proc_rss_anon(const struct mg_proc *proc, uint64_t *ret_bytes);

/* Any file of the process, for reading: a descriptor, -ESRCH when it is gone, -ENODATA when it lives and has no such file. */
int proc_open_file(const char *proc_root, pid_t pid, const char *name);

int proc_start_time(const char *proc_root, pid_t pid, uint64_t *ret_start_time);

/* The cgroup that says which unit it is in (proc_cgroup_parse()); "/" also where the kernel has no cgroups. */
int proc_cgroup_path(const char *proc_root, pid_t pid, char *ret_path, size_t size);

/* Without the newline. 16 bytes hold any program's name; kernel threads may have longer ones. */
int proc_comm(const char *proc_root, pid_t pid, char *ret_comm, size_t size);

/*
 * The executable's path, without the " (deleted)" that an upgrade leaves behind. -EACCES without the right, -ENODATA for a
 * kernel thread.
 */
int proc_exe(const char *proc_root, pid_t pid, char *ret_path, size_t size);

/* Numbers of /proc/PID/status. */
struct mg_proc_status {
        uid_t uid; /* effective: the one SO_PEERCRED names */
        uid_t real_uid;
        pid_t parent;
        char state;          /* 'R', 'S', ..., 'Z'; '?' unknown */
        uint64_t swap_bytes; /* MG_UNKNOWN: a kernel thread, a zombie */
        uint32_t threads;
        bool no_new_privs;
        bool seccomp; /* a filter or strict mode is in force */
};
int proc_status(const char *proc_root, pid_t pid, struct mg_proc_status *ret_status);

/* utime + stime in microseconds. */
int proc_cpu_usage(const char *proc_root, pid_t pid, uint64_t *ret_usec);

/* smaps_rollup: rare looks only (20-50 ms at several GiB, the process's mmap blocked for as long). */
int proc_anon_huge(const char *proc_root, pid_t pid, uint64_t *ret_bytes);

/* Calls VISIT with each process there is. Non-zero from VISIT ends the walk and is returned. */
typedef int (*mg_proc_visitor)(void *userdata, pid_t pid);
int proc_walk(const char *proc_root, mg_proc_visitor visit, void *userdata);

/* Field 22 of /proc/PID/stat; fields count from the last ")", for a comm may hold anything. */
int proc_stat_parse_start_time(const char *stat_text, uint64_t *ret_start_time);

/* Fields 14 + 15, in clock ticks. */
int proc_stat_parse_cpu_ticks(const char *stat_text, uint64_t *ret_ticks);

/*
 * The v2 path ("0::"); where that is "/" (v2 mounted beside a v1 host's hierarchies, or not at all) systemd's own
 * ("name=systemd"); "/" when neither says more. -ESRCH when the kernel marks the cgroup as deleted: the process is on its way out.
 */
int proc_cgroup_parse(const char *cgroup_text, char *ret_path, size_t size);
