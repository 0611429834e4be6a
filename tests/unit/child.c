/* SPDX-License-Identifier: MIT */
/* Children for the tests that look at processes. */
#include "child.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

const char *child_path(const char *program) {
        static char path[512];

        if (program[0] == '/')
                snprintf(path, sizeof(path), "%s", program);
        else
                snprintf(path, sizeof(path), "%s/%s", getenv("TEST_PROGRAMS"), program);
        return path;
}

static void become(const char *path, const char *const *arguments, const char *const *environment) {
        static const char *const nothing[] = { NULL };
        char *argv[8] = { (char *) path };

        for (size_t i = 0; arguments && arguments[i] && i < 6; i++)
                argv[i + 1] = (char *) arguments[i];
        execve(path, argv, (char *const *) (environment ? environment : nothing));
        _exit(127);
}

struct child child_start(
                const char *program,
                const char *const *arguments,
                const char *const *environment) {
        int in[2], out[2];
        char ready[8] = "";

        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
                int null = open("/dev/null", O_WRONLY);
                dup2(in[0], STDIN_FILENO);
                dup2(out[1], STDOUT_FILENO);
                dup2(null, STDERR_FILENO); /* the loader's complaints */
                become(child_path(program), arguments, environment);
        }
        assert_true(pid > 0);
        close(in[0]);
        close(out[1]);
        ssize_t n = read(out[0], ready, sizeof(ready) - 1);
        close(out[0]);
        if (n != 6)
                fail_msg("%s did not start", program);
        return (struct child){ .pid = pid, .stdin_fd = in[1] };
}

void child_stop(struct child *child) {
        close(child->stdin_fd);
        assert_int_equal(waitpid(child->pid, NULL, 0), child->pid);
}
