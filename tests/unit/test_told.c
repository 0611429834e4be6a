/* SPDX-License-Identifier: MIT */
/* What was said once is not said again. */
#include "check.h"

#include <stdio.h>

#include "daemon/told.h"

static void once_each(void **state) {
        struct told told = {};

        assert_false(told_before(&told, "a.service", "glibc 2.36"));
        assert_true(told_before(&told, "a.service", "glibc 2.36"));
        assert_false(told_before(&told, "a.service", "glibc 2.41"));
        assert_false(told_before(&told, "b.service", "glibc 2.36"));
        assert_true(told_before(&told, "a.service", "glibc 2.36"));
        /* Where one ends and the other begins counts. */
        assert_false(told_before(&told, "a.servicegl", "ibc 2.36"));
        assert_false(told_before(&told, "", ""));
        assert_true(told_before(&told, "", ""));
        assert_false(told_before(&told, "\xff", ""));
}

/* More than the table holds: some are said again, none is kept silent that was never said. */
static void never_silent_about_news(void **state) {
        struct told told = {};
        char name[32];

        for (int i = 0; i < 10 * TOLD_SLOTS; i++) {
                snprintf(name, sizeof(name), "unit-%d.service", i);
                assert_false(told_before(&told, name, "glibc 2.36"));
                assert_true(told_before(&told, name, "glibc 2.36"));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(once_each),
                cmocka_unit_test(never_silent_about_news),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
