/* SPDX-License-Identifier: MIT */
/* The small pure parts of the daemon: the token bucket, the table of costs, files replaced whole. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "daemon/costs.h"
#include "daemon/rate_limit.h"
#include "daemon/store_file.h"

static void test_rate_limit(void **state) {
        struct rate_limit limit = {};
        unsigned taken = 0;

        while (rate_limit_take(&limit, 5, 100, 1000))
                taken++;
        assert_int_equal(taken, 5);
        assert_false(rate_limit_take(&limit, 5, 100, 1099));
        assert_true(rate_limit_take(&limit, 5, 100, 1100));
        assert_false(rate_limit_take(&limit, 5, 100, 1100));
        /* Parts of an interval add up. */
        assert_false(rate_limit_take(&limit, 5, 100, 1150));
        assert_true(rate_limit_take(&limit, 5, 100, 1200));
        /* A long silence earns a burst, no more. */
        for (taken = 0; rate_limit_take(&limit, 5, 100, UINT64_MAX); taken++)
                ;
        assert_int_equal(taken, 5);
        /* A clock that goes back earns nothing and takes nothing. */
        assert_false(rate_limit_take(&limit, 5, 100, 5));
}

static struct mg_policy_state learned(uint64_t per_gib, uint64_t statistics) {
        struct mg_policy_state state;

        policy_init(&state);
        state.pause_usec_per_gib = per_gib;
        state.statistics_usec = statistics;
        state.statistics_bytes = MG_GIB;
        return state;
}

static void test_costs(void **state) {
        struct mg_policy_state a = learned(7000, 12);
        struct mg_policy_state b = learned(MG_UNKNOWN, 34);
        struct mg_policy_state nothing = learned(MG_UNKNOWN, MG_UNKNOWN);
        struct costs costs = {}, again = {};
        char *text = NULL;
        size_t length;

        assert_int_equal(costs_remember(&costs, "a.service", &a), 1);
        assert_int_equal(costs_remember(&costs, "a.service", &a), 0);
        assert_int_equal(costs_remember(&costs, "b\\x2dc.service", &b), 1);
        assert_int_equal(costs_remember(&costs, "nothing.service", &nothing), 0);
        assert_int_equal(costs_remember(&costs, "with space", &a), 0);
        assert_int_equal(costs_remember(&costs, "with\nline", &a), 0);
        assert_int_equal(costs_encode(&costs, &text, &length), 0);
        assert_int_equal(strlen(text), length);
        assert_int_equal(costs_decode(&again, text), 0);
        assert_int_equal(again.n_items, 2);
        costs_recall(&again, "b\\x2dc.service", &nothing);
        assert_int_equal(nothing.statistics_usec, 34);
        assert_true(nothing.pause_usec_per_gib == MG_UNKNOWN);
        costs_recall(&again, "unheard.service", &nothing);
        assert_int_equal(nothing.statistics_usec, 34);
        costs_recall(&again, "a.service", &nothing);
        assert_int_equal(nothing.pause_usec_per_gib, 7000);
        /* Forgotten, as `memguardctl resume` does, it is forgotten here. */
        policy_init(&nothing);
        assert_int_equal(costs_remember(&costs, "a.service", &nothing), 1);
        nothing = learned(1, 2);
        costs_recall(&costs, "a.service", &nothing);
        assert_true(nothing.pause_usec_per_gib == MG_UNKNOWN);
        /* Cut anywhere, it is damaged, and leaves nothing half read. */
        costs_done(&again);
        for (size_t cut = 0; cut < length; cut++) {
                text[length - 1 - cut] = '\0';
                assert_int_equal(costs_decode(&again, text), -EBADMSG);
                assert_int_equal(again.n_items, 0);
        }
        free(text);
        costs_done(&costs);
}

