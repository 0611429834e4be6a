/* SPDX-License-Identifier: MIT */
/*
 * C12: programs that an agent cannot serve, one a word: each does its own thing, says "phase idle" and waits for its end.
 *
 *   threads       nothing: an ordinary program that makes a thread
 *   single        never makes a thread
 *   filtered      forbids itself socket(2) and connect(2) by a filter, then makes a thread
 *   closes        makes a thread, lets the agent come, closes every descriptor but its own three
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *idle(void *unused) {
        for (;;)
                pause();
        return unused;
}

static int make_thread(void) {
        pthread_t thread;

        return pthread_create(&thread, NULL, idle, NULL);
}

static int forbid_sockets(void) {
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = 5, .filter = filter };

        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
                               ? -1
                               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int close_everything(void) {
        sleep(2);
        for (int fd = 3; fd < 1024; fd++)
                close(fd);
        return 0;
}

int main(int argc, char **argv) {
        const char *what = argc > 1 ? argv[1] : "threads";

        if (strcmp(what, "filtered") == 0 && forbid_sockets() < 0)
                return 1;
        if (strcmp(what, "single") != 0 && make_thread() != 0)
                return 1;
        if (strcmp(what, "closes") == 0 && close_everything() != 0)
                return 1;
        puts("phase idle");
        fflush(stdout);
        for (;;)
                pause();
}
