/* SPDX-License-Identifier: MIT */
/* The agent's own thread. Layer: agent; no allocation. */
#include "agent/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/statfs.h>
#include <time.h>

#include "agent/backend.h"
#include "agent/client.h"
#include "agent/peek.h"
#include "agent/process.h"
#include "agent/system.h"
#include "base/file.h"
#include "base/macros.h"

#define WAKE_SIGNAL        SIGURG
#define READY_TIMEOUT_USEC (100 * MG_USEC_PER_MSEC)
#define STOP_POLL_USEC     50
#define LOWEST_OWN_FD      3

/* While the descriptor cannot be waited for. */
#define SHORT_POLL_USEC (250 * MG_USEC_PER_MSEC)

/* close_range() copies at most so many descriptors of the old table before it closes them (NR_OPEN_DEFAULT). */
#define COPIED_DESCRIPTORS 64
#define MQUEUE_MAGIC       0x19800202

#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2U
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

enum phase {
        PHASE_NONE,
        PHASE_STARTING,
        PHASE_READY,
        PHASE_ENDED,
};

static struct {
        _Atomic(uint32_t) phase; /* a futex */
        _Atomic(int) tid;
        _Atomic(int) end;
        _Atomic(uint32_t) stop; /* a futex */
        const struct mg_thread_setup *setup;
        struct mg_client client;
        size_t tls_bytes;
        int signal_fd;
        bool is_signal_foreign; /* one of the program's own is pending */
} agent = { .signal_fd = -EBADF, .client = { .socket_fd = -EBADF } };

