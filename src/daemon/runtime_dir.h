/* SPDX-License-Identifier: MIT */
/*
 * The runtime directory: made, locked against a second daemon, and home of the sockets. A socket file is removed
 * only while the lock is held, so that no daemon ever takes away a living one's. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Makes PATH (0755, parents not) if need be and opens it. */
int directory_open(const char *path, int *ret_fd);

/*
 * Takes the lock. -EWOULDBLOCK: another daemon has it; *ret_holder is its pid, or 0 where the kernel does not say.
 */
int runtime_dir_lock(int dir_fd, int *ret_lock_fd, pid_t *ret_holder);

/* A listening socket NAME in DIRECTORY of MODE. TYPE: SOCK_SEQPACKET or SOCK_STREAM. The lock must be held. */
int runtime_dir_listen(
                const char *directory,
                const char *name,
                int type,
                mode_t mode,
                int backlog,
                int *ret_fd);

/* What the service manager handed over; a descriptor that was not is -EBADF. */
struct activation {
        int agent_fd;
        int bus_fd;
        int pressure_fd;
        int *clients; /* of memory pressure, stored by an earlier daemon; the array is owned, its descriptors are not */
        size_t n_clients;
};

/* Descriptors that are none of these are closed. -ENOMEM: clients are left open, and known to nobody. */
int activation_take(struct activation *ret_activation);
void activation_done(struct activation *activation);

/* RLIMIT_NOFILE to its hard limit. Returns what is in force. */
unsigned long raise_descriptor_limit(void);
