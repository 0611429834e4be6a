/* SPDX-License-Identifier: MIT */
/*
 * Starting and ending the programs of a run: each in a session of its own (Ctrl-C is the harness's), killed when the harness dies,
 * with its output in a pipe. Layer: replay.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* In the environment of all that is started, so that what lost its parent can still be told apart. */
#define REPLAY_PROGRAM_MARK "MEMGUARD_REPLAY=program"
#define REPLAY_LOAD_MARK    "MEMGUARD_REPLAY=load"

struct child {
        pid_t pid;     /* 0: there is none (any more) */
        int output_fd; /* reading end, not blocking; -EBADF: no pipe */
        int go_fd;     /* writing end: the child waits for it before it executes anything */
        int error_fd;  /* tells the errno of an exec that failed */
};

#define CHILD_NONE \
        { .output_fd = -EBADF, .go_fd = -EBADF, .error_fd = -EBADF }

struct child_request {
        char *const *argv;
        char *const *environment; /* NAME=VALUE, on top of the harness's own */
        size_t n_environment;
        const char *preload; /* joins what LD_PRELOAD has; NULL: nothing */
        int output_fd;       /* where its output goes, -EBADF: into a pipe of its own */
        sigset_t signals;    /* its signal mask */
};

/* The child is there and waits. */
int child_prepare(const struct child_request *request, struct child *ret_child);

/* Lets it execute its program. -ENOENT, -EACCES ...: it could not, and has ended. */
int child_go(struct child *child);

/* Closes what the harness has of it; the process is the caller's to end. */
void child_close(struct child *child);

/* To its whole process group; nothing to one that is gone. */
void child_signal(const struct child *child, int signal);
