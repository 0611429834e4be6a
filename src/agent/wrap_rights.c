/* SPDX-License-Identifier: MIT */
/*
 * The wrappers of calls that change a thread's rights. The agent's thread is taken away, the call made, and the thread
 * made anew by the caller, so that it inherits what the program has left: it never keeps more, and the C library, which
 * repeats set-ID calls in every thread and aborts where one fails, finds none with other capabilities.
 * In a vfork() child, and wherever the agent does not run, the call is passed on and nothing else. Layer: agent, preload object.
 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/keeper.h"
#include "agent/preload.h"
#include "agent/system.h"
#include "base/macros.h"

int capset(cap_user_header_t header, const cap_user_data_t data);

/* Calls that act on the calling thread alone concern the agent only in the thread that it is compared with. */
static bool is_main_thread(void) {
        return system_gettid() == system_getpid();
}

/*
 * Defines a wrapper of int NAME PARAMETERS, which calls on with ARGUMENTS while the agent is away. Without an agent it
 * makes no system call of its own: the program may be under a filter by now.
 */
#define WRAP(name, concerned, parameters, arguments)                                        \
        static mg_next_symbol name##_next;                                                  \
        __attribute__((constructor)) static void find_##name(void) {                        \
                preload_find_next(&name##_next, #name);                                     \
        }                                                                                   \
        MG_PUBLIC int name parameters {                                                     \
                int(*next) parameters =                                                     \
                                (int(*) parameters) preload_find_next(&name##_next, #name); \
                struct mg_hold hold = { 0 };                                                \
                if (!next) {                                                                \
                        errno = ENOSYS;                                                     \
                        return -1;                                                          \
                }                                                                           \
                if (thread_is_running() && (concerned))                                     \
                        hold = keeper_hold();                                               \
                int result = next arguments;                                                \
                keeper_release(hold);                                                       \
                return result;                                                              \
        }

/* For the whole process, in every thread. */
WRAP(setuid, true, (uid_t uid), (uid))
WRAP(seteuid, true, (uid_t uid), (uid))
WRAP(setreuid, true, (uid_t real, uid_t effective), (real, effective))
WRAP(setresuid, true, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
WRAP(setgid, true, (gid_t gid), (gid))
WRAP(setegid, true, (gid_t gid), (gid))
WRAP(setregid, true, (gid_t real, gid_t effective), (real, effective))
WRAP(setresgid, true, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
WRAP(setgroups, true, (size_t count, const gid_t *groups), (count, groups))
WRAP(initgroups, true, (const char *user, gid_t group), (user, group))

/* For the calling thread. */
WRAP(capset,
     is_main_thread(),
     (cap_user_header_t header, const cap_user_data_t data),
     (header, data))
WRAP(unshare, is_main_thread(), (int flags), (flags))
WRAP(setns, is_main_thread(), (int fd, int type), (fd, type))

static bool changes_rights(int option, unsigned long argument) {
        switch (option) {
        case PR_SET_NO_NEW_PRIVS:
        case PR_SET_SECCOMP:
        case PR_CAPBSET_DROP:
        case PR_SET_SECUREBITS:
                return true;
        case PR_CAP_AMBIENT:
                return argument != PR_CAP_AMBIENT_IS_SET;
        default:
                return false;
        }
}

/* As prctl() is declared: some ABIs pass variable arguments in other places. */
typedef int (*prctl_fn)(int, ...);
static mg_next_symbol prctl_next;

__attribute__((constructor)) static void find_prctl(void) {
        preload_find_next(&prctl_next, "prctl");
}

static int call_prctl(prctl_fn next, int option, const unsigned long argument[4]) {
        struct mg_hold hold = { 0 };

        if (!changes_rights(option, argument[0]) || !atomic_load(&preload_is_active) ||
            keeper_has_given_up() || !is_main_thread() || !keeper_is_ours())
                return next(option, argument[0], argument[1], argument[2], argument[3]);
        if (thread_is_running())
                hold = keeper_hold();
        int result = next(option, argument[0], argument[1], argument[2], argument[3]);
        /* A filter is in force, or comes next, perhaps over all threads at once: no agent from here on, and no system call. */
        if (result == 0 && (option == PR_SET_NO_NEW_PRIVS || option == PR_SET_SECCOMP))
                keeper_forbid();
        keeper_release(hold);
        return result;
}

MG_PUBLIC int prctl(int option, ...) {
        prctl_fn next = (prctl_fn) preload_find_next(&prctl_next, "prctl");
        unsigned long argument[4];
        va_list list;

        if (!next) {
                errno = ENOSYS;
                return -1;
        }
        /* The kernel's call has four; how many of them count is between the caller and the option. */
        va_start(list, option);
        for (size_t i = 0; i < MG_ELEMENTS(argument); i++)
                argument[i] = va_arg(list, unsigned long);
        va_end(list);
        return call_prctl(next, option, argument);
}
