/* SPDX-License-Identifier: MIT */
/* Peers and processes, told apart by the kernel; see identity.h. */
#include "daemon/identity.h"

#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/proc.h"

/* Linux 6.5; Debian 12's headers lack it. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* A pidfd becomes readable when its process ends. */
static bool has_ended(int pidfd) {
        struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

        return poll(&poll_fd, 1, 0) != 0;
}

/* Without a pidfd: a peer that is still connected still has its pid, unless it gave the socket away. */
static bool has_hung_up(int fd) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLRDHUP };

        return poll(&poll_fd, 1, 0) < 0 || (poll_fd.revents & (POLLHUP | POLLRDHUP | POLLERR));
}

static int open_peer_pidfd(int fd) {
        int pidfd = -EBADF;
        socklen_t length = sizeof(pidfd);

        return getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) < 0 ? -errno : pidfd;
}

int credentials_of_peer(int fd, struct peer_credentials *ret_credentials) {
        struct ucred ucred;
        socklen_t length = sizeof(ucred);
        uint64_t start_time;
        uint64_t again;
        MG_CLEANUP(file_closep) int pidfd = -EBADF;
        int r;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ucred, &length) < 0)
                return -errno;
        if (ucred.pid <= 0)
                return -EACCES;
        pidfd = open_peer_pidfd(fd);
        if (pidfd < 0 && pidfd != -ENOPROTOOPT && pidfd != -EINVAL)
                return -ESRCH;
        r = proc_start_time("/proc", ucred.pid, &start_time);
        if (r < 0)
                return r;
        if (pidfd >= 0 ? has_ended(pidfd) : has_hung_up(fd))
                return -ESRCH;
        r = proc_start_time("/proc", ucred.pid, &again);
        if (r < 0 || again != start_time)
                return -ESRCH;
        *ret_credentials = (struct peer_credentials){
                .pid = ucred.pid,
                .uid = ucred.uid,
                .start_time = start_time,
        };
        return 0;
}

/* A login session's scope holds a whole terminal: the processes in it are told apart by their executables. */
static bool is_session(const char *unit) {
        return fnmatch("session-*.scope", unit, 0) == 0;
}

int unit_of_cgroup(const char *path, const char *own_path, struct process_unit *ret_unit) {
        struct mg_unit_name name;
        int r = unit_name_from_cgroup(path, &name);

        if (r < 0)
                return r;
        if (is_session(name.unit) || name.path_length >= sizeof(ret_unit->path))
                return -ENXIO;
        memcpy(ret_unit->path, path, name.path_length);
        ret_unit->path[name.path_length] = '\0';
        if (mg_streq(ret_unit->path, own_path))
                return -ENXIO;
        memcpy(ret_unit->name, name.unit, sizeof(ret_unit->name));
        ret_unit->user = name.user;
        ret_unit->user_uid = name.user_uid;
        return 0;
}

static void name_pseudo_unit(pid_t pid, uid_t uid, struct process_unit *ret_unit) {
        char executable[4096];

        if (proc_exe("/proc", pid, executable, sizeof(executable)) < 0 &&
            proc_comm("/proc", pid, executable, sizeof(executable)) < 0)
                snprintf(executable, sizeof(executable), "unknown");
        unit_name_for_process(executable, uid, getuid(), ret_unit->name);
        ret_unit->path[0] = '\0';
        ret_unit->user = false;
        ret_unit->user_uid = uid;
}

int unit_of_process(pid_t pid, uid_t uid, const char *own_path, struct process_unit *ret_unit) {
        char path[UNIT_PATH_MAX];
        int r = proc_cgroup_path("/proc", pid, path, sizeof(path));

        if (r == -ESRCH)
                return r;
        if (r < 0 || unit_of_cgroup(path, own_path, ret_unit) < 0)
                name_pseudo_unit(pid, uid, ret_unit);
        return 0;
}
