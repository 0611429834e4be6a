/* SPDX-License-Identifier: MIT */
/*
 * Programs of tests/unit/programs as children that say "ready" and then wait.
 */
#pragma once

#include <sys/types.h>

struct child {
        pid_t pid;
        int stdin_fd;
};

/* PROGRAM is a name in the programs' directory, or a path. ENVIRONMENT NULL: empty. Fails the test where it does not start. */
struct child child_start(
                const char *program,
                const char *const *arguments,
                const char *const *environment);
void child_stop(struct child *child);

/* Its path; the buffer lasts until the next call. */
const char *child_path(const char *program);
