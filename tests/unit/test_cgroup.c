/* SPDX-License-Identifier: MIT */
/* cgroups through captured trees (--cgroup-root), and the root of the machine the test runs on. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "host/cgroup.h"
#include "host/memory_stat.h"
#include "skip.h"

#define NGINX "/system.slice/nginx.service"

static char *root(const char *kernel) {
        static char path[512];
        snprintf(path, sizeof(path), "%s/cgroup/%s", getenv("TEST_DATA"), kernel);
        return path;
}

static void test_find_root(void **state) {
        char path[PATH_MAX];
        enum mg_hierarchy hierarchy = _MG_HIERARCHY_MAX;
        struct statfs status;

        assert_int_equal(cgroup_find_root("/some/where//", path, sizeof(path), &hierarchy), 0);
        assert_string_equal(path, "/some/where");
        assert_int_equal(hierarchy, MG_HIERARCHY_UNIFIED);
        assert_int_equal(cgroup_find_root("/some/where", path, 5, &hierarchy), -ENAMETOOLONG);

        /* Whatever this machine has, it is an answer; twice, because libcgroup keeps state. */
        for (int i = 0; i < 2; i++) {
                assert_int_equal(cgroup_find_root(NULL, path, sizeof(path), &hierarchy), 0);
                if (hierarchy == MG_HIERARCHY_NONE) {
                        assert_string_equal(path, "");
                        continue;
                }
                assert_int_equal(statfs(path, &status), 0);
                assert_int_equal(
                                hierarchy, status.f_type == 0x63677270 ? MG_HIERARCHY_UNIFIED
                                                                       : MG_HIERARCHY_LEGACY);
        }
        assert_string_equal(hierarchy_to_string(MG_HIERARCHY_LEGACY), "legacy");
}

