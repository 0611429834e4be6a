/* SPDX-License-Identifier: MIT */
/* Floors, gaps, clocks, and slopes against exact rational arithmetic (data/make-trend-reference.py). */
#include "core/trend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "check.h"

#define MIN(n) ((uint64_t) (n) *MG_USEC_PER_MIN)

/* A finished minute of each of VALUES. */
static void feed(struct mg_trend *trend, uint64_t first_minute, const uint64_t *kib, size_t n) {
        for (size_t i = 0; i < n; i++)
                trend_add(trend, kib[i] * MG_KIB, MIN(first_minute + i));
        trend_add(trend, MG_GIB, MIN(first_minute + n));
}

static void test_lowest_of_each_minute(void **state) {
        struct mg_trend trend;

        trend_init(&trend);
        assert_false(trend_add(&trend, 500 * MG_KIB, MIN(7)));
        assert_false(trend_add(&trend, 300 * MG_KIB, MIN(7) + 1));
        assert_false(trend_add(&trend, 900 * MG_KIB, MIN(8) - 1));
        assert_int_equal(trend.count, 0);
        assert_true(trend_add(&trend, 100 * MG_KIB, MIN(8)));
        assert_int_equal(trend.count, 1);
        assert_int_equal(trend.floor_kib[0], 300);
        assert_int_equal(trend.lowest_kib, 100);
}

static void test_gaps(void **state) {
        struct mg_trend trend;

        trend_init(&trend);
        trend_add(&trend, MG_MIB, MIN(1));
        assert_true(trend_add(&trend, MG_MIB, MIN(4)));
        assert_int_equal(trend.count, 3);
        assert_int_equal(trend.floor_kib[0], 1024);
        assert_int_equal(trend.floor_kib[1], MG_TREND_GAP);
        assert_int_equal(trend.floor_kib[2], MG_TREND_GAP);
        /* A gap longer than the ring, of any length, leaves nothing to go by. */
        assert_true(trend_add(&trend, MG_MIB, UINT64_MAX));
        assert_int_equal(trend.count, MG_TREND_FLOORS_MAX);
        for (size_t i = 0; i < MG_TREND_FLOORS_MAX; i++)
                assert_int_equal(trend.floor_kib[i], MG_TREND_GAP);
}

static void test_clock_back(void **state) {
        struct mg_trend trend;

        trend_init(&trend);
        trend_add(&trend, MG_MIB, MIN(100));
        trend_add(&trend, MG_MIB, MIN(101));
        assert_false(trend_add(&trend, 2 * MG_MIB, MIN(50)));
        assert_int_equal(trend.count, 1);
        assert_int_equal(trend.minute, 50);
        assert_int_equal(trend.lowest_kib, 2048);
        assert_true(trend_add(&trend, MG_MIB, MIN(51)));
        assert_int_equal(trend.count, 2);
}

static void test_large_values_are_cut(void **state) {
        struct mg_trend trend;

        trend_init(&trend);
        trend_add(&trend, UINT64_MAX, MIN(1));
        trend_add(&trend, (uint64_t) MG_TREND_GAP * MG_KIB, MIN(2));
        trend_add(&trend, 0, MIN(3));
        assert_int_equal(trend.floor_kib[0], MG_TREND_GAP - 1);
        assert_int_equal(trend.floor_kib[1], MG_TREND_GAP - 1);
}

static void test_too_few(void **state) {
        uint64_t kib[MG_TREND_FLOORS_MIN] = {};
        struct mg_slope slope = { .floors = 77 };
        struct mg_trend trend;

        trend_init(&trend);
        assert_int_equal(trend_slope(&trend, 0, &slope), -ENODATA);
        feed(&trend, 10, kib, MG_TREND_FLOORS_MIN - 1);
        assert_int_equal(trend_slope(&trend, 0, &slope), -ENODATA);
        assert_int_equal(slope.floors, 77);
        trend_init(&trend);
        feed(&trend, 10, kib, MG_TREND_FLOORS_MIN);
        assert_int_equal(trend_slope(&trend, 5, &slope), -ENODATA);
        assert_int_equal(trend_slope(&trend, 0, &slope), 0);
        assert_int_equal(slope.floors, MG_TREND_FLOORS_MIN);
        assert_int_equal(slope.bytes_per_hour, 0);
        assert_int_equal(slope.standard_error, 0);
}

