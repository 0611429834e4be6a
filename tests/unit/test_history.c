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

/* KiB; UINT64_MAX: nothing there. */
static uint64_t anon_of(enum mg_history_span span, size_t age) {
        struct mg_history_sample sample;
        uint64_t start_usec;

        if (!history_get(&history, span, age, &sample, &start_usec))
                return MG_UNKNOWN;
        assert_int_equal(start_usec % history_step_usec(span), 0);
        return sample.anon_bytes / MG_KIB;
}

static void add(uint64_t anon_bytes,
                uint64_t live_bytes,
                uint64_t retained_bytes,
                uint64_t now_usec) {
        history_add(&history,
                    &(struct mg_history_sample){ anon_bytes, live_bytes, retained_bytes, MIB(64) },
                    now_usec);
}

static void test_empty(void **state) {
        struct mg_history_walk walk;
        struct mg_history_sample sample;
        struct mg_history_trim trim;
        enum mg_history_span found;
        uint64_t start_usec;

        for (int span = 0; span < _MG_HISTORY_SPAN_MAX; span++)
                for (size_t age = 0; age < history_slots(span) + 2; age++)
                        assert_int_equal(anon_of(span, age), MG_UNKNOWN);
        history_walk_init(&walk);
        assert_false(history_walk_next(&history, &walk, &sample, &found, &start_usec));
        assert_false(history_get_trim(&history, 0, &trim));
}

/* A slot keeps its lowest sample, with what was live and retained at that moment. */
static void test_floor(void **state) {
        struct mg_history_sample sample;
        uint64_t start_usec;

        add(MIB(30), MIB(20), MIB(9), SEC(1000));
        add(MIB(10), MIB(5), MG_UNKNOWN, SEC(1001));
        add(MIB(20), MIB(19), MIB(1), SEC(1004));
        assert_true(history_get(&history, MG_HISTORY_RAW, 0, &sample, &start_usec));
        assert_int_equal(start_usec, SEC(1000));
        assert_int_equal(sample.anon_bytes, MIB(10));
        assert_int_equal(sample.live_bytes, MIB(5));
        assert_int_equal(sample.retained_bytes, MG_UNKNOWN);
        assert_int_equal(sample.trim_above_bytes, MIB(64));
        assert_int_equal(anon_of(MG_HISTORY_MINUTE, 0), MIB(10) / MG_KIB);
        assert_int_equal(anon_of(MG_HISTORY_QUARTER, 0), MIB(10) / MG_KIB);
}

static void test_gap(void **state) {
        add(MIB(1), 0, 0, SEC(100));
        add(MIB(2), 0, 0, SEC(120));
        assert_int_equal(anon_of(MG_HISTORY_RAW, 0), MIB(2) / MG_KIB);
        assert_int_equal(anon_of(MG_HISTORY_RAW, 1), MG_UNKNOWN);
        assert_int_equal(anon_of(MG_HISTORY_RAW, 3), MG_UNKNOWN);
        assert_int_equal(anon_of(MG_HISTORY_RAW, 4), MIB(1) / MG_KIB);
        assert_int_equal(anon_of(MG_HISTORY_RAW, 5), MG_UNKNOWN);
}

/* Two days of samples each five seconds, growing by a KiB each: every ring holds exactly its last slots. */
static void test_wrap(void **state) {
        uint64_t n = 2 * 24 * 60 * 60 / 5;

        for (uint64_t i = 1; i <= n; i++)
                add(i * MG_KIB, 0, 0, SEC(5 * i));
        for (size_t age = 0; age < MG_HISTORY_RAW_SLOTS; age++)
                assert_in_range(anon_of(MG_HISTORY_RAW, age), n - age - 8, n - age + 8);
        assert_int_equal(anon_of(MG_HISTORY_RAW, MG_HISTORY_RAW_SLOTS), MG_UNKNOWN);
        /* Growth: the floor of a minute is its first sample. */
        assert_in_range(anon_of(MG_HISTORY_MINUTE, 1), n - 12 - 8, n - 12 + 8);
        assert_in_range(anon_of(MG_HISTORY_MINUTE, MG_HISTORY_MINUTE_SLOTS - 1), n - 59 * 12 - 8,
                        n - 59 * 12 + 8);
        assert_in_range(anon_of(MG_HISTORY_QUARTER, MG_HISTORY_QUARTER_SLOTS - 1), n - 95 * 180 - 8,
                        n - 95 * 180 + 8);
}