static void test_sample(void **state) {
        static const struct {
                const char *kernel;
                uint64_t swap, current, high, max, high_events;
        } cases[] = {
                { "5.10", MG_UNKNOWN, 570000000, MG_UNKNOWN, MG_UNKNOWN, MG_UNKNOWN },
                { "6.1", MG_UNKNOWN, MG_UNKNOWN, MG_UNKNOWN, MG_UNKNOWN, MG_UNKNOWN },
                { "6.12", 4096, 570425344, MG_UNKNOWN, 1073741824, 17 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct mg_cgroup cgroup;
                struct mg_memory memory;
                struct stat status;
                char path[600];

                assert_int_equal(cgroup_open(root(cases[i].kernel), NGINX, &cgroup), 0);
                snprintf(path, sizeof(path), "%s" NGINX, root(cases[i].kernel));
                assert_int_equal(stat(path, &status), 0);
                assert_int_equal(cgroup.inode, status.st_ino);
                assert_int_equal(cgroup.no_swap_file, cases[i].swap == MG_UNKNOWN);

                memory_unknown(&memory);
                assert_int_equal(cgroup_sample(&cgroup, &memory), 0);
                assert_int_equal(memory.anon_bytes, 536870912);
                assert_int_equal(memory.swap_bytes, cases[i].swap);
                assert_int_equal(memory.current_bytes, MG_UNKNOWN);
                assert_int_equal(cgroup_limits(&cgroup, &memory), 0);
                assert_int_equal(memory.anon_bytes, 536870912);
                assert_int_equal(memory.current_bytes, cases[i].current);
                assert_int_equal(memory.high_bytes, cases[i].high);
                assert_int_equal(memory.max_bytes, cases[i].max);
                assert_int_equal(memory.high_events, cases[i].high_events);
                cgroup_close(&cgroup);
                assert_int_equal(cgroup.stat_fd, -EBADF);
                cgroup_close(&cgroup);
        }
}

static void test_counters(void **state) {
        struct mg_cgroup cgroup;
        uint64_t value = 1;

        assert_int_equal(cgroup_open(root("6.12"), NGINX, &cgroup), 0);
        assert_int_equal(cgroup_cpu_usage(&cgroup, &value), 0);
        assert_int_equal(value, 1234567);
        assert_int_equal(cgroup_dying(&cgroup, &value), 0);
        assert_int_equal(value, 5);
        cgroup_close(&cgroup);

        assert_int_equal(cgroup_open(root("6.1"), NGINX, &cgroup), 0);
        assert_int_equal(cgroup_cpu_usage(&cgroup, &value), -EOPNOTSUPP);
        assert_int_equal(cgroup_dying(&cgroup, &value), -EOPNOTSUPP);
        assert_int_equal(value, 5);
        cgroup_close(&cgroup);
}

static void test_open_refusals(void **state) {
        struct mg_cgroup cgroup = { .dir_fd = -77 };
        char too_long[9000];

        memset(too_long, 'a', sizeof(too_long));
        too_long[0] = '/';
        too_long[sizeof(too_long) - 1] = '\0';

        assert_int_equal(cgroup_open(root("6.12"), "/system.slice/none.service", &cgroup), -ENOENT);
        assert_int_equal(cgroup_open(root("6.12"), "/system.slice", &cgroup), -EOPNOTSUPP);
        assert_int_equal(cgroup_open(root("6.12"), "/", &cgroup), -EOPNOTSUPP);
        assert_int_equal(cgroup_open(root("6.12"), "", &cgroup), -EINVAL);
        assert_int_equal(cgroup_open(root("6.12"), "system.slice", &cgroup), -EINVAL);
        assert_int_equal(cgroup_open(root("6.12"), "/../6.12" NGINX, &cgroup), -EINVAL);
        assert_int_equal(cgroup_open(root("6.12"), NGINX "/..", &cgroup), -EINVAL);
        assert_int_equal(cgroup_open(root("6.12"), too_long, &cgroup), -ENAMETOOLONG);
        assert_int_equal(cgroup_open("/nowhere", NGINX, &cgroup), -ENOENT);
        assert_int_equal(cgroup.dir_fd, -77);
}

/* A tree of our own that can lose a unit, as a cgroupfs does. */
static void test_vanish(void **state) {
        char base[] = "/tmp/memguard-test-XXXXXX", path[128];
        struct mg_cgroup cgroup;
        struct mg_memory memory;
        uint64_t value;

        assert_non_null(mkdtemp(base));
        snprintf(path, sizeof(path), "%s/x.service", base);
        assert_int_equal(mkdir(path, 0755), 0);
        int dir = open(path, O_RDONLY | O_DIRECTORY);
        assert_true(dir >= 0);
        for (const char *const *name = (const char *const[]){ "cgroup.procs", "memory.stat", NULL };
             *name; name++)
                close(openat(dir, *name, O_CREAT | O_WRONLY, 0644));

        assert_int_equal(cgroup_open(base, "/x.service", &cgroup), 0);
        memory_unknown(&memory);
        assert_int_equal(cgroup_limits(&cgroup, &memory), 0);
        assert_int_equal(cgroup_cpu_usage(&cgroup, &value), -EOPNOTSUPP);
        unlinkat(dir, "cgroup.procs", 0);
        unlinkat(dir, "memory.stat", 0);
        close(dir);
        rmdir(path);
        rmdir(base);
        assert_int_equal(cgroup_limits(&cgroup, &memory), -ENODEV);
        assert_int_equal(cgroup_cpu_usage(&cgroup, &value), -ENODEV);
        assert_int_equal(cgroup_open(base, "/x.service", &(struct mg_cgroup){}), -ENOENT);
        cgroup_close(&cgroup);
}

static void test_pids(void **state) {
        pid_t pids[16] = {};
        bool seen[400] = {};

        int n = cgroup_pids(root("6.12"), NGINX, pids, MG_ELEMENTS(pids));
        assert_int_equal(n, 5); /* not the 0 of a foreign pid namespace, not "nonsense" */
        for (int i = 0; i < n; i++)
                seen[pids[i]] = true;
        for (int pid = 101; pid <= 105; pid++)
                assert_true(seen[pid]);

        /* More than there is room for: counted, not written. */
        pids[2] = -1;
        assert_int_equal(cgroup_pids(root("6.12"), NGINX, pids, 2), 5);
        assert_int_equal(pids[2], -1);
        assert_int_equal(cgroup_pids(root("6.12"), NGINX, NULL, 0), 5);

        /* A user manager's own are those in none of its units. */
        n = cgroup_pids(root("6.12"), "/user.slice/user-1000.slice/user@1000.service", pids,
                        MG_ELEMENTS(pids));
        assert_int_equal(n, 1);
        assert_int_equal(pids[0], 303);
        assert_int_equal(cgroup_pids(root("6.12"), "/system.slice/a b (c).scope", pids, 1), 1);
        assert_int_equal(pids[0], 202);
        assert_int_equal(cgroup_pids(root("6.12"), "/gone.service", pids, 1), -ENOENT);
}

struct seen {
        unsigned n;
        bool escaped, spaced, deep, root_first;
        const char *stop_at;
};

static int see(void *userdata, const char *path) {
        struct seen *seen = userdata;

        if (seen->n++ == 0)
                seen->root_first = strcmp(path, "/") == 0;
        seen->escaped |= strcmp(path, "/system.slice/dev-disk\\x2dby\\x2did.service") == 0;
        seen->spaced |= strcmp(path, "/system.slice/a b (c).scope") == 0;
        seen->deep |= strcmp(path, NGINX "/worker/deep") == 0;
        return seen->stop_at && strcmp(path, seen->stop_at) == 0 ? 42 : 0;
}

static void test_walk(void **state) {
        struct seen seen = {};

        assert_int_equal(cgroup_walk(root("6.12"), see, &seen), 0);
        assert_int_equal(seen.n, 14);
        assert_true(seen.root_first && seen.escaped && seen.spaced && seen.deep);

        seen = (struct seen){ .stop_at = "/" };
        assert_int_equal(cgroup_walk(root("6.12"), see, &seen), 42);
        assert_int_equal(seen.n, 1);
        assert_int_equal(cgroup_walk("/nowhere", see, &seen), -ENOENT);
}

static int check_shape(void *userdata, const char *path) {
        unsigned *n = userdata;

        assert_int_equal(path[0], '/');
        assert_true(path[1] != '/');
        return ++*n >= 1000;
}

/* A real hierarchy, where this machine has the memory controller. */
static void test_walk_own_mount(void **state) {
        char path[PATH_MAX];
        enum mg_hierarchy hierarchy;
        unsigned n = 0;

        assert_int_equal(cgroup_find_root(NULL, path, sizeof(path), &hierarchy), 0);
        if (hierarchy == MG_HIERARCHY_NONE)
                skip_because("no memory controller on this machine");
        assert_true(cgroup_walk(path, check_shape, &n) >= 0);
        assert_true(n > 0);
}

/* Deeper than anything systemd makes: the walk ends, and no descriptor is lost. */
static void test_deep_nesting(void **state) {
        char base[] = "/tmp/memguard-test-XXXXXX";
        struct seen seen = {};
        int before, after;

        assert_non_null(mkdtemp(base));
        int dir = open(base, O_RDONLY | O_DIRECTORY);
        for (int i = 0; i < 60; i++) {
                assert_int_equal(mkdirat(dir, "d", 0755), 0);
                int next = openat(dir, "d", O_RDONLY | O_DIRECTORY);
                close(dir);
                dir = next;
        }
        before = dup(0);
        close(before);
        assert_int_equal(cgroup_walk(base, see, &seen), 0);
        after = dup(0);
        close(after);
        assert_int_equal(before, after);
        assert_int_equal(seen.n, 33);

        for (int i = 0; i < 60; i++) {
                int parent = openat(dir, "..", O_RDONLY | O_DIRECTORY);
                close(dir);
                assert_int_equal(unlinkat(parent, "d", AT_REMOVEDIR), 0);
                dir = parent;
        }
        close(dir);
        rmdir(base);
}

/* N cgroups below DIRECTORY with a process each; removes them instead. */
static void make_cgroups(const char *directory, unsigned n, const char *suffix, bool remove_them) {
        int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char name[64], procs[80];

        assert_true(dir >= 0);
        for (unsigned i = 0; i < n; i++) {
                snprintf(name, sizeof(name), "%u%s", i, suffix);
                snprintf(procs, sizeof(procs), "%s/cgroup.procs", name);
                if (remove_them) {
                        (void) unlinkat(dir, procs, 0);
                        assert_int_equal(unlinkat(dir, name, AT_REMOVEDIR), 0);
                        continue;
                }
                assert_int_equal(mkdirat(dir, name, 0755), 0);
                (void) linkat(dir, "cgroup.procs", dir, procs, 0);
        }
        close(dir);
}

/* Makers of cgroups without end: of each tree so many are visited and of all so many, and the next tree's are not left out. */
static void test_crowds(void **state) {
        char base[] = "/dev/shm/memguard-test-XXXXXX", tree[64], other[64], slice[64], procs[80];
        struct seen seen = {};

        if (!mkdtemp(base))
                skip_because("no /dev/shm, and a disk would take a minute to remove these directories");
        snprintf(tree, sizeof(tree), "%s/a.service", base);
        snprintf(other, sizeof(other), "%s/b.service", base);
        snprintf(slice, sizeof(slice), "%s/c.slice", base);
        snprintf(procs, sizeof(procs), "%s/cgroup.procs", tree);
        assert_int_equal(mkdir(tree, 0755) | mkdir(other, 0755) | mkdir(slice, 0755), 0);
        FILE *file = fopen(procs, "we");
        assert_non_null(file);
        fputs("7\n", file);
        fclose(file);

        make_cgroups(tree, MG_CGROUP_TREE_MAX - 1, "", false);
        make_cgroups(other, 5, "", false);
        assert_int_equal(cgroup_walk(base, see, &seen), 0);
        assert_int_equal(seen.n, 1 + MG_CGROUP_TREE_MAX + 6 + 1);
        assert_int_equal(cgroup_pids(base, "/a.service", NULL, 0), MG_CGROUP_TREE_MAX);
        make_cgroups(tree, 40, ".more", false);
        seen = (struct seen){};
        assert_int_equal(cgroup_walk(base, see, &seen), -E2BIG);
        assert_int_equal(seen.n, 1 + MG_CGROUP_TREE_MAX + 6 + 1);
        assert_int_equal(cgroup_pids(base, "/a.service", NULL, 0), MG_CGROUP_TREE_MAX);

        make_cgroups(slice, MG_CGROUP_WALK_MAX, ".slice", false);
        seen = (struct seen){};
        assert_int_equal(cgroup_walk(base, see, &seen), -E2BIG);
        assert_int_equal(seen.n, MG_CGROUP_WALK_MAX);

        make_cgroups(slice, MG_CGROUP_WALK_MAX, ".slice", true);
        make_cgroups(tree, 40, ".more", true);
        make_cgroups(tree, MG_CGROUP_TREE_MAX - 1, "", true);
        make_cgroups(other, 5, "", true);
        unlink(procs);
        assert_int_equal(rmdir(tree) | rmdir(other) | rmdir(slice) | rmdir(base), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_find_root),    cmocka_unit_test(test_sample),
                cmocka_unit_test(test_counters),     cmocka_unit_test(test_open_refusals),
                cmocka_unit_test(test_vanish),       cmocka_unit_test(test_pids),
                cmocka_unit_test(test_walk),         cmocka_unit_test(test_walk_own_mount),
                cmocka_unit_test(test_deep_nesting), cmocka_unit_test(test_crowds),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
