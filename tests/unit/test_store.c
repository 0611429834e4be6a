/* SPDX-License-Identifier: MIT */
/* What the store keeps of units whose names repeat: pauses and costs of one are never another's. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/macros.h"
#include "bus_fixture.h"
#include "daemon/costs.h"
#include "daemon/identity.h"
#include "daemon/store.h"
#include "daemon/store_file.h"
#include "host/cleanup.h"

#define SYSTEM    "/system.slice/nginx.service"
#define MOVED     "/web.slice/web-front.slice/nginx.service"
#define USER      "/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service"
#define CONTAINER "/machine.slice/systemd-nspawn@a.service/payload/system.slice/nginx.service"
#define LXC       "/lxc.payload.a/system.slice/nginx.service"

/* In an order in which the system's own unit is not the first to be found. */
static const char *const paths[] = { CONTAINER, USER, LXC, SYSTEM };

static int syncs;
static int sync_error;

/* In place of libc's. */
int fsync(int fd) {
        syncs++;
        errno = sync_error;
        return sync_error == 0 ? 0 : -1;
}

static struct unit *add(const char *path) {
        struct unit_identity identity = {
                .name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path,
                .path = path[0] == '/' ? path : NULL,
                .user = mg_streq(path, USER),
                .user_uid = 1000,
        };
        struct unit *unit;

        assert_int_equal(unit_get(manager, &identity, &unit), 0);
        return unit;
}

static void add_all(void) {
        for (size_t i = 0; i < MG_ELEMENTS(paths); i++)
                add(paths[i]);
}

/* As a restart of the daemon is for its store. */
static void restart(void) {
        while (unit_first(manager))
                unit_free(unit_first(manager));
        store_save_all(manager);
        store_close(manager);
        file_closep(&manager->units_dir_fd);
        assert_int_equal(store_open(manager), 0);
}

static void write_text(const char *name, const char *text) {
        assert_int_equal(
                        store_file_replace(manager->state_dir_fd, name, text, strlen(text), false),
                        0);
}

static void write_file(const char *name, const char *text) {
        write_text(name, text);
        store_close(manager);
        file_closep(&manager->units_dir_fd);
        assert_int_equal(store_open(manager), 0);
}

static void expect_file(const char *name, const char *want) {
        MG_CLEANUP(freep) char *text = NULL;
        size_t length;

        assert_int_equal(store_file_read(manager->state_dir_fd, name, 10000, &text, &length), 0);
        assert_string_equal(text, want);
}

static void expect_paused_alone(const char *path) {
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                if (u->paused != mg_streq(u->path, path))
                        fail_msg("%s is %spaused", u->path, u->paused ? "" : "not ");
}

static void test_pauses(void **state) {
        static const char *const lines[] = { CONTAINER "\n", USER "\n", LXC "\n",
                                             "nginx.service\n" };

        for (size_t i = 0; i < MG_ELEMENTS(paths); i++) {
                add_all();
                assert_int_equal(
                                manager_set_paused(manager, unit_find(manager, paths[i]), true), 0);
                expect_file("paused", lines[i]);
                restart();
                add_all();
                expect_paused_alone(paths[i]);

                /* The others may be resumed, which they are already: it stays paused. */
                for (size_t j = 0; j < MG_ELEMENTS(paths); j++)
                        if (j != i)
                                manager_set_paused(manager, unit_find(manager, paths[j]), false);
                expect_paused_alone(paths[i]);
                expect_file("paused", lines[i]);

                /* Its own life may end and begin again while the daemon runs. */
                unit_end(unit_find(manager, paths[i]));
                assert_true(add(paths[i])->paused);
                manager_set_paused(manager, unit_find(manager, paths[i]), false);
                expect_file("paused", "");
                restart();
                add_all();
                expect_paused_alone("");
        }
}

/* A unit that is not here keeps its pause while one of the same name is paused and resumed. */
static void test_not_here(void **state) {
        static const char both[] = CONTAINER "\nnginx.service\nweb.process\n";

        write_file("paused", both);
        add(USER);
        expect_paused_alone("");
        manager_set_paused(manager, unit_find(manager, USER), true);
        expect_file("paused", USER "\n" CONTAINER "\nnginx.service\nweb.process\n");
        manager_set_paused(manager, unit_find(manager, USER), false);
        expect_file("paused", both);
        assert_true(add("web.process")->paused);
        assert_true(add(SYSTEM)->paused);
        assert_true(add(CONTAINER)->paused);
        manager_set_paused(manager, unit_find(manager, CONTAINER), false);
        assert_true(unit_find(manager, SYSTEM)->paused);
        assert_false(unit_find(manager, USER)->paused);
        /* All that is here, and all that is not. */
        restart();
        manager_set_paused(manager, NULL, false);
        expect_file("paused", "");
}

/* Files that name units alone, as all did once: the system's unit is meant, wherever it is now. */
static void test_names(void **state) {
        static const char *const homes[] = { SYSTEM, MOVED };

        for (size_t i = 0; i < MG_ELEMENTS(homes); i++) {
                write_file("paused", "nginx.service\n");
                write_file("costs", "memguard-costs 1\nnginx.service 7000 - 5 6 -\nend\n");
                add(CONTAINER);
                add(USER);
                add(LXC);
                add(homes[i]);
                expect_paused_alone(homes[i]);
                for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                        assert_true((u->policy.pause_usec_per_gib == 7000) ==
                                    mg_streq(u->path, homes[i]));
                restart();
        }
}

