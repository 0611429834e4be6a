/* SPDX-License-Identifier: MIT */
/* Numbers, sizes, shares, times, booleans and statm: what is read, and all that is refused. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/macros.h"
#include "base/parse.h"
#include "base/statm.h"

#define UNTOUCHED UINT64_C(0xfeedface)

struct case_u64 {
        const char *text;
        int r;
        uint64_t value; /* where r is 0 */
};

static void check_all(
                const struct case_u64 *cases,
                size_t n_cases,
                int (*parse)(const char *text, uint64_t *ret_value)) {
        for (size_t i = 0; i < n_cases; i++) {
                uint64_t value = UNTOUCHED;
                int r = parse(cases[i].text, &value);
                uint64_t expected = cases[i].r == 0 ? cases[i].value : UNTOUCHED;

                if (r != cases[i].r || value != expected)
                        fail_msg("\"%s\": %d with %llu, not %d with %llu", cases[i].text, r,
                                 (unsigned long long) value, cases[i].r,
                                 (unsigned long long) expected);
        }
}

static void test_u64(void **state) {
        static const struct case_u64 cases[] = {
                { "0", 0, 0 },
                { "1", 0, 1 },
                { "007", 0, 7 },
                { "18446744073709551615", 0, UINT64_MAX },
                { "00000000000000000000000000000000000001", 0, 1 },
                /* hostile */
                { "", -EINVAL },
                { " ", -EINVAL },
                { " 1", -EINVAL },
                { "1 ", -EINVAL },
                { "1\n", -EINVAL },
                { "1\r", -EINVAL },
                { "\t1", -EINVAL },
                { "+1", -EINVAL },
                { "-1", -EINVAL },
                { "-0", -EINVAL },
                { "0x10", -EINVAL },
                { "1e3", -EINVAL },
                { "1.0", -EINVAL },
                { "1,000", -EINVAL },
                { "1_000", -EINVAL },
                { "\xd9\xa1", -EINVAL },
                { "\xef\xbc\x91", -EINVAL },
                { "nan", -EINVAL },
                { "18446744073709551616", -ERANGE },
                { "18446744073709551620", -ERANGE },
                { "99999999999999999999", -ERANGE },
                { "184467440737095516150", -ERANGE },
                { "1000000000000000000000000000000", -ERANGE },
        };
        check_all(cases, MG_ELEMENTS(cases), parse_u64);
}

static void test_u64_span_stops_at_its_end(void **state) {
        static const char text[] = "12345";
        uint64_t value = UNTOUCHED;

        assert_int_equal(parse_u64_span(text, 2, &value), 0);
        assert_int_equal(value, 12);
        assert_int_equal(parse_u64_span(text, 6, &value), -EINVAL); /* the NUL is no digit */
        assert_int_equal(parse_u64_span(text, 0, &value), -EINVAL);
        assert_int_equal(parse_u64_span(NULL, 0, &value), -EINVAL);
        assert_int_equal(value, 12);
}

static void test_size(void **state) {
        static const struct case_u64 cases[] = {
                { "0", 0, 0 },
                { "4096", 0, 4096 },
                { "4096B", 0, 4096 },
                { "512K", 0, 512 * MG_KIB },
                { "512k", 0, 512 * MG_KIB },
                { "512KB", 0, 512 * MG_KIB },
                { "512kb", 0, 512 * MG_KIB },
                { "256M", 0, 256 * MG_MIB },
                { "1.5G", 0, 3 * MG_GIB / 2 },
                { "0.25g", 0, MG_GIB / 4 },
                { "2T", 0, 2048 * MG_GIB },
                { "1.0", 0, 1 },
                { "1.000000B", 0, 1 },
                { "0.1K", 0, 102 },
                { "0.0000001M", 0, 0 },
                { "16777215T", 0, UINT64_C(16777215) * 1024 * MG_GIB },
                { "18446744073709551614", 0, UINT64_MAX - 1 },
                /* hostile */
                { "", -EINVAL },
                { "M", -EINVAL },
                { ".5M", -EINVAL },
                { "1.M", -EINVAL },
                { "1.", -EINVAL },
                { "1.5", -EINVAL },
                { "1.5B", -EINVAL },
                { "1..5M", -EINVAL },
                { "1.5.5M", -EINVAL },
                { "1,5M", -EINVAL },
                { "1 M", -EINVAL },
                { " 1M", -EINVAL },
                { "1M ", -EINVAL },
                { "1M\r", -EINVAL },
                { "-1M", -EINVAL },
                { "+1M", -EINVAL },
                { "1MM", -EINVAL },
                { "1MiB", -EINVAL },
                { "1P", -EINVAL },
                { "1BK", -EINVAL },
                { "1m1k", -EINVAL },
                { "20%", -EINVAL },
                { "infinity", -EINVAL },
                { "max", -EINVAL },
                { "1\xc2\xb5", -EINVAL },
                { "18446744073709551615", -ERANGE }, /* it means unknown */
                { "18446744073709551616", -ERANGE },
                { "18014398509481984K", -ERANGE },
                { "16777216T", -ERANGE },
                { "16777215.999999T", 0, UINT64_C(18446744073708452104) },
                { "99999999999999999999T", -ERANGE },
        };
        check_all(cases, MG_ELEMENTS(cases), parse_size);
}

