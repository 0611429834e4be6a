/* SPDX-License-Identifier: MIT */
/* /proc texts, hostile ones included, and real processes: alive, a zombie, gone. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "host/proc.h"

#define STAT_HEAD " S 1 2 3 4 5 6 7 8 9 10 "

static void test_stat(void **state) {
        static const struct {
                const char *text;
                int result;
                uint64_t start, ticks;
        } cases[] = {
                { "7 (cat)" STAT_HEAD "100 20 0 0 20 0 1 0 5555 0\n", 0, 5555, 120 },
                { "7 (a) b (c) )" STAT_HEAD "100 20 0 0 20 0 1 0 5555\n", 0, 5555, 120 },
                { "7 (x\n) R 9)" STAT_HEAD "1 2 0 0 20 0 1 0 18446744073709551615 0\n", 0,
                  UINT64_MAX, 3 },
                { "7 (cat)" STAT_HEAD "100 20 0 0 20 0 1 0\n", -EBADMSG, 1, 120 },
                { "7 (cat)" STAT_HEAD "100 20 0 0 20 0 1 0 ", -EBADMSG, 1, 120 },
                { "7 (cat)" STAT_HEAD "100 20 0 0 20 0 1 0 -5 0", -EBADMSG, 1, 120 },
                { "7 (cat)" STAT_HEAD "100 20 0 0 20 0 1 0 18446744073709551616 0", -EBADMSG, 1,
                  120 },
                { "7 (cat" STAT_HEAD "100 20 0 0 20 0 1 0 5555 0\n", -EBADMSG, 1, 1 },
                { "7 (cat)", -EBADMSG, 1, 1 },
                { "7 (cat) ", -EBADMSG, 1, 1 },
                { "", -EBADMSG, 1, 1 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                uint64_t start = 1, ticks = 1;
                assert_int_equal(
                                proc_stat_parse_start_time(cases[i].text, &start), cases[i].result);
                (void) proc_stat_parse_cpu_ticks(cases[i].text, &ticks);
                assert_int_equal(start, cases[i].start);
                assert_int_equal(ticks, cases[i].ticks);
        }
}

static void test_cgroup(void **state) {
        static const struct {
                const char *text;
                int result;
                const char *path;
        } cases[] = {
                { "0::/system.slice/nginx.service\n", 0, "/system.slice/nginx.service" },
                { "0::/system.slice/nginx.service", 0, "/system.slice/nginx.service" },
                { "12:memory:/m\n1:name=systemd:/system.slice/x.service\n0::/\n", 0,
                  "/system.slice/x.service" },
                { "1:name=systemd:/system.slice/x.service\n", 0, "/system.slice/x.service" },
                { "1:name=systemd:/s/x.service\n0::/u/x.service\n", 0, "/u/x.service" },
                { "1:name=systemd:/\n0::/\n", 0, "/" },
                { "4:memory:/y.service\n", 0, "/" },
                { "0::/a:b::/c d (e).scope\n", 0, "/a:b::/c d (e).scope" },
                { "0::/dev\\x2ddisk.service\n", 0, "/dev\\x2ddisk.service" },
                { "10::/not.service\n", 0, "/" },
                { "0::relative\n", 0, "/" },
                { "0:::/x.service\n", 0, "/" },
                { "9:name=systemdx:/x.service\n", 0, "/" },
                { "name=systemd:/x.service\n", 0, "/" },
                { "", 0, "/" },
                { "\n\n0::/x\n\n", 0, "/x" },
                { "garbage", 0, "/" },
                { "0::/system.slice/x.service (deleted)\n", -ESRCH, "untouched" },
                { "0::/0123456789012345678901234567890123456789\n", -ENAMETOOLONG, "untouched" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                char path[40] = "untouched";
                assert_int_equal(
                                proc_cgroup_parse(cases[i].text, path, sizeof(path)),
                                cases[i].result);
                assert_string_equal(path, cases[i].path);
        }
}

/* Writes one file of a made-up process 42 below BASE. */
static void put(const char *base, const char *name, const char *text) {
        char path[256];
        snprintf(path, sizeof(path), "%s/42/%s", base, name);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

static void drop(const char *base, const char *name) {
        char path[256];
        snprintf(path, sizeof(path), "%s/42/%s", base, name);
        (void) unlink(path);
}

static void test_fixture_status(void **state) {
        char base[] = "/tmp/memguard-test-XXXXXX", path[128];
        struct mg_proc_status status = {};
        uint64_t huge = 1;

        assert_non_null(mkdtemp(base));
        snprintf(path, sizeof(path), "%s/42", base);
        assert_int_equal(mkdir(path, 0755), 0);

        /* 65,536 supplementary groups: a line far longer than any buffer, and the rest still counts. */
        char *text = malloc(2 * 1024 * 1024);
        assert_non_null(text);
        char *at = text +
                   sprintf(text,
                           "Name:\tUid:\t9\nState:\tS (sleeping)\nPPid:\t7\nUid:\t1000\t1001\t1002\t1003\n"
                           "Groups:\t");
        for (int i = 0; i < 65536; i++)
                at += sprintf(at, "%d ", 4000000 + i);
        strcpy(at,
               "\nVmSwap:\t     128 kB\nThreads:\t9\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n");
        put(base, "status", text);
        free(text);
        assert_int_equal(proc_status(base, 42, &status), 0);
        assert_int_equal(status.uid, 1001);
        assert_int_equal(status.real_uid, 1000);
        assert_int_equal(status.parent, 7);
        assert_int_equal(status.state, 'S');
        assert_int_equal(status.swap_bytes, 128 * 1024);
        assert_int_equal(status.threads, 9);
        assert_true(status.no_new_privs && status.seccomp);

        /* A kernel thread: no VmSwap is not 0 swap. */
        put(base, "status", "Uid:\t0\t0\t0\t0\nThreads:\t1\nNoNewPrivs:\t0\nSeccomp:\t0");
        assert_int_equal(proc_status(base, 42, &status), 0);
        assert_int_equal(status.swap_bytes, MG_UNKNOWN);
        assert_int_equal(status.state, '?');
        assert_false(status.no_new_privs || status.seccomp);

        put(base, "status", "");
        assert_int_equal(proc_status(base, 42, &status), -EBADMSG);
        drop(base, "status");
        assert_int_equal(proc_status(base, 42, &status), -ENODATA);
        assert_int_equal(proc_status(base, 43, &status), -ESRCH);

        put(base, "smaps_rollup",
            "55-ff ---p 00000000 00:00 0 [rollup]\nAnonHugePages:    2048 kB\n");
        assert_int_equal(proc_anon_huge(base, 42, &huge), 0);
        assert_int_equal(huge, 2048 * 1024);
        put(base, "smaps_rollup", "55-ff ---p 00000000 00:00 0 [rollup]\n");
        assert_int_equal(proc_anon_huge(base, 42, &huge), -ENODATA);
        drop(base, "smaps_rollup");

        /* A kernel without cgroups: in no unit, and not gone. */
        char cgroup[64];
        assert_int_equal(proc_cgroup_path(base, 42, cgroup, sizeof(cgroup)), 0);
        assert_string_equal(cgroup, "/");
        assert_int_equal(proc_cgroup_path(base, 43, cgroup, sizeof(cgroup)), -ESRCH);
        rmdir(path);
        rmdir(base);
}

static void test_own_process(void **state) {
        struct mg_proc proc;
        struct mg_proc_status status;
        char text[4096], link[4096] = "", comm[16];
        uint64_t before, after, start, usec;
        size_t size = 16 * 1024 * 1024;

        assert_int_equal(proc_open("/proc", getpid(), &proc), 0);
        assert_int_equal(proc.pid, getpid());
        assert_int_equal(proc_start_time("/proc", getpid(), &start), 0);
        assert_int_equal(proc.start_time, start);
        assert_int_equal(proc_rss_anon(&proc, &before), 0);
        char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(block != MAP_FAILED);
        memset(block, 1, size);
        assert_int_equal(proc_rss_anon(&proc, &after), 0);
        munmap(block, size);
        /* Per-CPU batches make the counter approximate. */
        assert_true(after > before + size / 2);
        proc_close(&proc);
        assert_int_equal(proc.statm_fd, -EBADF);

        assert_int_equal(proc_status("/proc", getpid(), &status), 0);
        assert_int_equal(status.uid, geteuid());
        assert_int_equal(status.parent, getppid());
        assert_int_equal(status.threads, 1);
        assert_int_equal(proc_exe("/proc", getpid(), text, sizeof(text)), 0);
        assert_true(readlink("/proc/self/exe", link, sizeof(link) - 1) > 0);
        assert_string_equal(text, link);
        assert_int_equal(proc_exe("/proc", getpid(), text, 4), -ENAMETOOLONG);
        assert_int_equal(proc_cpu_usage("/proc", getpid(), &usec), 0);
        assert_int_equal(proc_cgroup_path("/proc", getpid(), text, sizeof(text)), 0);
        assert_int_equal(text[0], '/');

        /* A name of full length fits into what holds it and its end. */
        assert_int_equal(prctl(PR_SET_NAME, "fifteen-letters"), 0);
        assert_int_equal(proc_comm("/proc", getpid(), comm, sizeof(comm)), 0);
        assert_string_equal(comm, "fifteen-letters");
        assert_int_equal(proc_comm("/proc", getpid(), comm, sizeof(comm) - 1), -ENAMETOOLONG);
        assert_int_equal(prctl(PR_SET_NAME, "a) b (c"), 0);
        assert_int_equal(proc_comm("/proc", getpid(), text, sizeof(text)), 0);
        assert_string_equal(text, "a) b (c");
        assert_int_equal(proc_start_time("/proc", getpid(), &usec), 0);
        assert_int_equal(usec, start);
}

static void test_gone(void **state) {
        struct mg_proc proc;
        struct mg_proc_status status;
        uint64_t value;
        char text[64];
        int hold[2];

        assert_int_equal(pipe(hold), 0);
        pid_t child = fork();
        if (child == 0) {
                close(hold[1]);
                (void) read(hold[0], text, 1);
                _exit(0);
        }
        assert_true(child > 0);
        assert_int_equal(proc_open("/proc", child, &proc), 0);
        close(hold[1]);
        close(hold[0]);
        assert_int_equal(waitid(P_PID, (id_t) child, &(siginfo_t){}, WEXITED | WNOWAIT), 0);

        /* A zombie is not gone: it holds nothing. */
        assert_int_equal(proc_rss_anon(&proc, &value), 0);
        assert_int_equal(value, 0);
        assert_int_equal(proc_status("/proc", child, &status), 0);
        assert_int_equal(status.state, 'Z');
        assert_int_equal(status.swap_bytes, MG_UNKNOWN);

        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_int_equal(proc_rss_anon(&proc, &value), -ESRCH);
        assert_int_equal(proc_open("/proc", child, &(struct mg_proc){}), -ESRCH);
        assert_int_equal(proc_start_time("/proc", child, &value), -ESRCH);
        assert_int_equal(proc_cpu_usage("/proc", child, &value), -ESRCH);
        assert_int_equal(proc_status("/proc", child, &status), -ESRCH);
        assert_int_equal(proc_comm("/proc", child, text, sizeof(text)), -ESRCH);
        assert_int_equal(proc_exe("/proc", child, text, sizeof(text)), -ESRCH);
        assert_int_equal(proc_cgroup_path("/proc", child, text, sizeof(text)), -ESRCH);
        assert_int_equal(proc_anon_huge("/proc", child, &value), -ESRCH);
        assert_int_equal(proc_start_time("/proc", 0, &value), -EINVAL);
        assert_int_equal(proc_start_time("/proc", -1, &value), -EINVAL);
        proc_close(&proc);
}

static int find_self(void *userdata, pid_t pid) {
        unsigned *n = userdata;
        (*n)++;
        return pid == getpid() ? 7 : 0;
}

static int count(void *userdata, pid_t pid) {
        unsigned *n = userdata;
        (*n)++;
        return 0;
}

static void test_walk(void **state) {
        unsigned n = 0;

        assert_int_equal(proc_walk("/proc", find_self, &n), 7);
        assert_true(n > 0);
        assert_int_equal(proc_walk("/proc", count, &n), 0);
        assert_int_equal(proc_walk("/nowhere", count, &n), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stat),           cmocka_unit_test(test_cgroup),
                cmocka_unit_test(test_fixture_status), cmocka_unit_test(test_own_process),
                cmocka_unit_test(test_gone),           cmocka_unit_test(test_walk),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
