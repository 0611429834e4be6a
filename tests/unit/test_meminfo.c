/* SPDX-License-Identifier: MIT */
/* The text of /proc/meminfo. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/meminfo.h"

static void texts(void **state) {
        static const struct {
                const char *text;
                int result;
                uint64_t total, available;
        } rows[] = {
                { "MemTotal:       24609620 kB\nMemFree:        21000000 kB\nMemAvailable:   22000000 kB\n",
                  0, UINT64_C(24609620) << 10, UINT64_C(22000000) << 10 },
                { "MemAvailable: 0 kB\nMemTotal: 1 kB\n", 0, 1024, 0 },
                /* Kernels before 3.14, and texts that are cut off. */
                { "MemTotal: 10 kB\nMemFree: 5 kB\n", -EINVAL, 0, 0 },
                { "MemTotal: 10 kB\nMemAvailable: 5", -EINVAL, 0, 0 },
                { "MemTotal: 10 kB\nMemAvailable: 5 kB", -EINVAL, 0, 0 },
                /* Hostile. */
                { "", -EINVAL, 0, 0 },
                { "\n", -EINVAL, 0, 0 },
                { "XMemTotal: 10 kB\nMemAvailable: 5 kB\n", -EINVAL, 0, 0 },
                { "MemTotal: kB\nMemAvailable: 5 kB\n", -EINVAL, 0, 0 },
                { "MemTotal: -10 kB\nMemAvailable: 5 kB\n", -EINVAL, 0, 0 },
                { "MemTotal: 10 MB\nMemAvailable: 5 kB\n", -EINVAL, 0, 0 },
                { "MemTotal: 10 kB\nMemAvailable: 11 kB\n", -EINVAL, 0, 0 },
                { "MemTotal: 18446744073709551616 kB\nMemAvailable: 5 kB\n", -EINVAL, 0, 0 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++) {
                uint64_t total = 0, available = 0;

                assert_int_equal(meminfo_parse(rows[i].text, &total, &available), rows[i].result);
                assert_int_equal(total, rows[i].total);
                assert_int_equal(available, rows[i].available);
        }
}

static void this_host(void **state) {
        uint64_t total, available;
        char text[8192];

        assert_true(file_read_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) > 0);
        assert_int_equal(meminfo_parse(text, &total, &available), 0);
        assert_true(total > 16 * MG_MIB && available > 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(texts),
                cmocka_unit_test(this_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
