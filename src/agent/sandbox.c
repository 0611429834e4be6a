/* SPDX-License-Identifier: MIT */
/* Tries the agent's system calls where they cannot kill the program. Layer: agent; no allocation. */
#include "agent/sandbox.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "agent/system.h"
#include "base/macros.h"

/* An exit code that no signal and no shell makes. */
#define SURVIVED 77

static void try_files(void) {
        int pair[2] = { -1, -1 };
        char byte;

        syscall(SYS_close_range, ~0U, ~0U, 0);
        int fd = (int) syscall(
                        SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC | O_NOCTTY);
        syscall(SYS_pread64, fd, &byte, sizeof(byte), 0);
        syscall(SYS_fstatfs, -1, NULL);
        syscall(SYS_fcntl, -1, F_DUPFD_CLOEXEC, 0);
        syscall(SYS_pipe2, pair, O_CLOEXEC | O_NONBLOCK);
        syscall(SYS_write, -1, &byte, sizeof(byte));
        syscall(SYS_read, -1, &byte, sizeof(byte));
}

static void try_socket(void) {
        syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        syscall(SYS_connect, -1, NULL, 0);
        syscall(SYS_sendto, -1, NULL, 0, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
        syscall(SYS_recvfrom, -1, NULL, 0, MSG_DONTWAIT, NULL, NULL);
        syscall(SYS_getsockopt, -1, SOL_SOCKET, SO_COOKIE, NULL, NULL);
        syscall(SYS_shutdown, -1, SHUT_RDWR);
        syscall(SYS_close, -1);
}

static void try_waiting(void) {
        const struct timespec none = { 0 };
        uint64_t mask = 0;
        uint32_t word = 1;

        syscall(SYS_signalfd4, -1, &mask, sizeof(mask), 0);
        syscall(SYS_ppoll, NULL, 0, &none, NULL, sizeof(mask));
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        syscall(SYS_clock_nanosleep, CLOCK_REALTIME, 0, &none, NULL);
        syscall(SYS_tgkill, system_getpid(), system_gettid(), 0);
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof(mask));
}

static void try_the_rest(void) {
        struct rusage usage;
        struct rlimit limit;

        syscall(SYS_getrusage, RUSAGE_SELF, &usage);
        syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
        syscall(SYS_madvise, NULL, 0, MADV_DONTNEED);
        syscall(SYS_mremap, NULL, 0, 0, 0);
        syscall(SYS_mprotect, NULL, 0, PROT_READ);
#ifdef SYS_clone3
        syscall(SYS_clone3, NULL, 0);
#endif
}

static _Noreturn void try_all(void) {
        /* First, so that a child that is killed leaves no core. */
        syscall(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
        try_files();
        try_socket();
        try_waiting();
        try_the_rest();
        for (;;)
                syscall(SYS_exit_group, SURVIVED);
}

bool sandbox_admits_agent(void) {
        int saved = errno, status = 0, r;
        sigset_t all, before;

        /* What the program does about signals is not for the child to do. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        /* No signal at its end, so that it is a child only for those that ask for such children. */
        int pid = (int) syscall(SYS_clone, 0, NULL, NULL, NULL, 0);
        if (pid == 0)
                try_all();
        do
                r = pid < 0 ? -1 : (int) syscall(SYS_wait4, pid, &status, __WCLONE, NULL);
        while (pid > 0 && r < 0 && errno == EINTR);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = saved;
        return pid > 0 && r == pid && WIFEXITED(status) && WEXITSTATUS(status) == SURVIVED;
}