/* The whole day in the order of time: quarters, then minutes, then the raw steps, and no moment is missing. */
static void test_walk(void **state) {
        size_t count[_MG_HISTORY_SPAN_MAX] = {};
        uint64_t covered_usec = 0, now_usec = 2 * 24 * MG_USEC_PER_HOUR + SEC(7);
        enum mg_history_span span, coarsest = MG_HISTORY_QUARTER;
        struct mg_history_sample sample;
        struct mg_history_walk walk;
        uint64_t start_usec, before_usec = 0;

        for (uint64_t usec = SEC(3); usec <= now_usec; usec += SEC(5))
                add(MIB(9), MIB(1), MIB(8), usec);
        history_walk_init(&walk);
        while (history_walk_next(&history, &walk, &sample, &span, &start_usec)) {
                assert_true(span <= coarsest);
                assert_true(start_usec > before_usec);
                assert_true(covered_usec == 0 || start_usec <= covered_usec);
                assert_int_equal(sample.anon_bytes, MIB(9));
                coarsest = span;
                before_usec = start_usec;
                covered_usec = start_usec + history_step_usec(span);
                count[span]++;
        }
        assert_true(covered_usec > now_usec - SEC(5));
        assert_int_equal(count[MG_HISTORY_RAW], MG_HISTORY_RAW_SLOTS);
        assert_in_range(count[MG_HISTORY_MINUTE], 49, 51);
        assert_in_range(count[MG_HISTORY_QUARTER], 91, 93);
        assert_false(history_walk_next(&history, &walk, &sample, &span, &start_usec));
}

/* A unit that is a minute old has raw steps alone; one that was not seen for half an hour has a hole. */
static void test_walk_short(void **state) {
        struct mg_history_sample sample;
        struct mg_history_walk walk;
        enum mg_history_span span;
        uint64_t start_usec;
        size_t n = 0;

        for (uint64_t i = 0; i < 12; i++)
                add(MIB(9), 0, 0, SEC(10000 + 5 * i));
        for (history_walk_init(&walk);
             history_walk_next(&history, &walk, &sample, &span, &start_usec); n++)
                assert_int_equal(span, MG_HISTORY_RAW);
        assert_int_equal(n, 12);
        add(MIB(4), 0, 0, SEC(11900));
        history_walk_init(&walk);
        assert_true(history_walk_next(&history, &walk, &sample, &span, &start_usec));
        assert_int_equal(span, MG_HISTORY_MINUTE);
        assert_int_equal(start_usec, SEC(9960));
        assert_true(history_walk_next(&history, &walk, &sample, &span, &start_usec));
        assert_int_equal(start_usec, SEC(10020));
        assert_true(history_walk_next(&history, &walk, &sample, &span, &start_usec));
        assert_int_equal(span, MG_HISTORY_RAW);
        assert_int_equal(start_usec, SEC(11900));
        assert_int_equal(sample.anon_bytes, MIB(4));
        assert_false(history_walk_next(&history, &walk, &sample, &span, &start_usec));
}

static void test_clocks(void **state) {
        add(MIB(5), 0, 0, SEC(1000));
        add(MIB(1), 0, 0, SEC(10)); /* back: ignored */
        assert_int_equal(anon_of(MG_HISTORY_RAW, 0), MIB(5) / MG_KIB);
        add(MIB(7), 0, 0, SEC(UINT32_MAX)); /* far ahead: all old slots are gone */
        assert_int_equal(anon_of(MG_HISTORY_RAW, 0), MIB(7) / MG_KIB);
        for (size_t age = 1; age < MG_HISTORY_RAW_SLOTS; age++)
                assert_int_equal(anon_of(MG_HISTORY_RAW, age), MG_UNKNOWN);
        add(MIB(8), 0, 0, UINT64_MAX);
        assert_int_equal(anon_of(MG_HISTORY_QUARTER, 0), MIB(8) / MG_KIB);
}

/* Exact to 4 MiB, then to 1/4096; it never shrinks as the value grows, and unknown stays unknown. */
static void test_precision(void **state) {
        static const uint64_t kibs[] = { 0,        1,          2047,       2048,      2049, 4095,
                                         4096,     4097,       8190,       8191,      8192, 123456,
                                         1u << 20, UINT32_MAX, 1ull << 40, 1ull << 41 };
        uint64_t last = 0;

        for (size_t i = 0; i < MG_ELEMENTS(kibs); i++) {
                history_init(&history);
                add(kibs[i] * MG_KIB, MG_UNKNOWN, 0, SEC(1));
                uint64_t kept = anon_of(MG_HISTORY_RAW, 0);
                if (kibs[i] < 4096)
                        assert_int_equal(kept, kibs[i]);
                assert_in_range(kept, kibs[i] - kibs[i] / 4096, kibs[i] + kibs[i] / 4096);
                assert_true(kept >= last);
                last = kept;
        }
        /* Every size about a power of two, where roundings carry over. */
        last = 0;
        for (uint64_t kib = 0; kib < 70000; kib++) {
                history_init(&history);
                add(kib * MG_KIB, 0, 0, SEC(1));
                uint64_t kept = anon_of(MG_HISTORY_RAW, 0);
                assert_in_range(kept, kib - kib / 4096, kib + kib / 4096);
                assert_true(kept >= last);
                last = kept;
        }
}