static void test_operator_means_the_system(void **state) {
        add_all();
        assert_string_equal(unit_find(manager, "nginx.service")->path, SYSTEM);
        assert_string_equal(unit_find_label(manager, "nginx.service")->path, SYSTEM);
        assert_string_equal(unit_find_label(manager, CONTAINER)->path, CONTAINER);
        /* Another name for the same unit is not its own. */
        assert_null(unit_find_label(manager, SYSTEM));
        unit_end(unit_find(manager, SYSTEM));
        assert_string_equal(unit_find(manager, "nginx.service")->path, CONTAINER);
        assert_null(unit_find_label(manager, "nginx.service"));
        assert_null(unit_find_label(manager, ""));
        assert_null(unit_find_label(manager, "/"));
}

static void learn(const char *path, uint64_t per_gib) {
        struct unit *unit = unit_find(manager, path);

        unit->policy.pause_usec_per_gib = per_gib;
        unit->n_agents = 1;
        store_save_unit(unit);
        unit->n_agents = 0;
}

static void test_costs(void **state) {
        add_all();
        for (size_t i = 0; i < MG_ELEMENTS(paths); i++)
                learn(paths[i], 1000 * (i + 1));
        restart();
        expect_file("costs",
                    "memguard-costs 1\n" CONTAINER " 1000 - - - 0\n" USER " 2000 - - - 0\n" LXC
                    " 3000 - - - 0\nnginx.service 4000 - - - 0\nend\n");
        add_all();
        for (size_t i = 0; i < MG_ELEMENTS(paths); i++)
                assert_int_equal(
                                unit_find(manager, paths[i])->policy.pause_usec_per_gib,
                                1000 * (i + 1));
}

/* A pause is on the disk when an operator is told so; what a tick saves waits for no disk. */
static void test_syncs(void **state) {
        struct unit *unit = add(SYSTEM);

        syncs = 0;
        assert_int_equal(manager_set_paused(manager, unit, true), 0);
        assert_int_equal(syncs, 2);
        sync_error = EIO;
        assert_int_equal(manager_set_paused(manager, unit, false), -EIO);
        assert_false(unit->paused);
        expect_file("paused", "nginx.service\n");
        sync_error = 0;
        store_save_all(manager);
        expect_file("paused", "");
        syncs = 0;
        learn(SYSTEM, 1000);
        store_save_all(manager);
        expect_file("costs", "memguard-costs 1\nnginx.service 1000 - - - 0\nend\n");
        assert_int_equal(syncs, 0);
}

/* What could not be written is tried again each minute. */
static void test_pause_is_saved_later(void **state) {
        struct unit *unit = add(SYSTEM);

        assert_int_equal(manager_set_paused(manager, unit, false), 0);
        sync_error = EIO;
        assert_int_equal(manager_set_paused(manager, unit, true), -EIO);
        sync_error = 0;
        store_tick(manager, manager_now(manager));
        expect_file("paused", "");
        store_tick(manager, manager_now(manager) + MG_USEC_PER_MIN);
        expect_file("paused", "nginx.service\n");

        /* Once is enough. */
        write_text("paused", "untouched\n");
        store_tick(manager, manager_now(manager) + 2 * MG_USEC_PER_MIN);
        expect_file("paused", "untouched\n");
}

/* The longest paths that there are, and as many as are kept: what was written can be read. */
static void test_full_table(void **state) {
        char path[UNIT_PATH_MAX];
        struct unit *unit;

        memset(path, 'x', sizeof(path) - 1);
        path[0] = '/';
        memcpy(path + sizeof(path) - 11, "/x.service", 10);
        path[sizeof(path) - 1] = '\0';
        file_closep(&manager->units_dir_fd); /* their own files are not the matter here */
        for (int i = 0; i < COSTS_MAX; i++) {
                char digits[8];

                snprintf(digits, sizeof(digits), "%07d", i);
                memcpy(path + 1, digits, 7);
                unit = add(path);
                unit->policy.pause_usec_per_gib = UINT64_MAX - 1;
                unit->policy.pause_usec_per_million_chunks = UINT64_MAX - 1;
                unit->policy.statistics_usec = UINT64_MAX - 1;
                unit->policy.statistics_bytes = UINT64_MAX - 1;
                unit->policy.last_pause_usec = UINT64_MAX - 1;
                unit->n_agents = 1;
                store_save_unit(unit);
                unit->n_agents = 0;
                unit_end(unit);
        }
        restart();
        assert_true(add(path)->policy.last_pause_usec == UINT64_MAX - 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_pauses, setup_manager, teardown_manager),
                cmocka_unit_test_setup_teardown(test_not_here, setup_manager, teardown_manager),
                cmocka_unit_test_setup_teardown(test_names, setup_manager, teardown_manager),
                cmocka_unit_test_setup_teardown(
                                test_operator_means_the_system, setup_manager, teardown_manager),
                cmocka_unit_test_setup_teardown(test_costs, setup_manager, teardown_manager),
                cmocka_unit_test_setup_teardown(test_syncs, setup_manager, teardown_manager),
                cmocka_unit_test_setup_teardown(
                                test_pause_is_saved_later, setup_manager, teardown_manager),
                cmocka_unit_test_setup_teardown(test_full_table, setup_manager, teardown_manager),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