static void test_costs_hostile(void **state) {
        static const char *const table[] = {
                "",
                "memguard-costs 2\nend\n",
                "memguard-costs 1\n",
                "memguard-costs 1\na 1 2 3 4\nend\n",
                "memguard-costs 1\na 1 2 3 4 5 6\nend\n",
                "memguard-costs 1\na 1 2 3 4 x\nend\n",
                "memguard-costs 1\na 1 2 3 4 -1\nend\n",
                "memguard-costs 1\na 1 2 3 4 18446744073709551616\nend\n",
                "memguard-costs 1\n 1 2 3 4 5\nend\n",
                "memguard-costs 1\na  1 2 3 4\nend\n",
                "memguard-costs 1\na 1 2 3 4 5\r\nend\n",
                "memguard-costs 1\nend\nmore\n",
                "memguard-costs 1\n\nend\n",
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct costs costs = {};

                assert_int_equal(costs_decode(&costs, table[i]), -EBADMSG);
                assert_int_equal(costs.n_items, 0);
        }
}

static void test_costs_are_bounded(void **state) {
        struct mg_policy_state known = learned(1, 2);
        struct mg_policy_state recalled = learned(MG_UNKNOWN, MG_UNKNOWN);
        struct costs costs = {};
        char name[32];

        for (int i = 0; i < COSTS_MAX + 10; i++) {
                snprintf(name, sizeof(name), "run-%d.scope", i);
                assert_int_equal(costs_remember(&costs, name, &known), 1);
        }
        assert_int_equal(costs.n_items, COSTS_MAX);
        costs_recall(&costs, "run-9.scope", &recalled);
        assert_true(recalled.pause_usec_per_gib == MG_UNKNOWN);
        costs_recall(&costs, "run-10.scope", &recalled);
        assert_int_equal(recalled.pause_usec_per_gib, 1);

        /* One that goes on learning outlives those that came after it. */
        known.pause_usec_per_gib = 3;
        assert_int_equal(costs_remember(&costs, "run-10.scope", &known), 1);
        assert_int_equal(costs_remember(&costs, "new.scope", &known), 1);
        assert_int_equal(costs.n_items, COSTS_MAX);
        costs_recall(&costs, "run-10.scope", &recalled);
        assert_int_equal(recalled.pause_usec_per_gib, 3);
        costs_recall(&costs, "new.scope", &recalled);
        assert_int_equal(recalled.pause_usec_per_gib, 3);
        recalled = learned(MG_UNKNOWN, MG_UNKNOWN);
        costs_recall(&costs, "run-11.scope", &recalled);
        assert_true(recalled.pause_usec_per_gib == MG_UNKNOWN);
        costs_done(&costs);
}

static void check_file(int dir_fd, const char *name, const char *want) {
        char *text = NULL;
        size_t length;

        assert_int_equal(store_file_read(dir_fd, name, 100, &text, &length), 0);
        assert_int_equal(length, strlen(want));
        assert_string_equal(text, want);
        free(text);
}

static void test_files(void **state) {
        char directory[] = "/tmp/memguard-store-XXXXXX";
        char big[200];
        char *text = NULL;
        size_t length;
        int dir_fd;

        assert_non_null(mkdtemp(directory));
        dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(store_file_read(dir_fd, "f", 100, &text, &length), -ENOENT);
        assert_int_equal(store_file_replace(dir_fd, "f", "one", 3, false), 0);
        check_file(dir_fd, "f", "one");
        assert_int_equal(store_file_replace(dir_fd, "f", "", 0, false), 0);
        check_file(dir_fd, "f", "");
        memset(big, 'x', sizeof(big));
        assert_int_equal(store_file_replace(dir_fd, "f", big, sizeof(big), false), 0);
        assert_int_equal(store_file_read(dir_fd, "f", 100, &text, &length), -EFBIG);

        /* A link put there by somebody else is followed by neither. */
        assert_int_equal(symlinkat("f", dir_fd, "l"), 0);
        assert_int_equal(symlinkat("target", dir_fd, "l.new"), 0);
        assert_int_equal(store_file_read(dir_fd, "l", 1000, &text, &length), -ELOOP);
        assert_int_equal(store_file_replace(dir_fd, "l", "two", 3, false), -ELOOP);
        assert_int_equal(faccessat(dir_fd, "target", F_OK, 0), -1);

        /* A fifo does not block, a directory is no file. */
        assert_int_equal(mkfifoat(dir_fd, "p", 0600), 0);
        assert_int_equal(store_file_read(dir_fd, "p", 100, &text, &length), -EBADMSG);
        assert_int_equal(store_file_read(dir_fd, ".", 100, &text, &length), -EBADMSG);
        assert_null(text);
        unlinkat(dir_fd, "f", 0);
        unlinkat(dir_fd, "l", 0);
        unlinkat(dir_fd, "l.new", 0);
        unlinkat(dir_fd, "p", 0);
        close(dir_fd);
        assert_int_equal(rmdir(directory), 0);
}

