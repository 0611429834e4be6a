/* SPDX-License-Identifier: MIT */
/* The pager, chosen as systemd's tools choose it: $SYSTEMD_PAGER, $PAGER, less, more, none. Layer: ctl. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

static pid_t pager_pid;

/* What the user wants; NULL: did not say. */
static const char *pager_command(void) {
        return getenv("SYSTEMD_PAGER") ?: getenv("PAGER");
}

static bool is_unwanted(const char *command) {
        return command && (mg_streq(command, "") || mg_streq(command, "cat"));
}

static bool is_not_found(int status) {
        return status < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127);
}

/* Where there is no pager at all. */
static void pass_on(int input_fd) {
        char bytes[4096];
        ssize_t n;

        while ((n = read(input_fd, bytes, sizeof(bytes))) > 0)
                (void) fwrite(bytes, 1, (size_t) n, stdout);
        (void) fflush(stdout);
}

static _Noreturn void run_pager(const char *command, int input_fd) {
        dup2(input_fd, STDIN_FILENO);
        /* Quit when it fits on one screen, keep colours, leave the screen as it was. */
        setenv("LESS", getenv("SYSTEMD_LESS") ?: "FRSXMK", 1);
        setenv("LESSCHARSET", getenv("SYSTEMD_LESSCHARSET") ?: "utf-8", 1);
        if (command && !is_not_found(system(command)))
                _exit(EXIT_SUCCESS);
        execlp("less", "less", (char *) NULL);
        execlp("more", "more", (char *) NULL);
        pass_on(input_fd);
        _exit(EXIT_SUCCESS);
}

void pager_open(void) {
        MG_CLEANUP(file_closep) int read_fd = -EBADF;
        MG_CLEANUP(file_closep) int write_fd = -EBADF;
        const char *command = pager_command();
        int ends[2];

        if (pager_pid > 0 || ctl_options.no_pager || is_unwanted(command) || !isatty(STDOUT_FILENO))
                return;
        if (colors_enabled())
                setenv("SYSTEMD_COLORS", "1", 1); /* the pipe is no terminal, the reader is */
        if (pipe(ends) < 0)
                return;
        read_fd = ends[0];
        write_fd = ends[1];
        pager_pid = fork();
        if (pager_pid == 0) {
                file_closep(&write_fd);
                run_pager(command, read_fd);
        }
        if (pager_pid < 0)
                return;
        signal(SIGPIPE, SIG_IGN);
        dup2(write_fd, STDOUT_FILENO);
}

int pager_close(void) {
        bool written = fflush(stdout) == 0 && !ferror(stdout);

        if (pager_pid <= 0) {
                if (!written)
                        fputs("memguardctl: cannot write the result\n", stderr);
                return written ? CTL_OK : CTL_FAILED;
        }
        close(STDOUT_FILENO);
        while (waitpid(pager_pid, NULL, 0) < 0 && errno == EINTR)
                ;
        pager_pid = 0;
        return CTL_OK;
}
