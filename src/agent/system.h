/* SPDX-License-Identifier: MIT */
/*
 * System calls made directly, past the wrappers of the preload object and past symbols that not every libc
 * has. Layer: agent.
 */
#pragma once

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int system_gettid(void) {
        return (int) syscall(SYS_gettid);
}

/* The kernel's answer: a vfork() child shares our memory but not our pid. */
static inline int system_getpid(void) {
        return (int) syscall(SYS_getpid);
}
