/* SPDX-License-Identifier: MIT */
/*
 * Which cgroups become units, and how many: a whole manager over a tree of directories. Their cgroups have no memory.stat, so that none
 * costs a descriptor. The trees are in /dev/shm, as a disk takes seconds to remove ten thousand directories.
 */
#include "daemon/discovery.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macros.h"
#include "check.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/unit.h"
#include "daemon/unit_tree.h"

#define USER_1000 "/user.slice/user-1000.slice/user@1000.service"
#define USER_1001 "/user.slice/user-1001.slice/user@1001.service"

static struct manager *manager;
static char directory[64], root[80], log_path[80];

static void remove_all(const char *base, const char *pattern) {
        char command[256];

        snprintf(command, sizeof(command), "rm -r %s%s", base, pattern);
        assert_int_equal(system(command), 0);
}

static void write_file(const char *path, const char *text) {
        FILE *file = fopen(path, "we");

        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

/* POPULATED NULL: a kernel that says nothing about it. */
static void make_cgroup(const char *path, const char *populated) {
        char full[512];

        for (const char *at = path + 1; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
                int length =
                                (int) (strchr(at, '/') ? strchr(at, '/') - path
                                                       : (ptrdiff_t) strlen(path));
                snprintf(full, sizeof(full), "%s%.*s", root, length, path);
                (void) mkdir(full, 0755);
        }
        snprintf(full, sizeof(full), "%s%s/cgroup.procs", root, path);
        write_file(full, "");
        if (!populated)
                return;
        snprintf(full, sizeof(full), "%s%s/cgroup.events", root, path);
        write_file(full, populated);
}

static void make_cgroups(const char *below, unsigned first, unsigned n, const char *suffix) {
        char path[256];

        for (unsigned i = first; i < first + n; i++) {
                snprintf(path, sizeof(path), "%s/%u%s", below, i, suffix);
                make_cgroup(path, "populated 1\nfrozen 0\n");
        }
}

static void look_again(void) {
        discovery_stop(manager);
        assert_int_equal(discovery_start(manager), 0);
}

static bool is_known(const char *path) {
        return unit_find_key(manager, path, NULL);
}

static unsigned count_said(const char *what) {
        FILE *file = fopen(log_path, "re");
        char line[1024];
        unsigned n = 0;

        assert_non_null(file);
        while (fgets(line, sizeof(line), file))
                n += strstr(line, what) != NULL;
        fclose(file);
        return n;
}

static int setup(void **state) {
        static char config[80];
        struct options options = {
                .config_file = config,
                .cgroup_root = root,
                .source = SOURCE_CGROUP,
                .log_level = -1,
                .by_hand = true,
        };

        snprintf(directory, sizeof(directory), "%s/memguard-discovery-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        assert_non_null(mkdtemp(directory));
        snprintf(root, sizeof(root), "%s/root", directory);
        snprintf(config, sizeof(config), "%s/ini", directory);
        snprintf(log_path, sizeof(log_path), "%s/log", directory);
        assert_int_equal(mkdir(root, 0755), 0);
        write_file(config, "[Daemon]\nIntervalSec=1h\n");
        options.runtime_directory = directory;
        assert_true(asprintf(&options.state_directory, "%s/state", directory) > 0);
        journal_open(LOG_WARNING);
        journal_sink()->stderr_fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        assert_true(journal_sink()->stderr_fd >= 0);
        sink_set_target(journal_sink(), MG_LOG_TARGET_CONSOLE);
        assert_int_equal(manager_new(&options, &manager), 0);
        return 0;
}

static int teardown(void **state) {
        manager = manager_free(manager);
        sink_set_target(journal_sink(), MG_LOG_TARGET_NULL);
        close(journal_sink()->stderr_fd);
        remove_all(directory, "");
        return 0;
}

static void test_empty(void **state) {
        make_cgroup("/system.slice/silent.service", NULL);
        make_cgroup("/system.slice/busy.service", "populated 1\nfrozen 0\n");
        make_cgroup("/system.slice/empty.service", "populated 0\nfrozen 0\n");
        make_cgroup("/system.slice/odd.service", "populated\nfrozen 0\n");
        look_again();
        assert_true(is_known("/system.slice/silent.service"));
        assert_true(is_known("/system.slice/busy.service"));
        assert_true(is_known("/system.slice/odd.service"));
        assert_false(is_known("/system.slice/empty.service"));
        assert_int_equal(manager->n_units, 3);

        /* What is known stays while it is empty, and is the same; what was empty is found once it is not. */
        struct unit *busy = unit_find_key(manager, "/system.slice/busy.service", NULL);
        busy->paused = true;
        make_cgroup("/system.slice/busy.service", "populated 0\nfrozen 0\n");
        make_cgroup("/system.slice/empty.service", "populated 1\nfrozen 0\n");
        look_again();
        assert_ptr_equal(unit_find_key(manager, "/system.slice/busy.service", NULL), busy);
        assert_true(busy->paused);
        assert_true(is_known("/system.slice/empty.service"));
        remove_all(root, "/system.slice/busy.service");
        look_again();
        assert_false(is_known("/system.slice/busy.service"));
}

/* A user's manager that makes units without end: one warning, and nobody else is the worse for it. */
static void test_too_many_units(void **state) {
        make_cgroups(USER_1000 "/app.slice", 0, UNITS_PER_TREE + 46, ".service");
        /* Names of another user's are in the same tree. */
        make_cgroups(USER_1000 "/user@1001.service", 0, 10, ".service");
        make_cgroups(USER_1001 "/app.slice", 0, 10, ".scope");
        make_cgroups("/system.slice", 0, UNITS_PER_TREE + 10, ".service");
        look_again();
        assert_int_equal(manager->n_units, UNITS_PER_TREE + 10 + UNITS_PER_TREE + 10);
        assert_true(is_known(USER_1001 "/app.slice/9.scope"));
        assert_int_equal(count_said("has more than 1024 units"), 1);
        assert_int_equal(count_said(USER_1000 " has more"), 1);
        look_again();
        assert_int_equal(count_said("has more than 1024 units"), 1);

        /* Those that end make room. */
        remove_all(root, USER_1000 "/app.slice/*[0-4].service");
        look_again();
        look_again();
        assert_int_equal(
                        manager->n_units,
                        (UNITS_PER_TREE + 46) / 2 + 10 + 10 + UNITS_PER_TREE + 10);
        remove_all(root, "/user.slice");
        look_again();
        assert_int_equal(manager->n_units, UNITS_PER_TREE + 10);
        assert_null(manager->trees);
}

/* More cgroups than are looked through: said once, and what is gone is let go nevertheless. */
static void test_too_many_cgroups(void **state) {
        make_cgroup("/system.slice/gone.service", NULL);
        make_cgroups(USER_1000, 0, MG_CGROUP_TREE_MAX + 10, "");
        make_cgroups(USER_1001, 0, 10, ".scope");
        look_again();
        assert_true(is_known(USER_1001 "/9.scope"));
        assert_true(is_known("/system.slice/gone.service"));
        assert_int_equal(count_said("More cgroups"), 1);
        remove_all(root, "/system.slice/gone.service");
        look_again();
        assert_false(is_known("/system.slice/gone.service"));
        assert_true(is_known(USER_1001 "/9.scope"));
        assert_int_equal(count_said("More cgroups"), 1);
        remove_all(root, USER_1000);
        look_again();
        make_cgroups(USER_1000, 0, MG_CGROUP_TREE_MAX + 10, "");
        look_again();
        assert_int_equal(count_said("More cgroups"), 2);
}

int main(void) {
#define DISCOVERY_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                DISCOVERY_TEST(test_empty),
                DISCOVERY_TEST(test_too_many_units),
                DISCOVERY_TEST(test_too_many_cgroups),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
