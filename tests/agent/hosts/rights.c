/* SPDX-License-Identifier: MIT */
/*
 * Hosts that give up rights, by the C library and by raw system calls, most of them single-threaded but for the
 * agent: what a second thread could spoil.
 */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

int capset(cap_user_header_t header, const cap_user_data_t data);

typedef int (*capset_fn)(cap_user_header_t header, const cap_user_data_t data);

static int raw_capset(cap_user_header_t header, const cap_user_data_t data) {
        return (int) syscall(SYS_capset, header, data);
}

static int drop_capabilities(capset_fn set, unsigned kept) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = { { .effective = kept, .permitted = kept } };

        return set(&header, data);
}

static const char *outcome(int r) {
        return r == 0 ? "ok" : strerror(errno);
}

/* All ids one after the other, as a daemon does at start. */
static int run_setuid(void) {
        const gid_t groups[] = { NOBODY };

        host_pause(300);
        printf("setgroups %s\n", outcome(setgroups(1, groups)));
        printf("setresgid %s\n", outcome(setresgid(NOBODY, NOBODY, NOBODY)));
        printf("setresuid %s\n", outcome(setresuid(NOBODY, NOBODY, NOBODY)));
        host_pause(500);
        printf("back %s\n", outcome(setuid(0)));
        return 0;
}

/* Without CAP_SETUID in the one thread, the C library's setuid() would succeed in one that kept it, and abort. */
static int drop_then_setuid(capset_fn set) {
        host_pause(300);
        printf("capset %s\n", outcome(drop_capabilities(set, 0)));
        printf("setuid %s\n", outcome(setuid(NOBODY)));
        host_pause(300);
        printf("uid %d\n", (int) getuid());
        return 0;
}

static int run_capset_setuid(void) {
        return drop_then_setuid(capset);
}

static int run_raw_capset_setuid(void) {
        return drop_then_setuid(raw_capset);
}

static int run_keep_setuid_only(void) {
        host_pause(300);
        printf("capset %s\n", outcome(drop_capabilities(raw_capset, 1U << CAP_SETUID)));
        printf("setuid %s\n", outcome(setuid(NOBODY)));
        host_pause(300);
        printf("again %s\n", outcome(setuid(0)));
        return 0;
}

static int run_bounding_set(void) {
        host_pause(300);
        for (unsigned long capability = 0; capability <= CAP_LAST_CAP; capability++)
                if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0)
                        printf("%lu %s\n", capability, strerror(errno));
        printf("no_new_privs %s\n", outcome(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
        printf("setuid %s\n", outcome(setuid(NOBODY)));
        host_pause(300);
        return 0;
}

static int run_keep_capabilities(void) {
        host_pause(300);
        printf("keep %s\n", outcome(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)));
        printf("setuid %s\n", outcome(setuid(NOBODY)));
        printf("capset %s\n", outcome(drop_capabilities(capset, 1U << CAP_NET_BIND_SERVICE)));
        host_pause(300);
        return 0;
}

/* Only for the calling thread: the agent has to see for itself that it has more. */
static int run_raw_setuid(void) {
        host_pause(300);
        printf("setresuid %s\n", outcome((int) syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY)));
        host_pause(700);
        return 0;
}

static int run_unshare_user(void) {
        host_pause(300);
        printf("unshare %s\n", outcome(unshare(CLONE_NEWUSER)));
        host_pause(300);
        return 0;
}

static int run_unshare_mount(void) {
        host_pause(300);
        int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
        printf("unshare %s\n", outcome(unshare(CLONE_NEWNS)));
        printf("setns %s\n", outcome(setns(own, CLONE_NEWNS)));
        host_pause(300);
        return 0;
}

/* A namespace that another process has made: as unshare(), only a process of one thread may go there. */
static int run_setns_user(void) {
        int ready[2], hold[2];
        char path[64], byte;

        if (pipe(ready) < 0 || pipe(hold) < 0)
                return 1;
        fflush(stdout);
        int pid = fork();
        if (pid == 0) {
                close(hold[1]);
                int r = unshare(CLONE_NEWUSER) < 0 ? 1 : 0;
                if (write(ready[1], "x", 1) == 1 && read(hold[0], &byte, 1) == 0)
                        _exit(r);
                _exit(2);
        }
        if (read(ready[0], &byte, 1) != 1)
                return 1;
        host_pause(300);
        snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
        int other = open(path, O_RDONLY | O_CLOEXEC);
        printf("setns %s\n", outcome(setns(other, CLONE_NEWUSER)));
        close(hold[1]);
        printf("child %d\n", host_wait(pid));
        host_pause(300);
        return 0;
}

static int child_of_namespace(void) {
        host_work(400);
        return getpid() == 1 ? 6 : 1;
}

/* From here on the kernel lets no thread be made; children are numbered anew, below a /proc that does not know them. */
static int run_unshare_pid(void) {
        host_pause(300);
        printf("unshare %s\n", outcome(unshare(CLONE_NEWPID)));
        fflush(stdout);
        int pid = fork();
        if (pid == 0)
                _exit(child_of_namespace());
        printf("child %d\n", host_wait(pid));
        host_pause(300);
        return 0;
}

