/* SPDX-License-Identifier: MIT */
/*
 * System calls made directly, past the wrappers of the preload object and past symbols that not every libc
 * has. Layer: agent.
 */
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int system_gettid(void) {
        return (int) syscall(SYS_gettid);
}

/* The kernel's answer: a vfork() child shares our memory but not our pid. */
static inline int system_getpid(void) {
        return (int) syscall(SYS_getpid);
}

/* A second descriptor for FD at a number of at least MINIMUM. (fcntl64 is a name that musl lacks.) */
static inline int system_duplicate_above(int fd, int minimum) {
        return (int) syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, minimum);
}
