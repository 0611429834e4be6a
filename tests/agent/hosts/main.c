/* SPDX-License-Identifier: MIT */
/* Runs the case named by the first argument. */
#include "host.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void host_pause(unsigned msec) {
        struct timespec left = { .tv_sec = msec / 1000, .tv_nsec = (long) (msec % 1000) * 1000000 };

        while (nanosleep(&left, &left) < 0 && errno == EINTR)
                ;
}

static void *allocate(void *argument) {
        unsigned seed = 1;

        for (;;) {
                size_t size = 1 + (size_t) rand_r(&seed) % 60000;
                char *block = malloc(size);
                if (block) {
                        memset(block, 1, size);
                        free(block);
                }
        }
        return NULL;
}

int host_start_allocating(void) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, allocate, NULL) != 0)
                return 1;
        pthread_detach(thread);
        return 0;
}

void host_work(unsigned msec) {
        if (host_start_allocating() != 0)
                puts("no thread");
        host_pause(msec);
}

int host_wait(int pid) {
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return 255;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void filter_call(unsigned number, unsigned action) {
        const struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, action),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = { 4, (struct sock_filter *) filter };

        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* As on a kernel before 5.9. */
static void forbid_close_range(void) {
        filter_call(SYS_close_range, SECCOMP_RET_ERRNO | ENOSYS);
}

/* As SystemCallFilter= does to a service: whoever calls is killed. */
static void kill_socket(void) {
        filter_call(SYS_socket, SECCOMP_RET_KILL_PROCESS);
}

static void kill_clone(void) {
        filter_call(SYS_clone, SECCOMP_RET_KILL_PROCESS);
}

static void kill_prctl(void) {
        filter_call(SYS_prctl, SECCOMP_RET_KILL_PROCESS);
}

static void kill_close_range(void) {
        filter_call(SYS_close_range, SECCOMP_RET_KILL_PROCESS);
}

static void kill_signalfd(void) {
        filter_call(SYS_signalfd4, SECCOMP_RET_KILL_PROCESS);
}

/* One for the loader to read libraries by, and no other. */
static void leave_one_descriptor(void) {
        const struct rlimit limit = { 4, 4 };

        setrlimit(RLIMIT_NOFILE, &limit);
}

/* For the program and all that it executes, from its first instruction on. */
static const struct {
        const char *name;
        void (*impose)(void);
} worlds[] = {
        { "no-close-range", forbid_close_range },
        { "kill-socket", kill_socket },
        { "kill-clone", kill_clone },
        { "kill-prctl", kill_prctl },
        { "kill-close-range", kill_close_range },
        { "kill-signalfd", kill_signalfd },
        { "one-descriptor", leave_one_descriptor },
};

static host_case_fn find_case(const char *name) {
        const struct host_case *const tables[] = { descriptor_cases, process_cases, rights_cases,
                                                   limit_cases };

        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
                for (const struct host_case *entry = tables[i]; entry->name; entry++)
                        if (strcmp(entry->name, name) == 0)
                                return entry->run;
        return NULL;
}

int main(int argc, char **argv) {
        for (size_t i = 0; argc > 2 && i < sizeof(worlds) / sizeof(worlds[0]); i++) {
                if (strcmp(argv[1], worlds[i].name) != 0)
                        continue;
                worlds[i].impose();
                execv("/proc/self/exe", argv + 1);
        }
        host_case_fn run = argc > 1 ? find_case(argv[1]) : NULL;

        if (!run) {
                fputs("no such case\n", stderr);
                return 2;
        }
        int r = run();
        fflush(stdout);
        return r;
}
