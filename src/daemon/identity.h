/* SPDX-License-Identifier: MIT */
/*
 * Who is on the other end of a connection, and which unit a process belongs to: by the kernel and the host's /proc,
 * never by what a message claims. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/unit_name.h"

/* Longer cgroup paths exist only where somebody wants to find out what happens. */
#define UNIT_PATH_MAX 1024

struct peer_credentials {
        pid_t pid;
        uid_t uid;
        uint64_t start_time; /* pid and start time are of one process, which was alive when both were read */
};

/* -ESRCH: it is gone already; -EACCES: it is in a pid namespace that cannot be seen from here. */
int credentials_of_peer(int fd, struct peer_credentials *ret_credentials);

struct process_unit {
        char name[MG_UNIT_NAME_MAX];
        char path[UNIT_PATH_MAX]; /* of the unit's cgroup; "": a pseudo-unit */
        bool user;
        uid_t user_uid;
};

/*
 * The unit of a process, or its pseudo-unit: a login session, and whatever shares the daemon's own unit OWN_PATH, is a
 * terminal or a container's only cgroup and tells nothing about a service.
 */
int unit_of_process(pid_t pid, uid_t uid, const char *own_path, struct process_unit *ret_unit);

/* The unit that cgroup PATH belongs to. -ENXIO: none (see above for what counts). */
int unit_of_cgroup(const char *path, const char *own_path, struct process_unit *ret_unit);
