/* SPDX-License-Identifier: MIT */
/* The bounded text builder, and how sizes and times are shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/macros.h"
#include "base/text.h"

struct shown {
        uint64_t value;
        const char *text;
};

static void check_all(
                const struct shown *cases,
                size_t n_cases,
                const char *(*format)(uint64_t value, char buffer[static MG_SHORT_TEXT_MAX])) {
        for (size_t i = 0; i < n_cases; i++) {
                char buffer[MG_SHORT_TEXT_MAX];
                assert_string_equal(format(cases[i].value, buffer), cases[i].text);
        }
}

static void test_size(void **state) {
        static const struct shown cases[] = {
                { 0, "0B" },
                { 1, "1B" },
                { 1023, "1023B" },
                { MG_KIB, "1K" },
                { 1025, "1K" },
                { 1536, "1.5K" },
                { 10 * MG_KIB - 1, "9.9K" },
                { 10 * MG_KIB, "10K" },
                { 10 * MG_KIB + 512, "10K" },
                { MG_MIB - 1, "1023K" },
                { MG_MIB, "1M" },
                { 505 * MG_MIB, "505M" },
                { MG_GIB - 1, "1023M" },
                { 1288490189, "1.2G" },
                { 1024 * MG_GIB, "1T" },
                { UINT64_C(1) << 50, "1P" },
                { UINT64_C(1) << 60, "1E" },
                { UINT64_MAX - 1, "15E" },
                { MG_UNKNOWN, "-" },
        };
        check_all(cases, MG_ELEMENTS(cases), format_size);
}

static void test_duration(void **state) {
        static const struct shown cases[] = {
                { 0, "0us" },
                { 850, "850us" },
                { 999, "999us" },
                { 1000, "1ms" },
                { 16400, "16ms" },
                { 999999, "999ms" },
                { MG_USEC_PER_SEC, "1s" },
                { 4900000, "4s" },
                { MG_USEC_PER_MIN - 1, "59s" },
                { MG_USEC_PER_MIN, "1min" },
                { MG_USEC_PER_MIN + 999999, "1min" },
                { 150 * MG_USEC_PER_SEC, "2min 30s" },
                { MG_USEC_PER_HOUR - 1, "59min 59s" },
                { MG_USEC_PER_HOUR, "1h" },
                { 65 * MG_USEC_PER_MIN, "1h 5min" },
                { MG_USEC_PER_HOUR + 59 * MG_USEC_PER_SEC, "1h" },
                { 76 * MG_USEC_PER_HOUR, "3d 4h" },
                { 24 * MG_USEC_PER_HOUR + 5 * MG_USEC_PER_MIN, "1d" },
                { UINT64_MAX - 1, "213503982d 8h" },
                { MG_UNKNOWN, "-" },
        };
        check_all(cases, MG_ELEMENTS(cases), format_duration);
}

static void test_u64(void **state) {
        static const struct shown cases[] = {
                { 0, "0" },
                { 9, "9" },
                { 10, "10" },
                { 1000000, "1000000" },
                { UINT64_MAX, "18446744073709551615" },
        };
        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                char buffer[MG_SHORT_TEXT_MAX];
                struct mg_text text;

                text_init(&text, buffer, sizeof(buffer));
                text_put_u64(&text, cases[i].value);
                assert_string_equal(buffer, cases[i].text);
                assert_int_equal(text.length, strlen(cases[i].text));
        }
}

static void test_pieces_are_joined(void **state) {
        char buffer[64];
        struct mg_text text;

        text_init(&text, buffer, sizeof(buffer));
        assert_string_equal(buffer, "");
        text_put(&text, "puma.service");
        text_put_char(&text, ':');
        text_put(&text, "");
        text_put_span(&text, " trimmed!", 8);
        text_put_char(&text, ' ');
        text_put_size(&text, 452 * MG_MIB);
        text_put(&text, " in ");
        text_put_duration(&text, 16000);
        assert_string_equal(buffer, "puma.service: trimmed 452M in 16ms");
        assert_int_equal(text.length, strlen(buffer));
        assert_false(text.overflow);
}

/* For each size of the buffer: a prefix, its NUL, nothing behind; overflow just where it was cut. */
static void test_what_does_not_fit_is_cut(void **state) {
        static const char whole[] = "abc 12345 1.5K";
        char buffer[sizeof(whole) + 8];
        struct mg_text text;

        for (size_t size = 1; size <= sizeof(whole) + 4; size++) {
                memset(buffer, '#', sizeof(buffer));
                text_init(&text, buffer, size);
                text_put(&text, "abc");
                text_put_char(&text, ' ');
                text_put_u64(&text, 12345);
                text_put_span(&text, " ", 1);
                text_put_size(&text, 1536);
                assert_int_equal(text.length, MG_MIN(size, sizeof(whole)) - 1);
                assert_memory_equal(buffer, whole, text.length);
                assert_int_equal(buffer[text.length], '\0');
                assert_int_equal(text.overflow, size < sizeof(whole));
                for (size_t i = size; i < sizeof(buffer); i++)
                        assert_int_equal(buffer[i], '#');
        }
}

static void test_after_a_cut_nothing_more_is_put(void **state) {
        char buffer[4];
        struct mg_text text;

        text_init(&text, buffer, sizeof(buffer));
        text_put(&text, "abcdef");
        text_put(&text, "");
        text_put_char(&text, 'x');
        assert_string_equal(buffer, "abc");
        assert_true(text.overflow);

        /* Nothing put into no room is no cut. */
        text_init(&text, buffer, 1);
        text_put(&text, "");
        assert_false(text.overflow);
        text_put_char(&text, 'x');
        assert_true(text.overflow);
        assert_string_equal(buffer, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_size),
                cmocka_unit_test(test_duration),
                cmocka_unit_test(test_u64),
                cmocka_unit_test(test_pieces_are_joined),
                cmocka_unit_test(test_what_does_not_fit_is_cut),
                cmocka_unit_test(test_after_a_cut_nothing_more_is_put),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
