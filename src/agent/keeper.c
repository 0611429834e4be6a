/* SPDX-License-Identifier: MIT */
/* Decides when there is an agent thread. Layer: agent. */
#include "agent/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

#include "agent/heaps.h"
#include "agent/hooks.h"
#include "agent/process.h"
#include "agent/sandbox.h"
#include "agent/system.h"
#include "base/file.h"
#include "base/macros.h"

#define LOCK_TIMEOUT_USEC (2 * MG_USEC_PER_SEC)
#define STOP_TIMEOUT_USEC (2 * MG_USEC_PER_SEC)

/*
 * A program that changes its rights all the time is better off without an agent than with one that comes and goes. Dropping
 * a whole bounding set takes 41.
 */
#define MAX_RESTARTS 400

static struct {
        struct mg_settings settings;
        struct mg_thread_setup setup;
        _Atomic(int) owner_pid; /* 0: not initialised, or given up */
        _Atomic(int) lock_tid;
        atomic_bool is_wanted; /* somebody has asked for the thread */
        atomic_bool is_given_up;
        atomic_bool is_claimed; /* an event loop of the program's has the agent */
        atomic_bool is_sandbox_tried;
        atomic_bool may_have_queues; /* the program runs, and may have anything open */
        _Atomic(size_t) stack_bytes;
        _Atomic(int) restarts;
        pthread_key_t main_key;
        bool has_main_key;
} keeper;

bool keeper_is_ours(void) {
        return atomic_load(&keeper.owner_pid) == system_getpid();
}

/* False: the lock is ours already (a signal handler has come in between), or was not to be had in time. */
static bool take_lock(void) {
        const struct timespec pause = { .tv_nsec = 200000 };
        uint64_t deadline = process_now_usec() + LOCK_TIMEOUT_USEC;
        int own = system_gettid(), expected = 0;

        while (!atomic_compare_exchange_strong(&keeper.lock_tid, &expected, own)) {
                if (expected == own || process_now_usec() >= deadline)
                        return false;
                expected = 0;
                nanosleep(&pause, NULL);
        }
        return true;
}

static void drop_lock(void) {
        atomic_store(&keeper.lock_tid, 0);
}

/* On the main thread when it ends alone: the last thread of the process must be one of the program, or it would not end. */
static void end_with_main(void *value) {
        if (keeper_is_ours())
                keeper_give_up();
}

static void watch_main(void) {
        if (system_gettid() == system_getpid() && keeper.has_main_key)
                pthread_setspecific(keeper.main_key, &keeper);
}

static int read_baseline(struct mg_seccomp *ret_seccomp) {
        ssize_t length = file_read_at(
                        AT_FDCWD, "/proc/self/status", process_text[0], sizeof(process_text[0]));

        if (length < 0)
                return (int) length;
        *ret_seccomp = rights_seccomp(process_text[0]);
        return 0;
}

int keeper_init(const struct mg_settings *settings,
                const char *mode,
                mg_create_fn create,
                bool makes_handles,
                size_t stack_bytes) {
        struct mg_seccomp baseline;

        int r = read_baseline(&baseline);
        if (r < 0)
                return r;
        heaps_probe(makes_handles);
        keeper.settings = *settings;
        keeper.setup = (struct mg_thread_setup){
                .create = create, .settings = &keeper.settings, .mode = mode, .baseline = baseline
        };
        atomic_store(&keeper.stack_bytes, stack_bytes);
        /* The linked library is first called by a program that runs. */
        atomic_store(&keeper.may_have_queues, !makes_handles);
        keeper.has_main_key = pthread_key_create(&keeper.main_key, end_with_main) == 0;
        watch_main();
        thread_measure_tls();
        atomic_store(&keeper.owner_pid, system_getpid());
        return 0;
}

bool keeper_has_given_up(void) {
        return atomic_load(&keeper.is_given_up);
}