static int parse_percent_u64(const char *text, uint64_t *ret_value) {
        uint32_t permyriad;

        int r = parse_percent(text, &permyriad);
        if (r == 0)
                *ret_value = permyriad;
        return r;
}

static void test_percent(void **state) {
        static const struct case_u64 cases[] = {
                { "0%", 0, 0 },
                { "20%", 0, 2000 },
                { "0.5%", 0, 50 },
                { "0.01%", 0, 1 },
                { "33.333%", 0, 3333 },
                { "100%", 0, 10000 },
                { "10000%", 0, 1000000 },
                /* hostile */
                { "", -EINVAL },
                { "%", -EINVAL },
                { "20", -EINVAL },
                { "20 %", -EINVAL },
                { "20% ", -EINVAL },
                { "20%%", -EINVAL },
                { "-1%", -EINVAL },
                { ".5%", -EINVAL },
                { "5.%", -EINVAL },
                { "20M", -EINVAL },
                { "20%M", -EINVAL },
                { "10000.01%", -ERANGE },
                { "10001%", -ERANGE },
                { "4294967297%", -ERANGE },
                { "18446744073709551615%", -ERANGE },
                { "99999999999999999999%", -ERANGE },
        };
        check_all(cases, MG_ELEMENTS(cases), parse_percent_u64);
}

static void test_duration(void **state) {
        static const struct case_u64 cases[] = {
                { "0", 0, 0 },
                { "30", 0, 30 * MG_USEC_PER_SEC },
                { "0.5", 0, 500000 },
                { "30s", 0, 30 * MG_USEC_PER_SEC },
                { "30sec", 0, 30 * MG_USEC_PER_SEC },
                { "1second", 0, MG_USEC_PER_SEC },
                { "2seconds", 0, 2 * MG_USEC_PER_SEC },
                { "50us", 0, 50 },
                { "50usec", 0, 50 },
                { "500ms", 0, 500000 },
                { "500msec", 0, 500000 },
                { "5m", 0, 5 * MG_USEC_PER_MIN },
                { "5min", 0, 5 * MG_USEC_PER_MIN },
                { "1minute", 0, MG_USEC_PER_MIN },
                { "4h", 0, 4 * MG_USEC_PER_HOUR },
                { "4hr", 0, 4 * MG_USEC_PER_HOUR },
                { "1hour", 0, MG_USEC_PER_HOUR },
                { "1d", 0, 24 * MG_USEC_PER_HOUR },
                { "2days", 0, 48 * MG_USEC_PER_HOUR },
                { "1w", 0, 168 * MG_USEC_PER_HOUR },
                { "2min 30s", 0, 150 * MG_USEC_PER_SEC },
                { "2min30s", 0, 150 * MG_USEC_PER_SEC },
                { "2min   30s", 0, 150 * MG_USEC_PER_SEC },
                { "1h 2min 3s 4ms 5us", 0, UINT64_C(3723004005) },
                { "1.5s", 0, 1500000 },
                { "0.25min", 0, 15 * MG_USEC_PER_SEC },
                { "1.000000us", 0, 1 },
                { "0.000001s", 0, 1 },
                { "18446744073709551614us", 0, UINT64_MAX - 1 },
                /* hostile */
                { "", -EINVAL },
                { " ", -EINVAL },
                { "s", -EINVAL },
                { " 30s", -EINVAL },
                { "30s ", -EINVAL },
                { "30s  ", -EINVAL },
                { "30s\r", -EINVAL },
                { "30s\t5s", -EINVAL },
                { "30 s", -EINVAL },
                { "5 30s", -EINVAL },
                { "5min 30", -EINVAL },
                { "5 5", -EINVAL },
                { "30S", -EINVAL },
                { "5Min", -EINVAL },
                { "1M", -EINVAL },
                { "5mi", -EINVAL },
                { "5mins", -EINVAL },
                { "1y", -EINVAL },
                { "-5s", -EINVAL },
                { "+5s", -EINVAL },
                { "5s-1s", -EINVAL },
                { "5s,1s", -EINVAL },
                { ".5s", -EINVAL },
                { "5.s", -EINVAL },
                { "1.5us", -EINVAL },
                { "infinity", -EINVAL },
                { "5\xc2\xb5s", -EINVAL },
                { "1e3s", -EINVAL },
                { "18446744073709551615us", -ERANGE },
                { "18446744073709551616us", -ERANGE },
                { "18446744073709551614us 1us", -ERANGE },
                { "18446744073709551614us 2us", -ERANGE },
                { "18446744073710s", -ERANGE },
                { "30500569w", -ERANGE },
        };
        check_all(cases, MG_ELEMENTS(cases), parse_duration);
}

