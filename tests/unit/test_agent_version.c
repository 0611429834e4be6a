/* SPDX-License-Identifier: MIT */
/* Which of two agents is older. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macros.h"
#include "host/agent_version.h"

static int sign(int value) {
        return (value > 0) - (value < 0);
}

static void test_compare(void **state) {
        static const struct {
                const char *a, *b;
                int answer;
        } cases[] = {
                { "0.1.0", "0.1.0", 0 },
                { "0.1.0", "0.1.1", -1 },
                { "0.9.1", "0.10.0", -1 },
                { "1.0", "0.99.99", 1 },
                { "1.0", "1.0.1", -1 },
                { "1.0-rc1", "1.0-rc2", -1 },
                { "1.0-rc9", "1.0-rc10", -1 },
                /* hostile */
                { "", "", 0 },
                { "", "0.1", -1 },
                { "0.1", "", 1 },
                { "007", "7", 0 },
                { "1.000", "1.0", 0 },
                { "99999999999999999999999999999999", "100000000000000000000000000000000", -1 },
                { "99999999999999999999999999999999", "99999999999999999999999999999998", 1 },
                { "0.1.0\xff", "0.1.0", 1 },
                { "x", "1", 1 },
                { "-1", "1", -1 },
                { "0.1 ", "0.1", 1 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                int answer = sign(agent_version_compare(cases[i].a, cases[i].b));
                int other = sign(agent_version_compare(cases[i].b, cases[i].a));
                if (answer != cases[i].answer || other != -answer)
                        fail_msg("\"%s\" and \"%s\": %d, %d", cases[i].a, cases[i].b, answer,
                                 other);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_compare) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