static void set_phase(enum phase phase) {
        atomic_store(&agent.phase, phase);
        syscall(SYS_futex, &agent.phase, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool thread_is_running(void) {
        uint32_t phase = atomic_load(&agent.phase);
        return phase == PHASE_STARTING || phase == PHASE_READY;
}

bool thread_is_current(void) {
        return thread_is_running() && atomic_load(&agent.tid) == system_gettid();
}

enum mg_thread_end thread_end(void) {
        return (enum mg_thread_end) atomic_load(&agent.end);
}

void thread_after_fork(void) {
        client_forget(&agent.client);
        agent.signal_fd = -EBADF;
        process_files_forget();
        peek_forget();
        atomic_store(&agent.phase, PHASE_NONE);
        atomic_store(&agent.tid, 0);
        atomic_store(&agent.stop, 0);
        atomic_store(&trim_must_stop, false);
}

/* Closing a copy of a message queue's descriptor would cancel the notification that the program waits for. */
static bool has_message_queue(void) {
        for (int fd = 0; fd < COPIED_DESCRIPTORS; fd++) {
                struct statfs info;
                if (fstatfs(fd, &info) == 0 && info.f_type == MQUEUE_MAGIC)
                        return true;
        }
        return false;
}

/*
 * A table of its own, or no agent: in the program's table a number can be closed and reused between any look and the use
 * of it, and what the agent closes then is the program's (seen with a program that closes and reopens all the time).
 */
static int leave_table(void) {
        if (agent.setup->spare_message_queues && has_message_queue())
                return -EBUSY;
        return syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE) < 0 ? -errno : 0;
}

static int open_signal_fd(void) {
        sigset_t wake;

        sigemptyset(&wake);
        sigaddset(&wake, WAKE_SIGNAL);
        int fd = signalfd(-1, &wake, SFD_CLOEXEC);
        return process_lift_fd(fd < 0 ? -errno : fd, LOWEST_OWN_FD);
}

static int set_up(void) {
        /* Past the wrapper: naming a thread changes no rights. */
        syscall(SYS_prctl, PR_SET_NAME, "memguard", 0, 0, 0);
        int r = leave_table();
        if (r < 0)
                return r;
        r = process_files_open(true);
        if (r < 0)
                return r;
        agent.signal_fd = open_signal_fd();
        if (agent.signal_fd < 0)
                return agent.signal_fd;
        peek_open();
        client_init(&agent.client, agent.setup->settings, agent.setup->mode, process_now_usec());
        return 0;
}

/*
 * A filter has come over this thread too, and the next kind of call could kill the program. What remains is to let the daemon
 * know by closing, and to wait on a futex, which every program with threads needs itself, to be asked to end.
 */
static void park(void) {
        close(agent.client.socket_fd);
        agent.client.socket_fd = -EBADF;
        while (!atomic_load(&agent.stop))
                syscall(SYS_futex, &agent.stop, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

/* Whether to go on. Asked to end, the thread only tells whether another one may follow. */
static bool check_rights(bool was_asked) {
        char *main_status = process_text[0], *own_status = process_text[1];
        enum mg_rights rights = MG_RIGHTS_UNREADABLE;

        if (process_file_read(MG_PROCESS_OWN_STATUS, own_status, MG_PROCESS_FILE_BYTES) > 0 &&
            process_file_read(MG_PROCESS_MAIN_STATUS, main_status, MG_PROCESS_FILE_BYTES) > 0)
                rights = rights_compare(main_status, own_status, &agent.setup->baseline);
        switch (rights) {
        case MG_RIGHTS_EQUAL:
                return !was_asked;
        case MG_RIGHTS_SECCOMP_STRICTER:
                atomic_store(&agent.end, MG_THREAD_END_SECCOMP);
                if (!was_asked)
                        park();
                return false;
        case MG_RIGHTS_MAIN_FILTERED:
                atomic_store(&agent.end, MG_THREAD_END_SECCOMP);
                return false;
        case MG_RIGHTS_DIFFER:
                /* One that follows now inherits what the program has left. */
                if (!was_asked)
                        atomic_store(&agent.end, MG_THREAD_END_RIGHTS);
                return false;
        case MG_RIGHTS_UNREADABLE:
        case _MG_RIGHTS_MAX:
                break;
        }
        atomic_store(&agent.end, MG_THREAD_END_FAILED);
        return false;
}

/*
 * The descriptor also tells of a SIGURG sent to the whole process, and a read would take it from the program, which may be
 * waiting for it. So it is read only when one is pending for this thread alone; that one the kernel hands out first.
 */
static bool take_own_signal(void) {
        char *status = process_text[1];
        struct signalfd_siginfo info;

        return process_file_read(MG_PROCESS_OWN_STATUS, status, MG_PROCESS_FILE_BYTES) > 0 &&
               rights_has_own_pending(status, WAKE_SIGNAL) &&
               read(agent.signal_fd, &info, sizeof(info)) == sizeof(info);
}

static void wait_for_work(uint64_t timeout_usec) {
        /* While one of the program's is pending, the descriptor is ready all the time: then look now and again. */
        bool watches_signal = !agent.is_signal_foreign;
        struct pollfd polled[2] = { { .fd = agent.client.socket_fd, .events = POLLIN },
                                    { .fd = watches_signal ? agent.signal_fd : -1,
                                      .events = POLLIN } };
        if (!watches_signal)
                timeout_usec = MG_MIN(timeout_usec, SHORT_POLL_USEC);
        struct timespec timeout = { .tv_sec = (time_t) (timeout_usec / MG_USEC_PER_SEC),
                                    .tv_nsec = (long) (timeout_usec % MG_USEC_PER_SEC) * 1000 };

        int n = ppoll(polled, MG_ELEMENTS(polled), timeout_usec == MG_UNKNOWN ? NULL : &timeout,
                      NULL);
        bool is_signal = n > 0 && (polled[1].revents & POLLIN);
        agent.is_signal_foreign = is_signal && !take_own_signal();
}

static void serve_until_stopped(void) {
        uint64_t timeout = agent.setup->settings->delay_usec;

        while (!atomic_load(&agent.stop)) {
                wait_for_work(timeout);
                if (!check_rights(atomic_load(&agent.stop)))
                        return;
                while (!atomic_load(&agent.stop) &&
                       client_receive(&agent.client, process_now_usec()) > 0)
                        ;
                timeout = client_run(&agent.client, process_now_usec());
        }
        check_rights(true);
}

static void *thread_main(void *argument) {
        atomic_store(&agent.tid, system_gettid());
        if (set_up() < 0) {
                atomic_store(&agent.end, MG_THREAD_END_FAILED);
        } else {
                set_phase(PHASE_READY);
                serve_until_stopped();
        }
        client_close(&agent.client);
        process_files_close();
        peek_close();
        file_closep(&agent.signal_fd);
        set_phase(PHASE_ENDED);
        return NULL;
}

/* The thread-local storage of the program's objects lies on the thread's stack, beside what we need. */
static int add_tls(struct dl_phdr_info *info, size_t size, void *sum) {
        for (size_t i = 0; i < info->dlpi_phnum; i++)
                if (info->dlpi_phdr[i].p_type == PT_TLS)
                        *(size_t *) sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
        return 0;
}

void thread_measure_tls(void) {
        size_t tls = 0;

        dl_iterate_phdr(add_tls, &tls);
        agent.tls_bytes = tls;
}

static size_t choose_stack(size_t wanted) {
        long minimum = sysconf(_SC_THREAD_STACK_MIN);

        wanted += agent.tls_bytes + (minimum > 0 ? (size_t) minimum : 0);
        return (wanted + 0xffff) & ~(size_t) 0xffff;
}

static int create_thread(const struct mg_thread_setup *setup) {
        pthread_attr_t attributes;
        sigset_t all, saved;
        pthread_t thread;

        int r = pthread_attr_init(&attributes);
        if (r != 0)
                return -r;
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, choose_stack(setup->stack_bytes));
        sigfillset(&all);
        /* By the library's call, not by the system's: the two signals of its own must stay open, or setuid() hangs. */
        pthread_sigmask(SIG_SETMASK, &all, &saved);
        r = setup->create(&thread, &attributes, thread_main, NULL);
        pthread_sigmask(SIG_SETMASK, &saved, NULL);
        pthread_attr_destroy(&attributes);
        return -r;
}

static void wait_while_starting(void) {
        uint64_t deadline = process_now_usec() + READY_TIMEOUT_USEC;

        while (atomic_load(&agent.phase) == PHASE_STARTING) {
                uint64_t now = process_now_usec();
                if (now >= deadline)
                        break;
                struct timespec left = { .tv_nsec = (long) (deadline - now) * 1000 };
                syscall(SYS_futex, &agent.phase, FUTEX_WAIT_PRIVATE, PHASE_STARTING, &left, NULL,
                        0);
        }
}

int thread_start(const struct mg_thread_setup *setup) {
        if (thread_is_running())
                return 0;
        agent.setup = setup;
        atomic_store(&agent.stop, 0);
        atomic_store(&trim_must_stop, false);
        atomic_store(&agent.tid, 0);
        atomic_store(&agent.end, MG_THREAD_END_ASKED);
        atomic_store(&agent.phase, PHASE_STARTING);
        int r = create_thread(setup);
        if (r < 0) {
                atomic_store(&agent.phase, PHASE_NONE);
                return r;
        }
        if (!setup->is_forked)
                wait_while_starting();
        return 0;
}

void thread_wake(void) {
        int tid = atomic_load(&agent.tid);

        if (thread_is_running() && tid > 0)
                syscall(SYS_tgkill, system_getpid(), tid, WAKE_SIGNAL);
}

/* The thread is gone when the kernel no longer knows it: only then does unshare(CLONE_NEWUSER) succeed. */
static bool is_gone(void) {
        int tid = atomic_load(&agent.tid);

        if (atomic_load(&agent.phase) == PHASE_NONE)
                return true;
        return tid > 0 && syscall(SYS_tgkill, system_getpid(), tid, 0) < 0 && errno == ESRCH;
}

int thread_stop(uint64_t timeout_usec) {
        const struct timespec pause = { .tv_nsec = STOP_POLL_USEC * 1000 };
        uint64_t deadline = process_now_usec() + timeout_usec;

        atomic_store(&agent.stop, 1);
        atomic_store(&trim_must_stop, true);
        syscall(SYS_futex, &agent.stop, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        thread_wake();
        while (!is_gone()) {
                if (process_now_usec() >= deadline)
                        return -ETIMEDOUT;
                nanosleep(&pause, NULL);
                if (thread_is_running() && atomic_load(&agent.tid) == 0)
                        wait_while_starting();
        }
        atomic_store(&agent.phase, PHASE_NONE);
        atomic_store(&trim_must_stop, false);
        return 0;
}
