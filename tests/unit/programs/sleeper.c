/* SPDX-License-Identifier: MIT */
/*
 * A program to be looked at: does what its arguments say ("thread", "seccomp"), says "ready" and waits until its
 * standard input ends.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *idle(void *unused) {
        for (;;)
                pause();
        return unused;
}

static int allow_everything(void) {
        struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        struct sock_fprog program = { .len = 1, .filter = &allow };

        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
                               ? -1
                               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv) {
        pthread_t thread;
        char c;

        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "thread") == 0 &&
                    pthread_create(&thread, NULL, idle, NULL) != 0)
                        return 1;
                if (strcmp(argv[i], "seccomp") == 0 && allow_everything() < 0)
                        return 1;
        }
        if (write(STDOUT_FILENO, "ready\n", 6) != 6)
                return 1;
        while (read(STDIN_FILENO, &c, 1) > 0)
                ;
        return 0;
}
