/* SPDX-License-Identifier: MIT */
/* Why there is no agent: the answer from facts, and the facts of real processes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "child.h"
#include "host/why_no_agent.h"
#include "skip.h"

#define YES MG_FACT_YES
#define NO  MG_FACT_NO

static void test_answers(void **state) {
        static const struct {
                struct mg_agent_facts facts;
                enum mg_agent_state answer;
        } cases[] = {
                { { .connected = YES }, MG_AGENT_LOADED },
                { { .connected = YES, .readable = NO, .program_static = YES }, MG_AGENT_LOADED },
                { { .connected = YES, .outdated = YES }, MG_AGENT_OUTDATED },
                { { .connected = YES, .outdated = NO }, MG_AGENT_LOADED },
                { { .mapped = YES, .outdated = YES, .threads = 2 }, MG_AGENT_CONNECTING },
                { {}, MG_AGENT_UNKNOWN },
                { { .readable = NO }, MG_AGENT_NOT_READABLE },
                { { .readable = YES }, MG_AGENT_UNKNOWN },
                { { .mapped = YES }, MG_AGENT_CONNECTING },
                { { .mapped = YES, .threads = 1 }, MG_AGENT_SINGLE_THREADED },
                { { .mapped = YES, .threads = 2 }, MG_AGENT_CONNECTING },
                { { .mapped = YES, .threads = 1, .thread = MG_AGENT_THREAD_ALWAYS },
                  MG_AGENT_CONNECTING },
                { { .mapped = YES, .threads = 1, .thread = MG_AGENT_THREAD_NEVER },
                  MG_AGENT_NO_THREAD },
                { { .mapped = YES, .threads = 1, .disabled = YES }, MG_AGENT_DISABLED },
                { { .mapped = YES, .threads = 2, .unix_forbidden = YES, .socket_visible = NO },
                  MG_AGENT_SOCKET_BLOCKED },
                { { .mapped = YES, .threads = 2, .socket_visible = NO, .seccomp = YES },
                  MG_AGENT_SOCKET_HIDDEN },
                { { .mapped = YES, .threads = 2, .socket_visible = YES, .seccomp = YES },
                  MG_AGENT_SOCKET_BLOCKED },
                { { .mapped = YES, .threads = 2, .seccomp = NO, .preloaded = YES },
                  MG_AGENT_CONNECTING },
                { { .mapped = NO, .program_static = YES, .preloaded = YES }, MG_AGENT_STATIC },
                { { .mapped = NO, .program_native = NO, .libc = MG_LIBC_GLIBC, .preloaded = YES },
                  MG_AGENT_OTHER_ARCHITECTURE },
                { { .mapped = NO, .libc = MG_LIBC_MUSL }, MG_AGENT_OTHER_LIBC },
                { { .mapped = NO, .libc = MG_LIBC_OTHER, .secure_exec = YES },
                  MG_AGENT_OTHER_LIBC },
                /* musl loads it all the same: then it is not the libc */
                { { .mapped = YES, .libc = MG_LIBC_MUSL, .threads = 2 }, MG_AGENT_CONNECTING },
                { { .mapped = NO, .secure_exec = YES, .preloaded = YES }, MG_AGENT_SECURE_EXEC },
                { { .mapped = NO, .preloaded = YES }, MG_AGENT_NOT_FOUND },
                { { .preloaded = YES, .readable = NO }, MG_AGENT_UNKNOWN },
                { { .mapped = NO, .preloaded = NO, .unit_configured = YES },
                  MG_AGENT_PRELOAD_LOST },
                { { .mapped = NO, .preloaded = NO, .unit_configured = NO },
                  MG_AGENT_NOT_CONFIGURED },
                { { .mapped = NO, .preloaded = NO }, MG_AGENT_NOT_CONFIGURED },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                enum mg_agent_state answer = why_no_agent(&cases[i].facts);
                if (answer != cases[i].answer)
                        fail_msg("case %zu: %s", i, agent_state_to_string(answer));
        }
        for (int answer = 0; answer < _MG_AGENT_STATE_MAX; answer++) {
                assert_non_null(agent_state_to_string((enum mg_agent_state) answer));
                assert_true(strlen(agent_state_describe((enum mg_agent_state) answer)) > 10);
        }
}

static void test_environment(void **state) {
        struct mg_agent_facts facts = {};

        why_no_agent_environment(&facts, "LD_PRELOADS=/x/libmemguard-preload.so");
        why_no_agent_environment(&facts, "LD_PRELOA=/x/libmemguard-preload.so");
        why_no_agent_environment(&facts, "LD_PRELOAD");
        why_no_agent_environment(&facts, "=LD_PRELOAD=x");
        why_no_agent_environment(&facts, "");
        assert_int_equal(facts.preloaded, MG_FACT_UNKNOWN);
        why_no_agent_environment(&facts, "LD_PRELOAD=/x/other.so");
        assert_int_equal(facts.preloaded, NO);
        why_no_agent_environment(&facts, "LD_PRELOAD=/x/other.so:/usr/$LIB/libmemguard-preload.so");
        assert_int_equal(facts.preloaded, YES);
        why_no_agent_environment(&facts, "MEMGUARD_DISABLE=0");
        assert_int_equal(facts.disabled, NO);
        why_no_agent_environment(&facts, "MEMGUARD_DISABLE=1");
        assert_int_equal(facts.disabled, YES);
        why_no_agent_environment(&facts, "MEMGUARD_THREAD=sometimes");
        assert_int_equal(facts.thread, MG_AGENT_THREAD_FOLLOW);
        why_no_agent_environment(&facts, "MEMGUARD_THREAD=never");
        assert_int_equal(facts.thread, MG_AGENT_THREAD_NEVER);
}

