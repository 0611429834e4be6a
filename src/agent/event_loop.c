/* SPDX-License-Identifier: MIT */
/* The agent without a thread. Layer: agent; no allocation. */
#include "agent/event_loop.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/client.h"
#include "agent/hooks.h"
#include "agent/process.h"
#include "base/file.h"
#include "base/macros.h"

static struct {
        struct mg_client client;
        int epoll_fd;
        int timer_fd;
        _Atomic(int) wake_fd;
        _Atomic(int) wakers;         /* threads that are about to write to it */
        uint64_t watched_connection; /* that epoll was told of; closing a socket takes it out by itself */
        atomic_bool is_busy;         /* a thread is in loop_dispatch() */
} loop = { .epoll_fd = -EBADF, .timer_fd = -EBADF, .wake_fd = -EBADF };

static int watch(int fd) {
        struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
        return epoll_ctl(loop.epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* From any thread of the program: the descriptor must not be closed, and its number reused, in between. */
static void wake(void) {
        const uint64_t one = 1;

        atomic_fetch_add(&loop.wakers, 1);
        int fd = atomic_load(&loop.wake_fd);
        if (fd >= 0) {
                ssize_t n = write(fd, &one, sizeof(one));
                (void) n; /* full: it is awake */
        }
        atomic_fetch_sub(&loop.wakers, 1);
}

static void close_wake_fd(void) {
        const struct timespec pause = { .tv_nsec = 50000 };
        int fd = atomic_exchange(&loop.wake_fd, -EBADF);

        while (atomic_load(&loop.wakers) > 0)
                nanosleep(&pause, NULL);
        file_closep(&fd);
}

static void arm_timer(uint64_t timeout_usec) {
        struct itimerspec timer = { 0 };

        /* All zero would disarm it. */
        if (timeout_usec != MG_UNKNOWN) {
                timer.it_value.tv_sec = (time_t) (timeout_usec / MG_USEC_PER_SEC);
                timer.it_value.tv_nsec = (long) (timeout_usec % MG_USEC_PER_SEC) * 1000 + 1;
        }
        timerfd_settime(loop.timer_fd, 0, &timer, NULL);
}

static void close_all(void) {
        file_closep(&loop.epoll_fd);
        file_closep(&loop.timer_fd);
        close_wake_fd();
}

static int open_all(void) {
        loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        loop.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        loop.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (loop.epoll_fd < 0 || loop.timer_fd < 0 || loop.wake_fd < 0)
                return -errno;
        int r = watch(loop.timer_fd);
        return r < 0 ? r : watch(loop.wake_fd);
}

int loop_open(const struct mg_settings *settings) {
        if (loop.epoll_fd >= 0)
                return -EBUSY;
        int r = open_all();
        if (r < 0) {
                close_all();
                return r;
        }
        process_files_open(false);
        client_init(&loop.client, settings, "event-loop", process_now_usec());
        loop.client.shared_table = true;
        loop.watched_connection = 0;
        hooks_set_wake(wake);
        arm_timer(settings->delay_usec);
        return 0;
}

int loop_get_fd(void) {
        return loop.epoll_fd < 0 ? -EBADF : loop.epoll_fd;
}

static void drain(int fd) {
        uint64_t count;
        ssize_t n = read(fd, &count, sizeof(count));
        (void) n; /* nothing there is as good */
}

static void watch_socket(void) {
        if (loop.client.socket_fd < 0 || loop.client.connection == loop.watched_connection)
                return;
        loop.watched_connection = loop.client.connection;
        if (watch(loop.client.socket_fd) < 0)
                client_close(&loop.client);
}

int loop_dispatch(void) {
        uint64_t connection = loop.client.connection;
        int handled = 0;

        if (loop.epoll_fd < 0)
                return -EBADF;
        if (hooks_is_in_callback() || atomic_exchange(&loop.is_busy, true))
                return -EBUSY;
        drain(loop.timer_fd);
        drain(loop.wake_fd);
        while (client_receive(&loop.client, process_now_usec()) > 0)
                handled = 1;
        arm_timer(client_run(&loop.client, process_now_usec()));
        watch_socket();
        atomic_store(&loop.is_busy, false);
        return handled || loop.client.connection != connection;
}

int loop_close(void) {
        if (loop.epoll_fd < 0)
                return 0;
        hooks_set_wake(NULL);
        client_close(&loop.client);
        close_all();
        return 0;
}

void loop_after_fork(void) {
        if (loop.epoll_fd < 0)
                return;
        atomic_store(&loop.wakers, 0);
        client_forget(&loop.client);
        close_all();
        hooks_set_wake(NULL);
        atomic_store(&loop.is_busy, false);
}
