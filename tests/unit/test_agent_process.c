/* SPDX-License-Identifier: MIT */
/* What the agent makes of /proc: the rights of two threads, locked memory. */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "agent/process.h"
#include "agent/rights.h"
#include "base/macros.h"

#define STATUS(uid, prm, nnp, seccomp, filters)                                              \
        "Name:\tprogram (x) 1\nUmask:\t0022\nState:\tS (sleeping)\nUid:\t" uid "\t0\t0\t0\n" \
        "Gid:\t0\t0\t0\t0\nGroups:\t0 4 \nVmLck:\t     64 kB\nCapInh:\t0000000000000000\n"   \
        "CapPrm:\t" prm "\nCapEff:\t" prm                                                    \
        "\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\n"                           \
        "NoNewPrivs:\t" nnp "\nSeccomp:\t" seccomp "\nSeccomp_filters:\t" filters "\n"
#define FULL "000001ffffffffff"

static void test_rights(void **state) {
        static const char plain[] = STATUS("0", FULL, "0", "0", "0");
        static const char zombie[] = "State:\tZ (zombie)\nUid:\t0\t0\t0\t0\n";
        static const struct mg_seccomp none = { 0, 0 }, one = { 2, 1 };
        static const struct {
                const char *main;
                const char *own;
                const struct mg_seccomp *baseline;
                enum mg_rights expected;
        } cases[] = {
                { plain, plain, &none, MG_RIGHTS_EQUAL },
                { STATUS("0", FULL, "0", "2", "1"), STATUS("0", FULL, "0", "2", "1"), &one,
                  MG_RIGHTS_EQUAL },
                { STATUS("1000", FULL, "0", "0", "0"), plain, &none, MG_RIGHTS_DIFFER },
                { STATUS("0", "0000000000000000", "0", "0", "0"), plain, &none, MG_RIGHTS_DIFFER },
                { plain, STATUS("0", "0000000000000000", "0", "0", "0"), &none, MG_RIGHTS_DIFFER },
                { STATUS("0", FULL, "1", "0", "0"), plain, &none, MG_RIGHTS_DIFFER },
                { STATUS("0", FULL, "0", "2", "1"), plain, &none, MG_RIGHTS_MAIN_FILTERED },
                { plain, STATUS("0", FULL, "0", "2", "1"), &none, MG_RIGHTS_SECCOMP_STRICTER },
                { STATUS("0", FULL, "0", "2", "2"), STATUS("0", FULL, "0", "2", "2"), &one,
                  MG_RIGHTS_SECCOMP_STRICTER },
                { zombie, plain, &none, MG_RIGHTS_DIFFER },
                { "", plain, &none, MG_RIGHTS_UNREADABLE },
                { plain, "", &none, MG_RIGHTS_UNREADABLE },
                { "Uid", "Uid", &none, MG_RIGHTS_UNREADABLE },
                { "Name:\tUid:\t0\n", plain, &none, MG_RIGHTS_UNREADABLE },
                /* A kernel without some of the lines: the same ones are missing in both. */
                { "Uid:\t1\n", "Uid:\t1\n", &none, MG_RIGHTS_EQUAL },
                { "Uid:\t1", "Uid:\t1\r", &none, MG_RIGHTS_DIFFER },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++)
                assert_int_equal(
                                rights_compare(cases[i].main, cases[i].own, cases[i].baseline),
                                cases[i].expected);
}

static void test_numbers_in_status(void **state) {
        struct mg_seccomp seccomp = rights_seccomp("Seccomp:\t2\nSeccomp_filters:\t17\n");

        assert_int_equal(seccomp.mode, 2);
        assert_int_equal(seccomp.filters, 17);
        seccomp = rights_seccomp("Seccomp:\nSeccomp_filters:\t99999999999999999999\n");
        assert_int_equal(seccomp.mode, 0);
        assert_int_equal(seccomp.filters, 0);
        assert_int_equal(rights_locked_bytes(STATUS("0", FULL, "0", "0", "0")), 65536);
        assert_int_equal(rights_locked_bytes("VmLck:\n"), 0);
        assert_int_equal(rights_locked_bytes(""), 0);
}

/* A signal for the whole process (ShdPnd:) is the program's, not the agent's. */
static void test_own_pending(void **state) {
        assert_true(rights_has_own_pending(
                        "SigPnd:\t0000000000400000\nShdPnd:\t0000000000000000\n", 23));
        assert_false(rights_has_own_pending(
                        "SigPnd:\t0000000000000000\nShdPnd:\t0000000000400000\n", 23));
        assert_false(rights_has_own_pending("SigPnd:\t0000000000400000\n", 22));
        assert_true(rights_has_own_pending("SigPnd:\tffffffffffffffff\n", 64));
        assert_false(rights_has_own_pending("SigPnd:\n", 23));
        assert_false(rights_has_own_pending("ShdPnd:\t0000000000400000", 23));
        assert_false(rights_has_own_pending("", 23));
}

/* The real files, both ways. */
static void test_own_process(void **state) {
        for (int own_table = 0; own_table < 2; own_table++) {
                char status[MG_PROCESS_FILE_BYTES];
                uint64_t bytes;
                assert_int_equal(process_files_open(own_table), 0);
                assert_int_equal(process_rss_anon(&bytes), 0);
                assert_true(bytes > 4096);
                assert_true(process_file_read(MG_PROCESS_MAIN_STATUS, status, sizeof(status)) >
                            500);
                assert_non_null(strstr(status, "Uid:"));
                assert_int_equal(process_file_read(MG_PROCESS_OWN_STATUS, status, 100), -EFBIG);
                process_files_close();
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rights),
                cmocka_unit_test(test_numbers_in_status),
                cmocka_unit_test(test_own_pending),
                cmocka_unit_test(test_own_process),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
