/* SPDX-License-Identifier: MIT */
/* Hosts that fork, exec, catch signals and end in every way there is. */
#include "host.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int fork_and_wait(host_case_fn child) {
        fflush(stdout);
        int pid = fork();
        if (pid == 0) {
                int r = child();
                fflush(stdout);
                _exit(r);
        }
        return pid < 0 ? 255 : host_wait(pid);
}

static int child_with_threads(void) {
        host_work(400);
        puts("child ran");
        return 7;
}

static int child_plain(void) {
        free(malloc(1000));
        host_pause(300);
        return 5;
}

static int run_fork_before_threads(void) {
        int code = fork_and_wait(child_with_threads);
        host_work(300);
        printf("child %d\n", code);
        return code;
}

static int run_fork_after_threads(void) {
        host_work(300);
        int plain = fork_and_wait(child_plain), threaded = fork_and_wait(child_with_threads);
        printf("children %d %d\n", plain, threaded);
        return plain + threaded;
}

static int run_daemonize(void) {
        int out[2];
        char line[32] = "";

        host_work(200);
        if (pipe(out) < 0)
                return 1;
        int pid = fork();
        if (pid == 0) {
                setsid();
                if (fork() != 0)
                        _exit(0);
                close(out[0]);
                for (int fd = 3; fd < 1024; fd++)
                        if (fd != out[1])
                                close(fd);
                host_work(500);
                _exit(write(out[1], "daemon\n", 7) == 7 ? 0 : 1);
        }
        close(out[1]);
        int code = host_wait(pid);
        /* The end of the pipe: nobody, the agent included, keeps the writing side. */
        ssize_t n = read(out[0], line, sizeof(line) - 1), end = read(out[0], line + 16, 1);
        printf("first child %d, read %zd, then %zd: %s", code, n, end, line);
        return n == 7 && end == 0 ? 0 : 1;
}

static int child_allocates(void) {
        for (int i = 0; i < 100; i++)
                free(malloc(5000));
        return 0;
}

static int run_fork_while_allocating(void) {
        int failed = 0;

        for (int i = 0; i < 4; i++)
                host_start_allocating();
        for (int i = 0; i < 60; i++)
                failed += fork_and_wait(child_allocates) != 0;
        printf("failed %d\n", failed);
        return failed;
}

static int run_short_children(void) {
        int failed = 0;

        host_work(100);
        for (int i = 0; i < 300; i++) {
                int pid = fork();
                if (pid == 0)
                        _exit(3);
                failed += host_wait(pid) != 3;
        }
        printf("failed %d\n", failed);
        return failed;
}

static int run_spawn(void) {
        char *const arguments[] = { "sh", "-c", "exit 9", NULL };
        pid_t pid;

        host_work(300);
        int vforked = vfork();
        if (vforked == 0) {
                execl("/bin/sh", "sh", "-c", "exit 4", (char *) NULL);
                _exit(127);
        }
        int code = host_wait(vforked);
        int spawned = posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ);
        printf("vfork %d, spawn %d %d, system %d\n", code, spawned, host_wait(pid),
               WEXITSTATUS(system("exit 6")));
        FILE *pipe = popen("echo from popen", "r");
        char line[64] = "";
        if (!pipe || !fgets(line, sizeof(line), pipe))
                return 1;
        printf("%s%d\n", line, pclose(pipe));
        host_pause(300);
        return 0;
}

/* A child that shares our memory changes its ids, as many launchers do: our own agent must not notice. */
static int run_vfork_setuid(void) {
        host_work(300);
        volatile int failed = 0;
        int pid = vfork();
        if (pid == 0) {
                failed = setgid(65534) != 0 || setuid(65534) != 0;
                _exit(8);
        }
        int code = host_wait(pid);
        host_pause(300);
        printf("child %d failed %d, still uid %d\n", code, failed, (int) getuid());
        return 0;
}

