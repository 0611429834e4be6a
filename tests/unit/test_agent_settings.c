/* SPDX-License-Identifier: MIT */
/* The environment as the agent reads it. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "agent/settings.h"
#include "base/macros.h"

static void clear_environment(void) {
        static const char *const names[] = { "MEMGUARD_SOCKET",   "MEMGUARD_DISABLE",
                                             "MEMGUARD_THREAD",   "MEMGUARD_DELAY",
                                             "MEMGUARD_CHILDREN", "GLIBC_TUNABLES",
                                             "MALLOC_PERTURB_",   "MALLOC_TRIM_THRESHOLD_" };
        for (size_t i = 0; i < MG_ELEMENTS(names); i++)
                unsetenv(names[i]);
}

static void test_defaults(void **state) {
        struct mg_settings settings;

        clear_environment();
        settings_read(&settings);
        assert_false(settings.disabled);
        assert_false(settings.strip_children);
        assert_int_equal(settings.thread_mode, MG_THREAD_FOLLOW);
        assert_int_equal(settings.delay_usec, MG_USEC_PER_SEC);
        assert_string_equal(settings.socket_path, "/run/memguard/agent.sock");
}

static void test_values(void **state) {
        static const struct {
                const char *name;
                const char *value;
                struct mg_settings expected;
        } cases[] = {
                { "MEMGUARD_DISABLE", "1", { .disabled = true, .delay_usec = MG_USEC_PER_SEC } },
                { "MEMGUARD_DISABLE", "no", { .delay_usec = MG_USEC_PER_SEC } },
                { "MEMGUARD_DISABLE", "perhaps", { .delay_usec = MG_USEC_PER_SEC } },
                { "MEMGUARD_DISABLE", "", { .delay_usec = MG_USEC_PER_SEC } },
                { "MEMGUARD_THREAD",
                  "always",
                  { .thread_mode = MG_THREAD_ALWAYS, .delay_usec = MG_USEC_PER_SEC } },
                { "MEMGUARD_THREAD",
                  "never",
                  { .thread_mode = MG_THREAD_NEVER, .delay_usec = MG_USEC_PER_SEC } },
                { "MEMGUARD_THREAD", "Always", { .delay_usec = MG_USEC_PER_SEC } },
                { "MEMGUARD_DELAY", "0", { .delay_usec = 0 } },
                { "MEMGUARD_DELAY", "1500ms", { .delay_usec = 1500000 } },
                { "MEMGUARD_DELAY", "soon", { .delay_usec = MG_USEC_PER_SEC } },
                { "MEMGUARD_DELAY", "99999999999999999999s", { .delay_usec = MG_USEC_PER_SEC } },
                { "MEMGUARD_CHILDREN",
                  "no",
                  { .strip_children = true, .delay_usec = MG_USEC_PER_SEC } },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct mg_settings settings;
                clear_environment();
                setenv(cases[i].name, cases[i].value, 1);
                settings_read(&settings);
                assert_int_equal(settings.disabled, cases[i].expected.disabled);
                assert_int_equal(settings.strip_children, cases[i].expected.strip_children);
                assert_int_equal(settings.thread_mode, cases[i].expected.thread_mode);
                assert_int_equal(settings.delay_usec, cases[i].expected.delay_usec);
        }
}

static void test_socket_path(void **state) {
        struct mg_settings settings;
        char path[200] = "";

        clear_environment();
        memset(path, 'p', 107);
        setenv("MEMGUARD_SOCKET", path, 1);
        settings_read(&settings);
        assert_false(settings.disabled);
        assert_string_equal(settings.socket_path, path);
        /* Cut, it would name another socket. */
        memset(path, 'p', 108);
        setenv("MEMGUARD_SOCKET", path, 1);
        settings_read(&settings);
        assert_true(settings.disabled);
        setenv("MEMGUARD_SOCKET", "", 1);
        settings_read(&settings);
        assert_string_equal(settings.socket_path, MG_DEFAULT_SOCKET);
}

static void test_tunables(void **state) {
        assert_true(tunables_has("glibc.malloc.perturb=165", "glibc.malloc.perturb"));
        assert_true(tunables_has("a=1:glibc.malloc.hugetlb=1:b=2", "glibc.malloc.hugetlb"));
        assert_false(tunables_has("glibc.malloc.hugetlb=0", "glibc.malloc.hugetlb"));
        assert_true(tunables_has("glibc.malloc.hugetlb=01", "glibc.malloc.hugetlb"));
        assert_false(tunables_has("xglibc.malloc.hugetlb=1", "glibc.malloc.hugetlb"));
        assert_false(tunables_has("glibc.malloc.hugetlbx=1", "glibc.malloc.hugetlb"));
        assert_false(tunables_has("glibc.malloc.hugetlb", "glibc.malloc.hugetlb"));
        assert_false(tunables_has("glibc.malloc.hugetlb=", "glibc.malloc.hugetlb"));
        assert_false(tunables_has("", "glibc.malloc.hugetlb"));
        assert_false(tunables_has(":::", "glibc.malloc.hugetlb"));
}

static void test_malloc_settings(void **state) {
        struct mg_malloc_settings settings;

        clear_environment();
        malloc_settings_read(&settings);
        assert_false(settings.forbid_tops);
        setenv("MALLOC_PERTURB_", "0", 1);
        malloc_settings_read(&settings);
        assert_false(settings.forbid_tops);
        setenv("MALLOC_PERTURB_", "165", 1);
        malloc_settings_read(&settings);
        assert_true(settings.forbid_tops);
        clear_environment();
        setenv("GLIBC_TUNABLES", "glibc.mem.tagging=3", 1);
        malloc_settings_read(&settings);
        assert_true(settings.forbid_tops);
        clear_environment();
}

static void test_preload_list(void **state) {
        static const char own[] = "/usr/lib/libmemguard-preload.so";
        static const struct {
                const char *list;
                const char *expected;
        } cases[] = {
                { "/usr/lib/libmemguard-preload.so", "" },
                { "libmemguard-preload.so", "" },
                { "/other/libmemguard-preload.so", "" },
                { "/usr/lib/libjemalloc.so.2:/usr/lib/libmemguard-preload.so",
                  "/usr/lib/libjemalloc.so.2" },
                { "/usr/lib/libmemguard-preload.so /usr/lib/libjemalloc.so.2",
                  "/usr/lib/libjemalloc.so.2" },
                { "a.so libmemguard-preload.so:b.so", "a.so:b.so" },
                { "::a.so:  :libmemguard-preload.so::", "a.so" },
                { "libmemguard-preload.so.bak:xlibmemguard-preload.so",
                  "libmemguard-preload.so.bak:xlibmemguard-preload.so" },
                { "", "" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                char list[200];
                strcpy(list, cases[i].list);
                assert_int_equal(preload_list_strip(list, own), strlen(cases[i].expected));
                assert_string_equal(list, cases[i].expected);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults),        cmocka_unit_test(test_values),
                cmocka_unit_test(test_socket_path),     cmocka_unit_test(test_tunables),
                cmocka_unit_test(test_malloc_settings), cmocka_unit_test(test_preload_list),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
