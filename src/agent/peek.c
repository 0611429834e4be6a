/* SPDX-License-Identifier: MIT */
/* Reading memory that may vanish. Layer: agent; no allocation. */
#include "agent/peek.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/process.h"
#include "base/file.h"
#include "base/macros.h"

#define LOWEST_OWN_FD 3

static int pipe_fd[2] = { -EBADF, -EBADF };

int peek_open(void) {
        int fd[2];

        if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        pipe_fd[0] = process_lift_fd(fd[0], LOWEST_OWN_FD);
        pipe_fd[1] = process_lift_fd(fd[1], LOWEST_OWN_FD);
        if (pipe_fd[0] >= 0 && pipe_fd[1] >= 0)
                return 0;
        peek_close();
        return -EMFILE;
}

void peek_close(void) {
        file_closep(&pipe_fd[0]);
        file_closep(&pipe_fd[1]);
}

void peek_forget(void) {
        pipe_fd[0] = -EBADF;
        pipe_fd[1] = -EBADF;
}

bool peek_read(uintptr_t address, void *buffer, size_t size) {
        if (pipe_fd[0] < 0 || pipe_fd[1] < 0 || size > MG_PEEK_MAX)
                return false;
        ssize_t written = write(pipe_fd[1], (const void *) address, size);
        if (written < 0)
                return false;
        /* What was copied up to an unmapped page must come out again, too. */
        return read(pipe_fd[0], buffer, (size_t) written) == written && (size_t) written == size;
}