static void test_boolean(void **state) {
        static const struct {
                const char *text;
                int value;
        } cases[] = {
                { "1", 1 },
                { "yes", 1 },
                { "y", 1 },
                { "true", 1 },
                { "t", 1 },
                { "on", 1 },
                { "YES", 1 },
                { "True", 1 },
                { "0", 0 },
                { "no", 0 },
                { "n", 0 },
                { "false", 0 },
                { "f", 0 },
                { "off", 0 },
                { "OFF", 0 },
                { "fAlSe", 0 },
                /* hostile */
                { "", -EINVAL },
                { " ", -EINVAL },
                { " yes", -EINVAL },
                { "yes ", -EINVAL },
                { "yes\r", -EINVAL },
                { "2", -EINVAL },
                { "01", -EINVAL },
                { "-1", -EINVAL },
                { "ye", -EINVAL },
                { "yess", -EINVAL },
                { "o", -EINVAL },
                { "of", -EINVAL },
                { "enabled", -EINVAL },
                { "ja", -EINVAL },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++)
                if (parse_boolean(cases[i].text) != cases[i].value)
                        fail_msg("\"%s\": %d", cases[i].text, parse_boolean(cases[i].text));
}

static void test_statm(void **state) {
        static const struct case_u64 cases[] = {
                { "500 200 50 10 0 90 0\n", 0, 150 * 4096 },
                { "500 200 50", 0, 150 * 4096 },
                { "0 0 0 0 0 0 0\n", 0, 0 },
                { "500 40 50 10 0 90 0\n", 0, 0 }, /* approximate counters: never below 0 */
                { "500 18446744073709551615 0 1\n", 0, MG_UNKNOWN - 1 },

                /* hostile */
                { "", -EBADMSG },
                { "500", -EBADMSG },
                { "500 200\n", -EBADMSG },
                { "500  200 50\n", -EBADMSG },
                { " 500 200 50\n", -EBADMSG },
                { "500\t200\t50\n", -EBADMSG },
                { "500\n200\n50\n", -EBADMSG },
                { "a b c\n", -EBADMSG },
                { "500 -1 50\n", -EBADMSG },
                { "500 200 x", -EBADMSG },
                { "1 99999999999999999999 0", -EBADMSG },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                uint64_t bytes = UNTOUCHED;
                assert_int_equal(statm_parse_anon(cases[i].text, 4096, &bytes), cases[i].r);
                assert_int_equal(bytes, cases[i].r == 0 ? cases[i].value : UNTOUCHED);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_u64),      cmocka_unit_test(test_u64_span_stops_at_its_end),
                cmocka_unit_test(test_size),     cmocka_unit_test(test_percent),
                cmocka_unit_test(test_duration), cmocka_unit_test(test_boolean),
                cmocka_unit_test(test_statm),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
