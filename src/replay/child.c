/* SPDX-License-Identifier: MIT */
/* fork, a barrier, exec. Layer: replay. */
#include "replay/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/cleanup.h"

extern char **environ;

struct pipes {
        int output[2];
        int go[2];
        int error[2];
};

static void close_pipes(struct pipes *pipes) {
        file_closep(&pipes->output[0]);
        file_closep(&pipes->output[1]);
        file_closep(&pipes->go[0]);
        file_closep(&pipes->go[1]);
        file_closep(&pipes->error[0]);
        file_closep(&pipes->error[1]);
}

static int open_pipes(struct pipes *pipes, bool with_output) {
        *pipes = (struct pipes){ { -EBADF, -EBADF }, { -EBADF, -EBADF }, { -EBADF, -EBADF } };
        if ((with_output && pipe2(pipes->output, O_CLOEXEC) < 0) ||
            pipe2(pipes->go, O_CLOEXEC) < 0 || pipe2(pipes->error, O_CLOEXEC) < 0 ||
            (with_output && fcntl(pipes->output[0], F_SETFL, O_NONBLOCK) < 0)) {
                int error = errno;
                close_pipes(pipes);
                return -error;
        }
        return 0;
}

static bool has_name(const char *setting, const char *other) {
        size_t name = strcspn(setting, "=") + 1;
        return strncmp(setting, other, name) == 0;
}

static bool is_overridden(const struct child_request *request, const char *setting) {
        for (size_t i = 0; i < request->n_environment; i++)
                if (has_name(setting, request->environment[i]))
                        return true;
        return request->preload && has_name(setting, "LD_PRELOAD=");
}

/* The harness's environment, the request's on top. The strings stay with their owners, but for PRELOAD's. */
static char **make_environment(const struct child_request *request, char **ret_preload) {
        size_t n = 0;
        size_t at = 0;
        char **list;

        while (environ[n])
                n++;
        list = calloc(n + request->n_environment + 2, sizeof(*list));
        if (!list)
                return NULL;
        for (size_t i = 0; i < n; i++)
                if (!is_overridden(request, environ[i]))
                        list[at++] = environ[i];
        for (size_t i = 0; i < request->n_environment; i++)
                list[at++] = request->environment[i];
        if (!request->preload)
                return list;
        const char *before = getenv("LD_PRELOAD");
        if (asprintf(ret_preload, "LD_PRELOAD=%s%s%s", request->preload,
                     before && *before ? ":" : "", before ?: "") < 0) {
                free(list);
                *ret_preload = NULL;
                return NULL;
        }
        list[at++] = *ret_preload;
        return list;
}

static void fail_child(int error_fd, int error) {
        ssize_t n = write(error_fd, &error, sizeof(error));
        _exit(n == sizeof(error) ? 127 : 126);
}

static void become_program(
                const struct child_request *request,
                struct pipes *pipes,
                char **environment,
                pid_t harness) {
        int output = request->output_fd >= 0 ? request->output_fd : pipes->output[1];
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        char byte;

        file_closep(&pipes->go[1]); /* or the barrier would never see the harness die */
        if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != harness)
                _exit(126);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
            dup2(output, STDERR_FILENO) < 0)
                fail_child(pipes->error[1], errno);
        if (read(pipes->go[0], &byte, 1) != 1)
                _exit(126); /* called off */
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        sigprocmask(SIG_SETMASK, &request->signals, NULL);
        execvpe(request->argv[0], request->argv, environment);
        fail_child(pipes->error[1], errno);
}

int child_prepare(const struct child_request *request, struct child *ret_child) {
        MG_CLEANUP(freep) char *preload = NULL;
        MG_CLEANUP(freep) char **environment = make_environment(request, &preload);
        struct pipes pipes;
        pid_t harness = getpid();

        if (!environment)
                return -ENOMEM;
        int r = open_pipes(&pipes, request->output_fd < 0);
        if (r < 0)
                return r;
        pid_t pid = fork();
        if (pid < 0) {
                r = -errno;
                close_pipes(&pipes);
                return r;
        }
        if (pid == 0)
                become_program(request, &pipes, environment, harness);
        *ret_child = (struct child){
                .pid = pid,
                .output_fd = MG_TAKE_FD(pipes.output[0]),
                .go_fd = MG_TAKE_FD(pipes.go[1]),
                .error_fd = MG_TAKE_FD(pipes.error[0]),
        };
        close_pipes(&pipes);
        return 0;
}

int child_go(struct child *child) {
        int error = 0;
        ssize_t n;

        n = write(child->go_fd, "g", 1);
        file_closep(&child->go_fd);
        if (n != 1)
                return -EPIPE;
        do
                n = read(child->error_fd, &error, sizeof(error));
        while (n < 0 && errno == EINTR);
        file_closep(&child->error_fd);
        return n == sizeof(error) ? -error : 0;
}

void child_close(struct child *child) {
        file_closep(&child->output_fd);
        file_closep(&child->go_fd);
        file_closep(&child->error_fd);
}

void child_signal(const struct child *child, int signal) {
        if (child->pid <= 0)
                return;
        if (kill(-child->pid, signal) < 0)
                kill(child->pid, signal); /* not in its own group yet */
}
