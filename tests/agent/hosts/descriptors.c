/* SPDX-License-Identifier: MIT */
/* Hosts that treat every descriptor number as theirs. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY 64

static void close_everything(void) {
        for (int fd = 3; fd < 5000; fd++)
                close(fd);
}

/* Own sockets on all low numbers: nothing may arrive on them, and nothing sent be lost. */
static int run_close_all(void) {
        int pair[MANY][2], strangers = 0, lost = 0;

        host_start_allocating();
        for (int round = 0; round < 20; round++) {
                close_everything();
                for (int i = 0; i < MANY; i++)
                        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair[i]) < 0)
                                return 1;
                host_pause(50);
                for (int i = 0; i < MANY; i++) {
                        char buffer[4096];
                        strangers += recv(pair[i][0], buffer, sizeof(buffer), 0) != -1 ||
                                     errno != EAGAIN;
                        strangers += recv(pair[i][1], buffer, sizeof(buffer), 0) != -1 ||
                                     errno != EAGAIN;
                        lost += send(pair[i][0], "x", 1, 0) != 1 ||
                                recv(pair[i][1], buffer, sizeof(buffer), 0) != 1;
                }
        }
        printf("first %d, strangers %d, lost %d\n", pair[0][0], strangers, lost);
        return strangers + lost;
}

/* How many descriptors there are for the program. */
static int run_fill_table(void) {
        struct rlimit limit = { 40, 40 };
        int n = 0;

        host_work(300);
        setrlimit(RLIMIT_NOFILE, &limit);
        while (open("/dev/null", O_RDONLY) >= 0)
                n++;
        host_pause(700);
        printf("opened %d, then %s\n", n, strerror(errno));
        return n == 37 ? 0 : 1;
}

/* Closing 0, 1 and 2 must not make the agent's socket one of them. */
static int run_close_standard(void) {
        int out = dup(1);

        close(0);
        close(1);
        close(2);
        host_work(500);
        int first = open("/dev/null", O_RDWR), second = open("/dev/null", O_RDWR),
            third = open("/dev/null", O_RDWR);
        dprintf(1, "into the void");
        dup2(out, 1);
        printf("got %d %d %d\n", first, second, third);
        return first == 0 && second == 1 && third == 2 ? 0 : 1;
}

static volatile sig_atomic_t notified;

static void on_notify(int signal_number) {
        notified = 1;
}

/* A message queue's notification belongs to the process: closing a copy of its descriptor would cancel it. */
static int run_mqueue(void) {
        struct mq_attr attributes = { .mq_maxmsg = 4, .mq_msgsize = 16 };
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
        char name[64];

        snprintf(name, sizeof(name), "/memguard-test-%d", (int) getpid());
        mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
        if (queue == (mqd_t) -1)
                return 77;
        mq_unlink(name);
        signal(SIGUSR1, on_notify);
        mq_notify(queue, &event);
        host_work(700);
        mq_send(queue, "hello", 5, 0);
        host_pause(100);
        printf("notified %d\n", (int) notified);
        return notified ? 0 : 1;
}

/* What a later exec would inherit: nothing of ours. */
static int run_list_for_exec(void) {
        host_work(500);
        fflush(stdout);
        execl("/bin/sh", "sh", "-c", "ls /proc/self/fd | wc -l", (char *) NULL);
        return 1;
}

const struct host_case descriptor_cases[] = {
        { "close-all", run_close_all },           { "fill-table", run_fill_table },
        { "close-standard", run_close_standard }, { "mqueue", run_mqueue },
        { "list-for-exec", run_list_for_exec },   { NULL, NULL },
};
