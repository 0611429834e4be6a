/* SPDX-License-Identifier: MIT */
/* Which unit a cgroup path means, systemd's escapes and other people's names included. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "host/unit_name.h"

static void test_from_cgroup(void **state) {
        static const struct {
                const char *path;
                const char *unit; /* NULL: in none */
                const char *own_path;
                uid_t user_uid; /* 0: no user unit */
        } cases[] = {
                { "/system.slice/nginx.service", "nginx.service", "/system.slice/nginx.service",
                  0 },
                { "/system.slice/nginx.service/worker/1", "nginx.service",
                  "/system.slice/nginx.service", 0 },
                { "/init.scope", "init.scope", "/init.scope", 0 },
                { "/system.slice/system-postgresql.slice/postgresql@15-main.service",
                  "postgresql@15-main.service",
                  "/system.slice/system-postgresql.slice/postgresql@15-main.service", 0 },
                { "/system.slice/docker-0123abcd.scope", "docker-0123abcd.scope",
                  "/system.slice/docker-0123abcd.scope", 0 },
                { "/user.slice/user-1000.slice/user@1000.service/app.slice/player.service/x",
                  "player.service",
                  "/user.slice/user-1000.slice/user@1000.service/app.slice/player.service", 1000 },
                { "/user.slice/user-1000.slice/user@1000.service/init.scope", "init.scope",
                  "/user.slice/user-1000.slice/user@1000.service/init.scope", 1000 },
                { "/user.slice/user-1000.slice/user@1000.service/other", "user@1000.service",
                  "/user.slice/user-1000.slice/user@1000.service", 0 },
                { "/user.slice/user-1000.slice/session-2.scope", "session-2.scope",
                  "/user.slice/user-1000.slice/session-2.scope", 0 },
                { "/machine.slice/m.scope/payload/system.slice/db.service", "db.service",
                  "/machine.slice/m.scope/payload/system.slice/db.service", 0 },
                /* A controller's name is escaped with "_", a name that starts with "_" too. */
                { "/system.slice/_cpu.service", "cpu.service", "/system.slice/_cpu.service", 0 },
                { "/system.slice/__x.service", "_x.service", "/system.slice/__x.service", 0 },
                /* Escapes inside a name stay, as systemd shows them. */
                { "/system.slice/dev-disk\\x2dby.service", "dev-disk\\x2dby.service",
                  "/system.slice/dev-disk\\x2dby.service", 0 },
                { "/a b (c).scope", "a b (c).scope", "/a b (c).scope", 0 },
                { "/system.slice//x.service/", "x.service", "/system.slice//x.service", 0 },
                { "/user@abc.service/x.service", "x.service", "/user@abc.service/x.service", 0 },
                { "/user@.service/x.service", "x.service", "/user@.service/x.service", 0 },
                { "/user@4294967295.service/x.service", "x.service",
                  "/user@4294967295.service/x.service", 0 },
                /* Names that nobody should see on a terminal or on the bus. */
                { "/evil\n\033[31m\xff.service", "evil__[31m_.service",
                  "/evil\n\033[31m\xff.service", 0 },
                { "/", NULL, NULL, 0 },
                { "", NULL, NULL, 0 },
                { "/system.slice", NULL, NULL, 0 },
                { "/kubepods.slice/kubepods-burstable.slice/cri-x", NULL, NULL, 0 },
                { "/x.services", NULL, NULL, 0 },
                { "/.service", NULL, NULL, 0 },
                { "/.scope/x", NULL, NULL, 0 },
                { "/docker/0123abcd", NULL, NULL, 0 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct mg_unit_name name = { .unit = "untouched" };
                int r = unit_name_from_cgroup(cases[i].path, &name);

                if (!cases[i].unit) {
                        assert_int_equal(r, -ENXIO);
                        assert_string_equal(name.unit, "untouched");
                        continue;
                }
                assert_int_equal(r, 0);
                assert_string_equal(name.unit, cases[i].unit);
                assert_int_equal(name.path_length, strlen(cases[i].own_path));
                assert_memory_equal(cases[i].path, cases[i].own_path, name.path_length);
                assert_int_equal(name.user, cases[i].user_uid != 0);
                assert_int_equal(name.user_uid, cases[i].user_uid);
        }
}

static void test_longest_name(void **state) {
        char path[600];
        struct mg_unit_name name;

        /* 255 characters is what a file system allows; more is no unit, not a cut one. */
        memset(path, 'a', sizeof(path));
        path[0] = '/';
        strcpy(path + 256 - strlen(".service"), ".service");
        assert_int_equal(unit_name_from_cgroup(path, &name), 0);
        assert_int_equal(strlen(name.unit), 255);

        memset(path, 'a', sizeof(path));
        path[0] = '/';
        strcpy(path + 257 - strlen(".service"), ".service");
        assert_int_equal(unit_name_from_cgroup(path, &name), -ENXIO);
}

static void test_for_process(void **state) {
        static const struct {
                const char *executable;
                uid_t uid, own;
                const char *name;
        } cases[] = {
                { "/usr/bin/redis-server", 0, 0, "redis-server.process" },
                { "redis-server", 1000, 1000, "redis-server.process" },
                { "/usr/bin/redis-server", 1000, 0, "redis-server@1000.process" },
                { "/opt/my app (2)/x y", 0, 0, "x y.process" },
                { "/bad/\xc3\x28\n", 0, 0, "_(_.process" },
                { "/", 0, 0, "unknown.process" },
                { "", 4294967294u, 0, "unknown@4294967294.process" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                char name[MG_UNIT_NAME_MAX];
                unit_name_for_process(cases[i].executable, cases[i].uid, cases[i].own, name);
                assert_string_equal(name, cases[i].name);
        }

        char longest[300], name[MG_UNIT_NAME_MAX];
        memset(longest, 'x', sizeof(longest));
        longest[299] = '\0';
        unit_name_for_process(longest, 4294967294u, 0, name);
        assert_string_equal(name + strlen(name) - 19, "@4294967294.process");
}

static void test_tree_length(void **state) {
        static const struct {
                const char *path;
                const char *tree; /* "": none */
        } cases[] = {
                { "/system.slice/nginx.service", "" },
                { "/system.slice/system-a.slice/a@b.service", "" },
                { "/user.slice/user-1000.slice/user@1000.service", "" },
                { "/init.scope", "" },
                { "/", "" },
                { "", "" },
                { "nginx.service/x", "" },
                { "/user.slice/user-1000.slice/user@1000.service/app.slice/player.service",
                  "/user.slice/user-1000.slice/user@1000.service" },
                { "/machine.slice/m.scope/payload/system.slice/db.service",
                  "/machine.slice/m.scope" },
                { "/docker/0123abcd/system.slice/db.service", "/docker" },
                /* Whoever owns a tree chooses the names below it: another user's, or slices. */
                { "/system.slice/a.service/user.slice/user@0.service/x.service",
                  "/system.slice/a.service" },
                { "/.slice/x.service", "/.slice" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                size_t length = unit_name_tree_length(cases[i].path);

                assert_int_equal(length, strlen(cases[i].tree));
                assert_memory_equal(cases[i].path, cases[i].tree, length);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_from_cgroup),
                cmocka_unit_test(test_longest_name),
                cmocka_unit_test(test_for_process),
                cmocka_unit_test(test_tree_length),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