static int run_exec_chain(void) {
        host_work(300);
        fflush(stdout);
        execl("/bin/sh", "sh", "-c", "exec /bin/sh -c 'exec /bin/sh -c \"echo end; exit 12\"'",
              (char *) NULL);
        return 1;
}

static void *print_late(void *argument) {
        host_pause(600);
        /* Stays in the buffer: only a proper exit brings it out. */
        printf("the last thread is done");
        return NULL;
}

static int run_main_leaves(void) {
        pthread_t thread;

        pthread_create(&thread, NULL, print_late, NULL);
        pthread_detach(thread);
        host_pause(300);
        pthread_exit(NULL);
}

static int run_exit_at_once(void) {
        host_start_allocating();
        /* In the middle of whatever the agent is doing. */
        host_pause(300);
        _exit(21);
}

static int run_exit_handlers(void) {
        host_start_allocating();
        host_pause(300);
        puts("leaving");
        exit(22);
}

static atomic_int ticks;

static void on_tick(int signal_number) {
        atomic_fetch_add(&ticks, 1);
}

static int run_signal_storm(void) {
        struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
        struct itimerval timer = { { 0, 500 }, { 0, 500 } };
        const int caught[] = {
                SIGALRM, SIGURG, SIGWINCH, SIGCHLD, SIGUSR1, SIGUSR2, SIGPIPE, SIGIO
        };

        for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
                sigaction(caught[i], &action, NULL);
        host_start_allocating();
        setitimer(ITIMER_REAL, &timer, NULL);
        for (int i = 0; i < 800; i++) {
                kill(getpid(), caught[(size_t) i % 8]);
                host_pause(1);
        }
        printf("ticked %d\n", ticks > 500);
        return 0;
}

static void *wait_for_urgent(void *argument) {
        int got = 0;

        sigwait(argument, &got);
        return (void *) (long) got;
}

/* A program may use SIGURG itself, by sigwait(): ours are sent to one thread alone. */
static int run_sigwait(void) {
        pthread_t thread;
        sigset_t urgent;
        void *got;

        sigemptyset(&urgent);
        sigaddset(&urgent, SIGURG);
        pthread_sigmask(SIG_BLOCK, &urgent, NULL);
        pthread_create(&thread, NULL, wait_for_urgent, &urgent);
        host_pause(700);
        kill(getpid(), SIGURG);
        pthread_join(thread, &got);
        printf("got %d\n", (int) (long) got == SIGURG);
        return 0;
}

static sigjmp_buf back;

static void on_fault(int signal_number) {
        siglongjmp(back, 1);
}

static int run_fault_on_alternate_stack(void) {
        stack_t stack = { .ss_size = 65536 };
        struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK };
        volatile int faults = 0;

        stack.ss_sp = malloc(stack.ss_size);
        sigaltstack(&stack, NULL);
        sigaction(SIGSEGV, &action, NULL);
        char *forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        host_start_allocating();
        for (int i = 0; i < 300; i++) {
                if (sigsetjmp(back, 1) == 0)
                        *forbidden = 1;
                faults = faults + 1;
                host_pause(2);
        }
        printf("faults %d\n", faults);
        return 0;
}

static int run_abort(void) {
        host_work(300);
        abort();
}

const struct host_case process_cases[] = {
        { "fork-before-threads", run_fork_before_threads },
        { "fork-after-threads", run_fork_after_threads },
        { "daemonize", run_daemonize },
        { "fork-while-allocating", run_fork_while_allocating },
        { "short-children", run_short_children },
        { "spawn", run_spawn },
        { "vfork-setuid", run_vfork_setuid },
        { "exec-chain", run_exec_chain },
        { "main-leaves", run_main_leaves },
        { "exit-at-once", run_exit_at_once },
        { "exit-handlers", run_exit_handlers },
        { "signal-storm", run_signal_storm },
        { "sigwait", run_sigwait },
        { "fault-on-alternate-stack", run_fault_on_alternate_stack },
        { "abort", run_abort },
        { NULL, NULL },
};
