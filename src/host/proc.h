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

/* The tick: one pread of statm. RssAnon = resident - shared, in bytes. */
int proc_rss_anon(const struct mg_proc *proc, uint64_t *ret_bytes);

int proc_start_time(const char *proc_root, pid_t pid, uint64_t *ret_start_time);

/* The v2 path ("0::") or, on a v1 host, systemd's ("name=systemd"): into RET_PATH. */
int proc_cgroup_path(const char *proc_root, pid_t pid, char *ret_path, size_t size);

int proc_comm(const char *proc_root, pid_t pid, char *ret_comm, size_t size);

/* The executable's path; -EACCES without the right. */
int proc_exe(const char *proc_root, pid_t pid, char *ret_path, size_t size);

/* Numbers of /proc/PID/status. */
struct mg_proc_status {
        uid_t uid;
        pid_t parent;
        uint64_t swap_bytes;
        uint32_t threads;
        bool no_new_privs;
};
int proc_status(const char *proc_root, pid_t pid, struct mg_proc_status *ret_status);

/* utime + stime in microseconds. */
int proc_cpu_usage(const char *proc_root, pid_t pid, uint64_t *ret_usec);

/* smaps_rollup: rare looks only (20-50 ms at several GiB, the process's mmap blocked for as long). */
int proc_anon_huge(const char *proc_root, pid_t pid, uint64_t *ret_bytes);

int proc_stat_parse_start_time(const char *stat_text, uint64_t *ret_start_time);
int proc_statm_parse(const char *statm_text, uint64_t page_size, uint64_t *ret_rss_anon_bytes);
int proc_cgroup_parse(const char *cgroup_text, char *ret_path, size_t size);
