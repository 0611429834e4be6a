/* SPDX-License-Identifier: MIT */
/* The history rings: floors, gaps, wrap-around, clocks that go back. */
#include "core/history.h"

#include "base/macros.h"
#include "check.h"

#define SEC(n) ((uint64_t) (n) *MG_USEC_PER_SEC)
#define MIB(n) ((uint64_t) (n) *MG_MIB)

static struct mg_history history;

static int set_up(void **state) {
        history_init(&history);
        return 0;
}

static uint32_t anon_of(enum mg_history_span span, size_t age) {
        struct mg_history_slot slot;
        uint64_t start_usec;

        if (!history_get(&history, span, age, &slot, &start_usec))
                return MG_HISTORY_UNKNOWN;
        assert_int_equal(start_usec % history_step_usec(span), 0);
        return slot.anon_kib;
}

static void test_empty(void **state) {
        for (int span = 0; span < _MG_HISTORY_SPAN_MAX; span++)
                for (size_t age = 0; age < history_slots(span) + 2; age++)
                        assert_int_equal(anon_of(span, age), MG_HISTORY_UNKNOWN);
}

/* A slot keeps its lowest sample, with what was live and retained at that moment. */
static void test_floor(void **state) {
        struct mg_history_slot slot;
        uint64_t start_usec;

        history_add(&history, MIB(30), MIB(20), MIB(9), SEC(1000));
        history_add(&history, MIB(10), MIB(5), MG_UNKNOWN, SEC(1001));
        history_add(&history, MIB(20), MIB(19), MIB(1), SEC(1004));
        assert_true(history_get(&history, MG_HISTORY_RAW, 0, &slot, &start_usec));
        assert_int_equal(start_usec, SEC(1000));
        assert_int_equal(slot.anon_kib, MIB(10) / MG_KIB);
        assert_int_equal(slot.live_kib, MIB(5) / MG_KIB);
        assert_int_equal(slot.retained_kib, MG_HISTORY_UNKNOWN);
        assert_int_equal(anon_of(MG_HISTORY_MINUTE, 0), MIB(10) / MG_KIB);
        assert_int_equal(anon_of(MG_HISTORY_QUARTER, 0), MIB(10) / MG_KIB);
}

static void test_gap(void **state) {
        history_add(&history, MIB(1), 0, 0, SEC(100));
        history_add(&history, MIB(2), 0, 0, SEC(120));
        assert_int_equal(anon_of(MG_HISTORY_RAW, 0), MIB(2) / MG_KIB);
        assert_int_equal(anon_of(MG_HISTORY_RAW, 1), MG_HISTORY_UNKNOWN);
        assert_int_equal(anon_of(MG_HISTORY_RAW, 3), MG_HISTORY_UNKNOWN);
        assert_int_equal(anon_of(MG_HISTORY_RAW, 4), MIB(1) / MG_KIB);
        assert_int_equal(anon_of(MG_HISTORY_RAW, 5), MG_HISTORY_UNKNOWN);
}

/* A day of samples each five seconds: every ring holds exactly its last slots. */
static void test_wrap(void **state) {
        uint64_t n = 2 * 24 * 60 * 60 / 5;

        for (uint64_t i = 1; i <= n; i++)
                history_add(&history, i * MG_KIB, 0, 0, SEC(5 * i));
        for (size_t age = 0; age < MG_HISTORY_RAW_SLOTS; age++)
                assert_int_equal(anon_of(MG_HISTORY_RAW, age), n - age);
        assert_int_equal(anon_of(MG_HISTORY_RAW, MG_HISTORY_RAW_SLOTS), MG_HISTORY_UNKNOWN);
        /* Growth: the floor of a minute is its first sample. */
        assert_int_equal(anon_of(MG_HISTORY_MINUTE, 0), n);
        assert_int_equal(anon_of(MG_HISTORY_MINUTE, 1), n - 12);
        assert_int_equal(anon_of(MG_HISTORY_MINUTE, MG_HISTORY_MINUTE_SLOTS - 1), n - 59 * 12);
        assert_int_equal(anon_of(MG_HISTORY_QUARTER, MG_HISTORY_QUARTER_SLOTS - 1), n - 95 * 180);
}

static void test_clocks(void **state) {
        history_add(&history, MIB(5), 0, 0, SEC(1000));
        history_add(&history, MIB(1), 0, 0, SEC(10)); /* back: ignored */
        assert_int_equal(anon_of(MG_HISTORY_RAW, 0), MIB(5) / MG_KIB);
        history_add(&history, MIB(7), 0, 0,
                    SEC(UINT32_MAX)); /* far ahead: all old slots are gone */
        assert_int_equal(anon_of(MG_HISTORY_RAW, 0), MIB(7) / MG_KIB);
        for (size_t age = 1; age < MG_HISTORY_RAW_SLOTS; age++)
                assert_int_equal(anon_of(MG_HISTORY_RAW, age), MG_HISTORY_UNKNOWN);
        history_add(&history, MIB(8), 0, 0, UINT64_MAX);
        assert_int_equal(anon_of(MG_HISTORY_QUARTER, 0), MIB(8) / MG_KIB);
}

static void test_extremes(void **state) {
        struct mg_history_slot slot;
        uint64_t start_usec;

        history_add(&history, MG_UNKNOWN - 1, MG_UNKNOWN, 0, SEC(1));
        assert_int_equal(anon_of(MG_HISTORY_RAW, 0), MG_HISTORY_UNKNOWN - 1);
        history_add(&history, MG_UNKNOWN, 0, 0, SEC(6)); /* unknown is no floor */
        assert_int_equal(anon_of(MG_HISTORY_RAW, 0), MG_HISTORY_UNKNOWN);
        history_trimmed(&history, MIB(3), SEC(7));
        history_trimmed(&history, MIB(4), SEC(8));
        assert_true(history_get(&history, MG_HISTORY_RAW, 0, &slot, &start_usec));
        assert_int_equal(slot.trimmed_kib, MIB(7) / MG_KIB);
        history_trimmed(&history, MG_UNKNOWN, SEC(8));
        assert_true(history_get(&history, MG_HISTORY_RAW, 0, &slot, &start_usec));
        assert_int_equal(slot.trimmed_kib, MG_HISTORY_UNKNOWN - 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_empty, set_up),
                cmocka_unit_test_setup(test_floor, set_up),
                cmocka_unit_test_setup(test_gap, set_up),
                cmocka_unit_test_setup(test_wrap, set_up),
                cmocka_unit_test_setup(test_clocks, set_up),
                cmocka_unit_test_setup(test_extremes, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