/* A socket that nobody listens on is there all the same. */
static char socket_path[64];

static int make_socket(void **state) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        snprintf(socket_path, sizeof(socket_path), "/tmp/memguard-test-%d.sock", (int) getpid());
        strcpy(address.sun_path, socket_path);
        int r = bind(fd, (struct sockaddr *) &address, sizeof(address));
        close(fd);
        return r;
}

static int drop_socket(void **state) {
        return unlink(socket_path);
}

static enum mg_agent_state ask(struct child *child, const char *socket) {
        struct mg_agent_facts facts = { .unit_configured = NO };

        assert_int_equal(why_no_agent_collect("/proc", child->pid, socket, &facts), 0);
        assert_int_equal(facts.readable, YES);
        assert_int_equal(facts.unit_configured, NO);
        return why_no_agent(&facts);
}

static void test_processes(void **state) {
        static const char *const one[] = { NULL }, *const two[] = { "thread", NULL },
                                 *const filtered[] = { "thread", "seccomp", NULL };
        char preload[600];
        snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", child_path("libmemguard-preload.so"));
        const char *const plain[] = { "A=b", NULL };
        const char *const agent[] = { preload, NULL };
        const char *const always[] = { "MEMGUARD_THREAD=always", preload, NULL };
        const char *const disabled[] = { preload, "MEMGUARD_DISABLE=1", NULL };
        const char *const missing[] = { "LD_PRELOAD=/nowhere/libmemguard-preload.so", NULL };
        const struct {
                const char *program;
                const char *const *arguments;
                const char *const *environment;
                const char *socket;
                enum mg_agent_state answer;
        } cases[] = {
                { "sleeper", one, plain, socket_path, MG_AGENT_NOT_CONFIGURED },
                { "sleeper", one, agent, socket_path, MG_AGENT_SINGLE_THREADED },
                { "sleeper-no-pie", two, agent, socket_path, MG_AGENT_CONNECTING },
                { "sleeper", one, always, socket_path, MG_AGENT_CONNECTING },
                { "sleeper", two, disabled, socket_path, MG_AGENT_DISABLED },
                { "sleeper", two, missing, socket_path, MG_AGENT_NOT_FOUND },
                { "sleeper", two, agent, "/nowhere/agent.sock", MG_AGENT_SOCKET_HIDDEN },
                { "sleeper", two, agent, "/dev/null", MG_AGENT_SOCKET_HIDDEN },
                { "sleeper", filtered, agent, socket_path, MG_AGENT_SOCKET_BLOCKED },
                { "sleeper-static", two, agent, socket_path, MG_AGENT_STATIC },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct child child = child_start(
                                cases[i].program, cases[i].arguments, cases[i].environment);
                enum mg_agent_state answer = ask(&child, cases[i].socket);
                child_stop(&child);
                if (answer != cases[i].answer)
                        fail_msg("case %zu: %s", i, agent_state_to_string(answer));
        }
}

static void test_musl(void **state) {
        if (access(child_path("sleeper-musl"), X_OK) < 0)
                skip_because("no musl-gcc on this machine: install the package musl-tools");
        struct child child = child_start("sleeper-musl", NULL, NULL);
        assert_int_equal(ask(&child, socket_path), MG_AGENT_OTHER_LIBC);
        child_stop(&child);
}

static int copy_file(const char *from, const char *to) {
        char command[2048];

        snprintf(command, sizeof(command), "cp '%s' '%s'", from, to);
        return system(command);
}

/* A set-uid copy of the sleeper that belongs to somebody else. */
static void test_secure_exec(void **state) {
        char path[] = "/tmp/memguard-test-setuid-XXXXXX", preload[600];

        if (geteuid() != 0)
                skip_because("not root: no set-uid program can be made for another user");
        snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", child_path("libmemguard-preload.so"));
        const char *const agent[] = { preload, NULL };
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(copy_file(child_path("sleeper"), path), 0);
        assert_int_equal(chown(path, 65534, 65534), 0);
        assert_int_equal(chmod(path, 04755), 0);
        struct child child = child_start(path, NULL, agent);
        enum mg_agent_state answer = ask(&child, socket_path);
        child_stop(&child);
        unlink(path);
        assert_int_equal(answer, MG_AGENT_SECURE_EXEC);
}

/* Without rights over a process nothing is claimed about it. */
static void test_not_readable(void **state) {
        int status;

        struct child child = child_start("sleeper", NULL, NULL);
        /* Root gives its rights up first; for everyone else the first process is somebody else's. */
        pid_t other = geteuid() == 0 ? child.pid : 1;
        pid_t pid = fork();
        if (pid == 0) {
                struct mg_agent_facts facts = {};
                if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
                        _exit(1);
                int r = why_no_agent_collect("/proc", other, socket_path, &facts);
                _exit(r == 0 && facts.readable == NO &&
                                                      why_no_agent(&facts) == MG_AGENT_NOT_READABLE
                                      ? 0
                                      : 2);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        child_stop(&child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_gone(void **state) {
        struct mg_agent_facts facts = { .threads = 77 };
        struct child child = child_start("sleeper", NULL, NULL);
        pid_t pid = child.pid;

        child_stop(&child);
        assert_int_equal(why_no_agent_collect("/proc", pid, socket_path, &facts), -ESRCH);
        assert_int_equal(facts.threads, 77);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers),     cmocka_unit_test(test_environment),
                cmocka_unit_test(test_processes),   cmocka_unit_test(test_musl),
                cmocka_unit_test(test_secure_exec), cmocka_unit_test(test_not_readable),
                cmocka_unit_test(test_gone),
        };
        return cmocka_run_group_tests(tests, make_socket, drop_socket);
}
