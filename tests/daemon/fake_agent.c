/* SPDX-License-Identifier: MIT */
/* Scripted agents; see fake_agent.h. */
#include "fake_agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t) 1 << 20)

#define HELLO                                                                           \
        "VERB=hello\nPROTOCOL=1\nHEAPS=1\nMODE=linked\nVERSION=0.1.0\nCAN=stats,trim\n" \
        "BASE_BYTES=0\nSTATS_COST_USEC=1\nSTATS_COST_BYTES=1048576\n"                   \
        "HEAP0_ALLOCATOR=glibc\nHEAP0_VERSION=2.36\nHEAP0_CAN=stats,trim\nHEAP0_SERVES_MALLOC=1\n"

struct child {
        int fd;
        enum fake_behaviour behaviour;
        char *memory;
        size_t bytes;
        char request[4097];
};

int fake_connect(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
        while (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                if (errno != EAGAIN && errno != EINTR) {
                        int error = errno;

                        close(fd);
                        return -error;
                }
        return fd;
}

int fake_send(int fd, const char *text) {
        return send(fd, text, strlen(text), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fake_hello(int fd) {
        return fake_send(fd, HELLO);
}

static unsigned long id_of(const struct child *child) {
        const char *id = strstr(child->request, "\nID=");

        return id ? strtoul(id + strlen("\nID="), NULL, 10) : 0;
}

static void reply(struct child *child, const char *verb, const char *rest) {
        char text[4096];
        unsigned long id = id_of(child);

        if (child->behaviour == FAKE_FOREIGN_ID)
                id += 1000;
        snprintf(text, sizeof(text), "VERB=%s\nID=%lu\n%s", verb, id, rest);
        (void) fake_send(child->fd, text);
        if (child->behaviour == FAKE_TWICE)
                (void) fake_send(child->fd, text);
}

static void serve_stats(struct child *child) {
        char text[512];
        unsigned long long live = child->bytes > 0 ? 4096 : 8192;

        if (child->behaviour == FAKE_LIES) {
                reply(child, "stats-reply",
                      "RESULT=done\nHEAPS=1\nSTATS_COST_USEC=18446744073709551000\nHEAP0_ALLOCATOR=glibc\n"
                      "HEAP0_LIVE_BYTES=0\nHEAP0_SYSTEM_BYTES=18446744073709551000\n"
                      "HEAP0_FREEABLE_BYTES=18446744073709551000\nHEAP0_FREE_CHUNKS=18446744073709551000\n");
                return;
        }
        snprintf(text, sizeof(text),
                 "RESULT=done\nHEAPS=1\nSTATS_COST_USEC=1\nSTATS_COST_BYTES=%zu\nHEAP0_ALLOCATOR=glibc\n"
                 "HEAP0_LIVE_BYTES=%llu\nHEAP0_SYSTEM_BYTES=%zu\nHEAP0_FREEABLE_BYTES=%zu\nHEAP0_FREE_CHUNKS=1\n",
                 child->bytes + MIB, live, child->bytes + MIB, child->bytes);
        reply(child, "stats-reply", text);
}

static void serve_trim(struct child *child) {
        switch (child->behaviour) {
        case FAKE_HANGS:
                for (;;)
                        pause();
        case FAKE_VANISHES:
                _exit(0);
        case FAKE_LATE:
                sleep(6);
                break;
        case FAKE_LIES:
                reply(child, "trim-reply",
                      "RESULT=done\nBEFORE_BYTES=18446744073709551000\nAFTER_BYTES=0\n"
                      "DURATION_USEC=18446744073709551000\nPAUSE_USEC=18446744073709551000\n"
                      "MINOR_FAULTS=18446744073709551000\n");
                return;
        case FAKE_REFUSES:
                reply(child, "trim-reply", "RESULT=refused\nREASON=rights\n");
                return;
        case FAKE_GOOD:
        case FAKE_DEAF:
        case FAKE_TWICE:
        case FAKE_FOREIGN_ID:
        case _FAKE_BEHAVIOUR_MAX:
                break;
        }
        madvise(child->memory, child->bytes, MADV_DONTNEED);
        child->bytes = 0;
        reply(child, "trim-reply", "RESULT=done\nDURATION_USEC=1\nPAUSE_USEC=1\nMINOR_FAULTS=0\n");
}

static void serve(struct child *child) {
        for (;;) {
                ssize_t n = recv(child->fd, child->request, sizeof(child->request) - 1, 0);

                if (n <= 0)
                        return;
                child->request[n] = '\0';
                if (strstr(child->request, "VERB=stats\n"))
                        serve_stats(child);
                else if (strstr(child->request, "VERB=trim\n"))
                        serve_trim(child);
                else if (strstr(child->request, "VERB=ping\n"))
                        reply(child, "pong", "");
        }
}

static void run_child(const char *socket, enum fake_behaviour behaviour, size_t mib, int ready_fd) {
        struct child child = { .behaviour = behaviour, .bytes = mib * MIB };

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* The daemon's sockets came along through fork(): one more holder, and nobody would see a hang-up. */
        dup2(ready_fd, STDIN_FILENO);
        close_range(STDERR_FILENO + 1, ~0U, 0);
        if (mib > 0) {
                child.memory =
                                mmap(NULL, child.bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                memset(child.memory, 1, child.bytes);
        }
        child.fd = fake_connect(socket);
        if (child.fd < 0 || fake_hello(child.fd) < 0)
                _exit(1);
        (void) !write(STDIN_FILENO, "", 1);
        if (behaviour == FAKE_DEAF)
                for (;;)
                        pause();
        for (;;) {
                serve(&child);
                close(child.fd);
                while ((child.fd = fake_connect(socket)) < 0 || fake_hello(child.fd) < 0)
                        usleep(20000);
        }
}

struct fake_agent fake_start(const char *socket, enum fake_behaviour behaviour, size_t mib) {
        struct fake_agent agent;
        int ready[2];
        char byte;

        if (pipe(ready) < 0)
                abort();
        agent.pid = fork();
        if (agent.pid == 0) {
                close(ready[0]);
                run_child(socket, behaviour, mib, ready[1]);
        }
        close(ready[1]);
        if (agent.pid < 0 || read(ready[0], &byte, 1) != 1)
                abort();
        close(ready[0]);
        return agent;
}

void fake_stop(struct fake_agent *agent) {
        if (agent->pid <= 0)
                return;
        kill(agent->pid, SIGKILL);
        waitpid(agent->pid, NULL, 0);
        agent->pid = 0;
}