static void test_extremes(void **state) {
        struct mg_history_sample sample;
        uint64_t start_usec;

        add(MG_UNKNOWN - 1, MG_UNKNOWN, MG_UNKNOWN - 1, SEC(1));
        assert_true(history_get(&history, MG_HISTORY_RAW, 0, &sample, &start_usec));
        assert_true(sample.anon_bytes > UINT64_C(1) << 50);
        assert_int_equal(sample.live_bytes, MG_UNKNOWN);
        assert_int_not_equal(sample.retained_bytes, MG_UNKNOWN);
        add(MG_UNKNOWN, 0, 0, SEC(6)); /* unknown is no floor */
        assert_int_equal(anon_of(MG_HISTORY_RAW, 0), MG_UNKNOWN);
}

static struct mg_outcome outcome(uint64_t second) {
        return (struct mg_outcome){
                .ended_usec = SEC(second) + 999999,
                .before_bytes = MIB(500),
                .after_bytes = MIB(second),
                .expected_bytes = MIB(480),
                .duration_usec = 40000,
                .pause_usec = 16000,
                .n_asked = 2,
                .n_answered = 2,
                .reason = MG_REASON_MASS_FREE,
        };
}

static void test_trims(void **state) {
        struct mg_history_trim trim;
        struct mg_outcome round;

        for (uint64_t i = 1; i <= 2 * MG_HISTORY_TRIMS + 3; i++) {
                round = outcome(i);
                round.n_refused = i % 3;
                history_trimmed(&history, &round);
                assert_true(history_get_trim(&history, 0, &trim));
                assert_int_equal(trim.ended_usec, SEC(i));
                assert_int_equal(trim.after_bytes, MIB(i));
                assert_int_equal(trim.gain_bytes, MIB(500 - i));
                assert_int_equal(
                                trim.result, i % 3 == 0   ? MG_OUTCOME_DONE
                                             : i % 3 == 1 ? MG_OUTCOME_PARTIAL
                                                          : MG_OUTCOME_REFUSED);
        }
        assert_int_equal(trim.before_bytes, MIB(500));
        assert_int_equal(trim.expected_bytes, MIB(480));
        assert_int_equal(trim.duration_usec, 40000);
        assert_int_equal(trim.pause_usec, 16000);
        assert_int_equal(trim.reason, MG_REASON_MASS_FREE);
        assert_true(history_get_trim(&history, MG_HISTORY_TRIMS - 1, &trim));
        assert_int_equal(trim.ended_usec, SEC(MG_HISTORY_TRIMS + 4));
        assert_false(history_get_trim(&history, MG_HISTORY_TRIMS, &trim));
        assert_false(history_get_trim(&history, SIZE_MAX, &trim));
}

static void test_hostile_trim(void **state) {
        struct mg_history_trim trim;
        struct mg_outcome round;

        memset(&round, 0xff, sizeof(round));
        round.reason = MG_REASON_BY_HAND;
        round.n_answered = 0;
        history_trimmed(&history, &round);
        assert_true(history_get_trim(&history, 0, &trim));
        assert_int_equal(trim.before_bytes, MG_UNKNOWN);
        assert_int_equal(trim.result, MG_OUTCOME_FAILED);
        assert_int_equal(trim.pause_usec, UINT32_MAX);
        history_init(&history);
        assert_false(history_get_trim(&history, 0, &trim));
}

/* A host with a thousand units pays this a thousand times. */
static void test_memory(void **state) {
        assert_true(sizeof(struct mg_history) <= 3400);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_empty, set_up),
                cmocka_unit_test_setup(test_floor, set_up),
                cmocka_unit_test_setup(test_gap, set_up),
                cmocka_unit_test_setup(test_wrap, set_up),
                cmocka_unit_test_setup(test_walk, set_up),
                cmocka_unit_test_setup(test_walk_short, set_up),
                cmocka_unit_test_setup(test_clocks, set_up),
                cmocka_unit_test_setup(test_precision, set_up),
                cmocka_unit_test_setup(test_extremes, set_up),
                cmocka_unit_test_setup(test_trims, set_up),
                cmocka_unit_test_setup(test_hostile_trim, set_up),
                cmocka_unit_test_setup(test_memory, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