/* Whether the calling thread, whose filters the agent would inherit, is as free as the program was at load. */
static bool is_unfiltered(void) {
        return syscall(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == (long) keeper.setup.baseline.mode;
}

/*
 * Once, before anything else is asked of the kernel: under a filter that was there at load. Not in the constructor, for
 * the trial itself makes a child; a program that made a thread may do that.
 */
static bool is_admitted(void) {
        if (atomic_load(&keeper.is_given_up) || atomic_load(&keeper.is_claimed))
                return false;
        if (keeper.setup.baseline.mode == SECCOMP_MODE_FILTER &&
            !atomic_exchange(&keeper.is_sandbox_tried, true) && !sandbox_admits_agent())
                keeper_forbid();
        return !atomic_load(&keeper.is_given_up);
}

/* With the lock. */
static int start_locked(void) {
        if (thread_is_running() || !is_admitted())
                return 0;
        keeper.setup.spare_message_queues = atomic_exchange(&keeper.may_have_queues, true);
        keeper.setup.stack_bytes = atomic_load(&keeper.stack_bytes);
        hooks_set_wake(thread_wake);
        return thread_start(&keeper.setup);
}

int keeper_start(const struct mg_settings *settings) {
        int saved = errno, r = -EBUSY;

        if (!keeper_is_ours())
                return 0;
        if (take_lock()) {
                atomic_store(&keeper.is_wanted, true);
                if (settings && !thread_is_running())
                        keeper.settings = *settings;
                r = start_locked();
                drop_lock();
        }
        errno = saved;
        return r;
}

int keeper_stop(void) {
        int saved = errno, r = -ETIMEDOUT;

        if (!keeper_is_ours())
                return 0;
        if (take_lock()) {
                atomic_store(&keeper.is_wanted, false);
                r = thread_stop(STOP_TIMEOUT_USEC);
                drop_lock();
        }
        errno = saved;
        return r;
}

void keeper_follow(void) {
        int saved = errno;

        if (keeper.settings.thread_mode == MG_THREAD_FOLLOW && !atomic_load(&keeper.is_wanted) &&
            !keeper_has_given_up() && keeper_is_ours() && is_admitted()) {
                atomic_store(&keeper.may_have_queues, true);
                if (is_unfiltered())
                        keeper_start(NULL);
                else
                        keeper_forbid();
        }
        errno = saved;
}

void keeper_want_callbacks(void) {
        if (keeper_is_ours() &&
            atomic_exchange(&keeper.stack_bytes, MG_CALLBACK_STACK_BYTES) < MG_CALLBACK_STACK_BYTES)
                keeper_release(keeper_hold());
}

void keeper_forbid(void) {
        atomic_store(&keeper.is_given_up, true);
}

void keeper_give_up(void) {
        atomic_store(&keeper.is_given_up, true);
        keeper_stop();
}

bool keeper_claim(void) {
        if (thread_is_running())
                return false;
        atomic_store(&keeper.is_claimed, true);
        return true;
}

void keeper_unclaim(void) {
        atomic_store(&keeper.is_claimed, false);
}

struct mg_hold keeper_hold(void) {
        struct mg_hold hold = { 0 };
        int saved = errno;

        if (thread_is_running() && keeper_is_ours() && !thread_is_current() && take_lock()) {
                if (thread_stop(STOP_TIMEOUT_USEC) == 0)
                        hold.held = true;
                else
                        drop_lock();
        }
        errno = saved;
        return hold;
}

void keeper_release(struct mg_hold hold) {
        int saved = errno;

        if (!hold.held)
                return;
        if (thread_end() != MG_THREAD_END_ASKED ||
            atomic_fetch_add(&keeper.restarts, 1) >= MAX_RESTARTS)
                atomic_store(&keeper.is_given_up, true);
        start_locked();
        drop_lock();
        errno = saved;
}

void keeper_after_fork(void) {
        if (atomic_load(&keeper.owner_pid) == 0)
                return;
        bool restart = atomic_load(&keeper.is_wanted) &&
                       keeper.settings.thread_mode != MG_THREAD_FOLLOW;

        thread_after_fork();
        atomic_store(&keeper.lock_tid, 0);
        atomic_store(&keeper.is_wanted, false);
        atomic_store(&keeper.is_claimed, false); /* the loop has closed what is its own */
        /* A child of a process that was left alone by its own doing has inherited the reason, and is not ours. */
        if (keeper_has_given_up())
                return;
        atomic_store(&keeper.owner_pid, system_getpid());
        watch_main();
        keeper.setup.is_forked = true;
        if (restart && is_admitted() && is_unfiltered())
                keeper_start(NULL);
        keeper.setup.is_forked = false;
}
