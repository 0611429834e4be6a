/* SPDX-License-Identifier: MIT */
/* Whose turn it is: MaxConcurrentTrims=, gain per millisecond, and nobody waits for ever. */
#include "core/schedule.h"

#include "base/macros.h"
#include "check.h"

#define MIN(n) ((uint64_t) (n) *MG_USEC_PER_MIN)
#define MIB(n) ((uint64_t) (n) *MG_MIB)

static int names[8];

static void test_slots(void **state) {
        struct mg_candidate c[3] = { { &names[0], MIB(1), 100, 0, false },
                                     { &names[1], MIB(2), 100, 0, false },
                                     { &names[2], MIB(3), 100, 0, false } };

        assert_int_equal(schedule_pick(c, 3, 0, 2, 0), 2);
        assert_ptr_equal(c[0].unit, &names[2]);
        assert_ptr_equal(c[1].unit, &names[1]);
        assert_int_equal(schedule_pick(c, 3, 1, 2, 0), 1);
        assert_int_equal(schedule_pick(c, 3, 2, 2, 0), 0);
        assert_int_equal(schedule_pick(c, 3, 5, 2, 0), 0);
        assert_int_equal(schedule_pick(c, 3, 0, 0, 0), 0);
        assert_int_equal(schedule_pick(c, 3, 0, SIZE_MAX, 0), 3);
        assert_int_equal(schedule_pick(NULL, 0, 0, 2, 0), 0);
}

static void test_order(void **state) {
        static const struct {
                const char *what;
                struct mg_candidate first, second;
                uint64_t now;
        } table[] = {
                { "more per millisecond",
                  { &names[0], MIB(100), 1000, 0, false },
                  { &names[1], MIB(400), 40000, 0, false },
                  0 },
                { "pressure before all",
                  { &names[0], MIB(1), 40000, 0, true },
                  { &names[1], MIB(900), 10, 0, false },
                  0 },
                { "waited four minutes: 16 times",
                  { &names[0], MIB(100), 1000, 0, false },
                  { &names[1], MIB(1500), 1000, MIN(4), false },
                  MIN(4) },
                { "not yet",
                  { &names[1], MIB(1700), 1000, MIN(4), false },
                  { &names[0], MIB(100), 1000, 0, false },
                  MIN(4) },
                { "equal: who waits longer",
                  { &names[1], MIB(100), 1000, 5, false },
                  { &names[0], MIB(100), 1000, 6, false },
                  7 },
                { "equal in all: any, but always the same",
                  { &names[0], MIB(100), 1000, 5, false },
                  { &names[1], MIB(100), 1000, 5, false },
                  7 },
                { "waiting for years",
                  { &names[0], 1, UINT64_MAX, 0, false },
                  { &names[1], UINT64_MAX, 0, MIN(5000000), false },
                  MIN(5000000) },
                { "due in the future: the clock went back",
                  { &names[0], MIB(2), 0, MIN(9), false },
                  { &names[1], MIB(1), 0, MIN(9), false },
                  0 },
                { "expecting nothing",
                  { &names[0], 1 + MIB(1), 0, 0, false },
                  { &names[1], 0, 0, 0, false },
                  0 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++)
                for (int swap = 0; swap < 2; swap++) {
                        struct mg_candidate c[2] = { table[i].first, table[i].second };

                        if (swap) {
                                c[0] = table[i].second;
                                c[1] = table[i].first;
                        }
                        assert_int_equal(schedule_pick(c, 2, 0, 1, table[i].now), 1);
                        if (c[0].unit != table[i].first.unit)
                                fail_msg("%s, swap %d", table[i].what, swap);
                }
}

#define UNITS 1000

/*
 * A thousand units, all due at once, two at a time, a second each; the big ones are due again as soon as they
 * were served. The small ones must all get their turn.
 */
static void test_nobody_starves(void **state) {
        static struct mg_candidate waiting[UNITS];
        static uint64_t served[UNITS];
        static char unit[UNITS];
        uint64_t now = 0;
        size_t n_unserved = UNITS;
        uint64_t last_first_service = 0;

        memset(served, 0, sizeof(served));
        for (size_t i = 0; i < UNITS; i++)
                waiting[i] = (struct mg_candidate){ .unit = &unit[i],
                                                    .expected_bytes = i < 100 ? MIB(4000) : MIB(33),
                                                    .predicted_pause_usec = 10000 };

        for (; n_unserved > 0 && now < MG_USEC_PER_HOUR; now += MG_USEC_PER_SEC) {
                size_t picked = schedule_pick(waiting, UNITS, 0, 2, now);

                assert_int_equal(picked, 2);
                for (size_t i = 0; i < picked; i++) {
                        size_t at = (size_t) ((char *) waiting[i].unit - unit);

                        n_unserved -= served[at]++ == 0;
                        waiting[i].due_since_usec = now;
                        last_first_service = now;
                }
        }
        assert_int_equal(n_unserved, 0);
        /* 450 s would be a perfect queue of the small ones; the rest is the big ones' due. */
        assert_true(last_first_service < 30 * MG_USEC_PER_MIN);
}

static void test_order_of_arrival_is_irrelevant(void **state) {
        struct check_random random = check_seed(7);
        struct mg_candidate a[50];
        struct mg_candidate b[50];
        static char unit[50];

        for (int round = 0; round < 1000; round++) {
                for (size_t i = 0; i < 50; i++)
                        a[i] = (struct mg_candidate){
                                .unit = &unit[i],
                                .expected_bytes = check_below(&random, 8) * MIB(10),
                                .predicted_pause_usec = check_below(&random, 4) * 1000,
                                .due_since_usec = MIN(check_below(&random, 6)),
                                .urgent = check_below(&random, 10) == 0,
                        };
                memcpy(b, a, sizeof(a));
                for (size_t i = 49; i > 0; i--) {
                        size_t j = check_below(&random, i + 1);
                        struct mg_candidate other = b[i];

                        b[i] = b[j];
                        b[j] = other;
                }
                assert_int_equal(schedule_pick(a, 50, 0, 5, MIN(6)), 5);
                assert_int_equal(schedule_pick(b, 50, 0, 5, MIN(6)), 5);
                for (size_t i = 0; i < 5; i++)
                        assert_ptr_equal(a[i].unit, b[i].unit);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_slots),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_nobody_starves),
                cmocka_unit_test(test_order_of_arrival_is_irrelevant),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
