/* SPDX-License-Identifier: MIT */
/* Counters of a unit's life: results, the histogram's bounds, time held by reason. */
#include "core/tally.h"

#include "check.h"

#define SEC(n) ((uint64_t) (n) *MG_USEC_PER_SEC)

static struct mg_tally tally;

static int set_up(void **state) {
        tally = (struct mg_tally){};
        return 0;
}

static struct mg_outcome outcome_of(uint32_t asked, uint32_t answered, uint32_t refused) {
        return (struct mg_outcome){
                .n_asked = asked, .n_answered = answered, .n_refused = refused, .pause_usec = 700
        };
}

static void test_results(void **state) {
        static const struct {
                uint32_t asked, answered, refused;
                enum mg_outcome_result result;
        } table[] = {
                { 3, 3, 0, MG_OUTCOME_DONE },    { 3, 2, 0, MG_OUTCOME_PARTIAL },
                { 3, 3, 1, MG_OUTCOME_PARTIAL }, { 3, 3, 3, MG_OUTCOME_REFUSED },
                { 3, 1, 1, MG_OUTCOME_REFUSED }, { 3, 0, 0, MG_OUTCOME_FAILED },
                { 0, 0, 0, MG_OUTCOME_FAILED },  { 1, 1, 2, MG_OUTCOME_REFUSED },
        };
        uint64_t want[_MG_OUTCOME_MAX] = {};
        uint64_t n_pauses = 0;

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct mg_outcome outcome =
                                outcome_of(table[i].asked, table[i].answered, table[i].refused);
                assert_int_equal(outcome_result(&outcome), table[i].result);
                tally_round(&tally, &outcome);
                want[table[i].result]++;
        }
        assert_memory_equal(tally.results, want, sizeof(want));
        for (size_t i = 0; i < MG_ELEMENTS(tally.pauses); i++)
                n_pauses += tally.pauses[i];
        assert_int_equal(n_pauses, want[MG_OUTCOME_DONE] + want[MG_OUTCOME_PARTIAL]);
        assert_int_equal(tally.pause_sum_usec, 700 * n_pauses);
}

/* A bound belongs to its own bucket, one microsecond more to the next. */
static void test_bounds(void **state) {
        struct mg_outcome outcome = outcome_of(1, 1, 0);

        for (size_t i = 0; i < MG_PAUSE_BOUNDS; i++) {
                outcome.pause_usec = tally_pause_bound_usec(i);
                assert_true(i == 0 || outcome.pause_usec > tally_pause_bound_usec(i - 1));
                tally_round(&tally, &outcome);
                assert_int_equal(tally.pauses[i], i == 0 ? 1 : 2);
                outcome.pause_usec++;
                tally_round(&tally, &outcome);
                assert_int_equal(tally.pauses[i + 1], 1);
        }
        assert_int_equal(tally_pause_bound_usec(MG_PAUSE_BOUNDS), MG_UNKNOWN);
}

static void test_largest_pause(void **state) {
        struct mg_outcome outcome = outcome_of(1, 1, 0);

        outcome.pause_usec = MG_UNKNOWN - 1;
        tally_round(&tally, &outcome);
        tally_round(&tally, &outcome);
        assert_int_equal(tally.pauses[MG_PAUSE_BOUNDS], 2);
        assert_int_equal(tally.pause_sum_usec, MG_UNKNOWN - 1);
}

static void decide(enum mg_action action, enum mg_reason reason, uint64_t now_usec) {
        const struct mg_decision decision = { .action = action, .reason = reason };

        tally_decision(&tally, &decision, now_usec);
}

/* Time belongs to the decision that was in force, not to the one that ended it. */
static void test_held(void **state) {
        decide(MG_ACTION_HOLD, MG_REASON_COOLDOWN, SEC(100));
        decide(MG_ACTION_HOLD, MG_REASON_COOLDOWN, SEC(105));
        decide(MG_ACTION_TRIM, MG_REASON_THRESHOLD, SEC(112));
        decide(MG_ACTION_HOLD, MG_REASON_PINNED, SEC(150));
        decide(MG_ACTION_HOLD, MG_REASON_COOLDOWN, SEC(151));
        assert_int_equal(tally.held_usec[MG_REASON_COOLDOWN], SEC(12));
        assert_int_equal(tally.held_usec[MG_REASON_PINNED], SEC(1));
        assert_int_equal(tally.held_usec[MG_REASON_THRESHOLD], 0);
}

static void test_clock_steps_back(void **state) {
        decide(MG_ACTION_HOLD, MG_REASON_COOLDOWN, SEC(100));
        decide(MG_ACTION_HOLD, MG_REASON_COOLDOWN, SEC(50));
        decide(MG_ACTION_HOLD, MG_REASON_COOLDOWN, SEC(53));
        assert_int_equal(tally.held_usec[MG_REASON_COOLDOWN], SEC(3));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(test_results, set_up),
                cmocka_unit_test_setup(test_bounds, set_up),
                cmocka_unit_test_setup(test_largest_pause, set_up),
                cmocka_unit_test_setup(test_held, set_up),
                cmocka_unit_test_setup(test_clock_steps_back, set_up),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