/* A limit on the file's size ends a write half way, as a full disk does: the old file is still there, whole. */
static void test_full_disk(void **state) {
        char directory[] = "/tmp/memguard-store-XXXXXX";
        struct rlimit before, small;
        int dir_fd;

        assert_non_null(mkdtemp(directory));
        dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(store_file_replace(dir_fd, "f", "old", 3, false), 0);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
        small = (struct rlimit){ .rlim_cur = 5, .rlim_max = before.rlim_max };
        signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        assert_int_equal(store_file_replace(dir_fd, "f", "new and longer", 14, false), -EFBIG);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        check_file(dir_fd, "f", "old");
        assert_int_equal(faccessat(dir_fd, "f.new", F_OK, 0), -1);
        assert_int_equal(unlinkat(dir_fd, "f", 0), 0);
        close(dir_fd);
        assert_int_equal(rmdir(directory), 0);
}

/* What the disk was asked for, in order: a file's name in the directory at that time, or "." for itself. */
static struct {
        char log[64];
        int dir_fd;
        int error[2]; /* what fsync() is to fail with, the first and the second time */
        int n;
} disk;

static bool is_same(int fd, const char *name) {
        struct stat a, b;

        return fstat(fd, &a) == 0 && fstatat(disk.dir_fd, name, &b, 0) == 0 &&
               a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

/* In place of libc's. */
int fsync(int fd) {
        static const char *const names[] = { "f", "f.new", "." };

        for (size_t i = 0; i < MG_ELEMENTS(names); i++)
                if (is_same(fd, names[i])) {
                        strcat(disk.log, names[i]);
                        strcat(disk.log, " ");
                }
        if (disk.n < 2 && disk.error[disk.n] != 0) {
                errno = disk.error[disk.n++];
                return -1;
        }
        disk.n++;
        return 0;
}

static void test_durable(void **state) {
        static const struct {
                bool durable;
                int error[2];
                int want;
                const char *log;
                const char *content;
        } table[] = {
                { true, { 0, 0 }, 0, "f.new . ", "new" },
                { false, { EIO, EIO }, 0, "", "new" },
                /* What is not on the disk does not replace what is. */
                { true, { EIO, 0 }, -EIO, "f.new ", "old" },
                { true, { ENOSPC, 0 }, -ENOSPC, "f.new ", "old" },
                { true, { 0, EIO }, -EIO, "f.new . ", "new" },
                { true, { EINTR, 0 }, 0, "f.new f.new . ", "new" },
                /* A file system without such a thing. */
                { true, { EINVAL, EINVAL }, 0, "f.new . ", "new" },
        };
        char directory[] = "/tmp/memguard-store-XXXXXX";

        assert_non_null(mkdtemp(directory));
        disk.dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                assert_int_equal(store_file_replace(disk.dir_fd, "f", "old", 3, false), 0);
                disk.n = 0;
                disk.log[0] = '\0';
                memcpy(disk.error, table[i].error, sizeof(disk.error));
                assert_int_equal(
                                store_file_replace(disk.dir_fd, "f", "new", 3, table[i].durable),
                                table[i].want);
                assert_string_equal(disk.log, table[i].log);
                check_file(disk.dir_fd, "f", table[i].content);
                assert_int_equal(faccessat(disk.dir_fd, "f.new", F_OK, 0), -1);
        }
        unlinkat(disk.dir_fd, "f", 0);
        close(disk.dir_fd);
        assert_int_equal(rmdir(directory), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rate_limit),    cmocka_unit_test(test_costs),
                cmocka_unit_test(test_costs_hostile), cmocka_unit_test(test_costs_are_bounded),
                cmocka_unit_test(test_files),         cmocka_unit_test(test_full_disk),
                cmocka_unit_test(test_durable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
