/* SPDX-License-Identifier: MIT */
/* The text of pressure files, and a trigger where this kernel has one. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/psi.h"
#include "skip.h"

static void full_avg10(void **state) {
        static const struct {
                const char *text;
                uint64_t permyriad;
        } rows[] = {
                { "some avg10=1.00 avg60=0.00 avg300=0.00 total=7\nfull avg10=12.34 avg60=0.10 avg300=0.00 total=5\n",
                  1234 },
                { "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", 0 },
                { "full avg10=100.00 avg60=0.00 avg300=0.00 total=0", 10000 },
                /* Hostile. */
                { "", MG_UNKNOWN },
                { "some avg10=1.00 avg60=0.00 avg300=0.00 total=7\n", MG_UNKNOWN },
                { "some full avg10=1.00\n", MG_UNKNOWN },
                { "full avg10=", MG_UNKNOWN },
                { "full avg10=5", MG_UNKNOWN },
                { "full avg10=.50", MG_UNKNOWN },
                { "full avg10=5.", MG_UNKNOWN },
                { "full avg10=5.1", MG_UNKNOWN },
                { "full avg10=-5.10", MG_UNKNOWN },
                { "full avg10=100.01", MG_UNKNOWN },
                { "full avg10=18446744073709551616.00", MG_UNKNOWN },
                { "full avg60=5.10 avg10=1.00", MG_UNKNOWN },
                { "\n\nfull avg10=0.07\r\n", 7 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++)
                if (psi_full_avg10_parse(rows[i].text) != rows[i].permyriad)
                        fail_msg("row %zu", i);
}

static void trigger_text(void **state) {
        static const struct {
                uint32_t permyriad;
                const char *text;
        } rows[] = {
                { 1, "some 200 2000000" },
                { 1000, "some 200000 2000000" },
                { 10000, "some 2000000 2000000" },
        };
        char path[] = "/tmp/memguard-psi-XXXXXX";
        char written[64];
        int file = mkstemp(path);

        assert_true(file >= 0);
        for (size_t i = 0; i < MG_ELEMENTS(rows); i++) {
                int fd = -EBADF;

                assert_int_equal(psi_arm(AT_FDCWD, path, rows[i].permyriad, &fd), 0);
                assert_int_equal(close(fd), 0);
                assert_true(file_read_at(AT_FDCWD, path, written, sizeof(written)) > 0);
                /* The kernel overwrites the last byte written: it has to be the NUL. */
                assert_string_equal(written, rows[i].text);
                assert_int_equal(truncate(path, 0), 0);
        }
        close(file);
        unlink(path);
}

static void trigger_failures(void **state) {
        int fd = 4711;

        assert_int_equal(psi_arm(AT_FDCWD, "/proc/self/no-such-file", 1000, &fd), -ENOENT);
        assert_int_equal(psi_arm(AT_FDCWD, "/proc/self", 1000, &fd), -EISDIR);
        assert_int_equal(psi_arm(-EBADF, "memory.pressure", 1000, &fd), -EBADF);
        assert_int_equal(fd, 4711);
}

static void trigger_of_this_host(void **state) {
        int fd = -EBADF;
        int r = psi_arm(AT_FDCWD, MG_PSI_HOST_FILE, 10000, &fd);

        if (r < 0)
                skip_because("this kernel gives no pressure trigger");
        assert_true(fd >= 0);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(full_avg10),
                cmocka_unit_test(trigger_text),
                cmocka_unit_test(trigger_failures),
                cmocka_unit_test(trigger_of_this_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