/* What fails, fails as without an agent. */
static int run_errno_of_failures(void) {
        struct __user_cap_header_struct header = { .version = 1 };
        struct __user_cap_data_struct data[2] = { 0 };

        host_pause(300);
        printf("setns %s\n", outcome(setns(-1, CLONE_NEWNS)));
        printf("unshare %s\n", outcome(unshare(~0)));
        printf("prctl %s\n", outcome(prctl(PR_CAPBSET_DROP, 4711UL, 0, 0, 0)));
        printf("prctl %s\n", outcome(prctl(-4711, 0, 0, 0, 0)));
        printf("capset %s\n", outcome(capset(&header, data)));
        printf("setgroups %s\n", outcome(setgroups(1 << 20, NULL)));
        printf("setresuid %s\n", outcome(setresuid(NOBODY, NOBODY, NOBODY)));
        printf("seteuid %s\n", outcome(seteuid(0)));
        printf("setgid %s\n", outcome(setgid(0)));
        return 0;
}

/* Kills the process at socket(2), allows the rest. */
static const struct sock_filter kill_socket[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static const struct sock_fprog kill_socket_program = { 4, (struct sock_filter *) kill_socket };

static int filter_and_go_on(int r) {
        printf("filter %s\n", outcome(r));
        /* The daemon drops the connection meanwhile: an agent that came back would end us. */
        host_work(1500);
        printf("setuid %s\n", outcome(setuid(NOBODY)));
        host_pause(300);
        return 0;
}

static int run_seccomp_tsync(void) {
        host_work(300);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        return filter_and_go_on(
                        (int) syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                      SECCOMP_FILTER_FLAG_TSYNC, &kill_socket_program));
}

static int run_seccomp_early(void) {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        return filter_and_go_on((int) syscall(
                        SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &kill_socket_program));
}

static int run_seccomp_raw(void) {
        syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        return filter_and_go_on((int) syscall(
                        SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &kill_socket_program));
}

static int run_seccomp_prctl(void) {
        host_pause(300);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        return filter_and_go_on(
                        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &kill_socket_program, 0, 0));
}

static int run_seccomp_strict(void) {
        host_pause(300);
        puts("strict");
        fflush(stdout);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
        for (volatile long i = 0; i < 300000000; i++)
                ;
        syscall(SYS_exit, 11);
        return 1;
}

/* Kills for what the program itself does not need. */
static const struct sock_filter kill_unneeded[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpid, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_wait4, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static const struct sock_fprog kill_unneeded_program = { 7, (struct sock_filter *) kill_unneeded };

/* The agent's thread is filtered as well; later there are a thread and a child more. */
static int narrow_and_go_on(void) {
        siginfo_t info = { 0 };

        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        printf("filter %s\n", outcome((int) syscall(
                                              SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                              SECCOMP_FILTER_FLAG_TSYNC, &kill_unneeded_program)));
        fflush(stdout);
        host_work(1500);
        int pid = fork();
        if (pid == 0)
                _exit(7);
        printf("waitid %s\n", outcome(waitid(P_PID, (id_t) pid, &info, WEXITED)));
        printf("child %d\n", info.si_status);
        return 0;
}

static int run_seccomp_narrow(void) {
        host_work(300);
        return narrow_and_go_on();
}

static int run_seccomp_early_narrow(void) {
        return narrow_and_go_on();
}

static volatile sig_atomic_t trapped;

static void on_trap(int signal_number) {
        trapped = trapped + 1;
}

/* A sandbox that counts what it catches: nothing, for the program itself calls none of these. */
static int run_seccomp_trap(void) {
        static const struct sock_filter trap[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 3, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 2, 0),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_signalfd4, 1, 0),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        };
        const struct sock_fprog program = { 6, (struct sock_filter *) trap };

        signal(SIGSYS, on_trap);
        host_work(300);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        int r = (int) syscall(
                        SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
        printf("filter %s\n", outcome(r));
        host_work(1500);
        printf("trapped %d\n", (int) trapped);
        return 0;
}

static int run_chroot(void) {
        char directory[] = "/tmp/memguard-chroot-XXXXXX";

        host_pause(300);
        if (!mkdtemp(directory))
                return 1;
        int r = chroot(directory) < 0 || chdir("/") < 0 ? -1 : 0;
        int saved = errno;
        rmdir("/");
        errno = saved;
        printf("chroot %s\n", outcome(r));
        printf("setuid %s\n", outcome(setuid(NOBODY)));
        host_work(500);
        return 0;
}

static int run_setuid_with_threads(void) {
        for (int i = 0; i < 4; i++)
                host_start_allocating();
        host_pause(500);
        for (int i = 0; i < 20; i++) {
                if (seteuid(NOBODY) < 0 || seteuid(0) < 0)
                        printf("seteuid %s\n", strerror(errno));
        }
        printf("setuid %s\n", outcome(setuid(NOBODY)));
        host_pause(300);
        return 0;
}

const struct host_case rights_cases[] = {
        { "setuid", run_setuid },
        { "capset-setuid", run_capset_setuid },
        { "raw-capset-setuid", run_raw_capset_setuid },
        { "keep-setuid-only", run_keep_setuid_only },
        { "bounding-set", run_bounding_set },
        { "keep-capabilities", run_keep_capabilities },
        { "raw-setuid", run_raw_setuid },
        { "unshare-user", run_unshare_user },
        { "unshare-mount", run_unshare_mount },
        { "setns-user", run_setns_user },
        { "unshare-pid", run_unshare_pid },
        { "errno-of-failures", run_errno_of_failures },
        { "seccomp-tsync", run_seccomp_tsync },
        { "seccomp-early", run_seccomp_early },
        { "seccomp-raw", run_seccomp_raw },
        { "seccomp-prctl", run_seccomp_prctl },
        { "seccomp-strict", run_seccomp_strict },
        { "seccomp-trap", run_seccomp_trap },
        { "seccomp-narrow", run_seccomp_narrow },
        { "seccomp-early-narrow", run_seccomp_early_narrow },
        { "chroot", run_chroot },
        { "setuid-with-threads", run_setuid_with_threads },
        { NULL, NULL },
};
