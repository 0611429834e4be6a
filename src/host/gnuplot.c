/* SPDX-License-Identifier: MIT */
/* The script goes through a pipe. Layer: host. */
#include "host/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"

extern char **environ;

void gnuplot_put_text(FILE *script, const char *text) {
        fputc('\'', script);
        for (; *text != '\0'; text++) {
                unsigned char c = (unsigned char) *text;

                if (c == '\'')
                        fputc('\'', script);
                fputc(c < ' ' || c == 0x7f ? ' ' : c, script);
        }
        fputc('\'', script);
}

static int write_all(int fd, const char *text) {
        size_t left = strlen(text);

        while (left > 0) {
                ssize_t n = write(fd, text, left);
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n > 0) {
                        text += n;
                        left -= (size_t) n;
                }
        }
        return 0;
}

/* The caller's signal mask, and that it ignores SIGPIPE, shall not hold for gnuplot. */
static int start(int script_fd, int output_fd, pid_t *ret_pid) {
        char *argv[] = { (char *) "gnuplot", (char *) "-d", (char *) "-", NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none, defaults;

        sigemptyset(&none);
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGPIPE);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, script_fd, STDIN_FILENO);
        if (output_fd >= 0)
                posix_spawn_file_actions_adddup2(&actions, output_fd, STDOUT_FILENO);
        int r = posix_spawnp(ret_pid, "gnuplot", &actions, &attributes, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
        return -r;
}

static int wait_for(pid_t pid) {
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return status == 0 ? 0 : -EIO;
}

int gnuplot_run(const char *script, int output_fd) {
        MG_CLEANUP(file_closep) int read_fd = -EBADF;
        MG_CLEANUP(file_closep) int write_fd = -EBADF;
        int pipes[2];
        pid_t pid;

        if (pipe2(pipes, O_CLOEXEC) < 0)
                return -errno;
        read_fd = pipes[0];
        write_fd = pipes[1];
        /* A gnuplot that dies early shall not take its caller with it. */
        signal(SIGPIPE, SIG_IGN);
        int r = start(read_fd, output_fd, &pid);
        if (r < 0)
                return r;
        file_closep(&read_fd);
        int written = write_all(write_fd, script);
        file_closep(&write_fd);
        r = wait_for(pid);
        return r < 0 ? r : written == -EPIPE ? -EIO : written;
}