static void test_the_last_floors_alone(void **state) {
        struct mg_trend trend;
        struct mg_slope slope;
        uint64_t kib[200];

        /* Falls for 170 minutes, of which the ring keeps 90, then rises by 1 MiB a minute. */
        for (size_t i = 0; i < 200; i++)
                kib[i] = i < 170 ? 500000 - 1000 * i : 330000 + 1024 * (i - 170);
        trend_init(&trend);
        feed(&trend, 3, kib, 200);
        assert_int_equal(trend_slope(&trend, 30, &slope), 0);
        assert_int_equal(slope.bytes_per_hour, 60 * MG_MIB);
        assert_int_equal(slope.standard_error, 0);
        assert_int_equal(slope.first_third_floor_bytes, 330000 * MG_KIB);
        assert_int_equal(slope.earlier_peak_bytes, (330000 + 19 * 1024) * MG_KIB);
        assert_int_equal(slope.last_third_floor_bytes, (330000 + 20 * 1024) * MG_KIB);
        assert_int_equal(slope.last_third_peak_bytes, (330000 + 29 * 1024) * MG_KIB);
        assert_int_equal(trend_slope(&trend, 0, &slope), 0);
        assert_true(slope.bytes_per_hour < 0);
        assert_int_equal(slope.floors, MG_TREND_FLOORS_MAX);
        assert_int_equal(trend_slope(&trend, UINT32_MAX, &slope), 0);
        assert_int_equal(slope.floors, MG_TREND_FLOORS_MAX);
}

/* The bound that trend.c states: one byte per hour, or one part in 2^46 for the standard error. */
static void compare(char *line, size_t number) {
        char *save = NULL;
        int64_t want_slope = strtoll(strtok_r(line, " \n", &save), NULL, 10);
        uint64_t want_error = strtoull(strtok_r(NULL, " \n", &save), NULL, 10);
        struct mg_trend trend;
        struct mg_slope slope;
        uint64_t distance;
        uint32_t n = 0;

        trend_init(&trend);
        for (char *word; (word = strtok_r(NULL, " \n", &save)); n++)
                trend.floor_kib[n] =
                                word[0] == '-' ? MG_TREND_GAP : (uint32_t) strtoul(word, NULL, 10);
        trend.count = n;
        trend.head = n % MG_TREND_FLOORS_MAX;
        assert_int_equal(trend_slope(&trend, 0, &slope), 0);
        if (llabs(slope.bytes_per_hour - want_slope) > 1)
                fail_msg("line %zu: slope %jd, exactly %jd", number,
                         (intmax_t) slope.bytes_per_hour, (intmax_t) want_slope);
        distance = slope.standard_error > want_error ? slope.standard_error - want_error
                                                     : want_error - slope.standard_error;
        if (distance > 1 + (want_error >> 46))
                fail_msg("line %zu: standard error %ju, exactly %ju", number,
                         (uintmax_t) slope.standard_error, (uintmax_t) want_error);
}

static void test_against_reference(void **state) {
        char path[4096];
        char line[16384];
        size_t lines = 0;
        FILE *file;

        snprintf(path, sizeof(path), "%s/trend-reference.txt", getenv("TEST_DATA"));
        file = fopen(path, "re");
        assert_non_null(file);
        while (fgets(line, sizeof(line), file))
                compare(line, ++lines);
        fclose(file);
        assert_int_equal(lines, 176);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lowest_of_each_minute),
                cmocka_unit_test(test_gaps),
                cmocka_unit_test(test_clock_back),
                cmocka_unit_test(test_large_values_are_cut),
                cmocka_unit_test(test_too_few),
                cmocka_unit_test(test_the_last_floors_alone),
                cmocka_unit_test(test_against_reference),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
