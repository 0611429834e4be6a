/* SPDX-License-Identifier: MIT */
/* Each condition of a decision, their order, and what an operator's hand may and may not do. */
#include "core/policy.h"

#include "simulated_unit.h"

/* A unit for which every condition holds. */
static void setup(struct sim_unit *u) {
        sim_init(u);
        u->soft = MIB(500);
        sim_measure(u);
}

static void step(struct sim_unit *u) {
        policy_step(&u->state, &u->config, &u->sample, u->now_usec, &u->decision);
}

static void assert_held(struct sim_unit *u, enum mg_reason reason) {
        step(u);
        if (u->decision.reason != reason)
                fail_msg("%s, not %s", reason_to_string(u->decision.reason),
                         reason_to_string(reason));
        assert_int_equal(u->decision.action, MG_ACTION_HOLD);
}

static void test_due(void **state) {
        struct sim_unit u;

        setup(&u);
        step(&u);
        assert_int_equal(u.decision.action, MG_ACTION_TRIM);
        assert_int_equal(u.decision.reason, MG_REASON_THRESHOLD);
        assert_int_equal(u.decision.expected_bytes, MIB(500));
        assert_int_equal(u.decision.trim_above_bytes, MIB(256));
        assert_true(u.decision.predicted_pause_usec > 0);
        assert_true(u.decision.predicted_pause_usec < u.config.max_pause_usec);
        assert_int_equal(u.decision.hold_until_usec, 0);
        assert_false(u.decision.would_trim);
        for (uint32_t i = 0; i < u.decision.n_conditions; i++)
                assert_int_not_equal(u.decision.conditions[i].state, MG_CONDITION_FAILS);
}

typedef void (*mg_spoiler)(struct sim_unit *u);

static void spoil_off(struct sim_unit *u) {
        u->config.mode = MG_MODE_OFF;
}
static void spoil_paused(struct sim_unit *u) {
        u->sample.paused = true;
}
static void spoil_no_agent(struct sim_unit *u) {
        u->process.has_agent = false;
}
static void spoil_no_process(struct sim_unit *u) {
        u->sample.n_processes = 0;
}
static void spoil_no_statistics(struct sim_unit *u) {
        u->process.stats_at_usec = MG_UNKNOWN;
}
/* Two samples, since a verdict is the same answer twice. */
static void assert_verdict(void (*spoil)(struct sim_unit *), enum mg_verdict verdict) {
        struct sim_unit u;

        setup(&u);
        spoil(&u);
        step(&u);
        u.now_usec += 5 * MG_USEC_PER_SEC;
        step(&u);
        if (u.state.verdict.verdict != verdict)
                fail_msg("%s, not %s", verdict_to_string(u.state.verdict.verdict),
                         verdict_to_string(verdict));
}

static void test_verdict_of_the_unseen(void **state) {
        assert_verdict(spoil_no_statistics, MG_VERDICT_NO_STATISTICS);
        assert_verdict(spoil_no_agent, MG_VERDICT_NO_AGENT);
        assert_verdict(spoil_no_process, MG_VERDICT_NO_AGENT);
}

static void spoil_no_memory(struct sim_unit *u) {
        u->sample.memory.anon_bytes = u->process.rss_anon_bytes = MG_UNKNOWN;
}
static void spoil_stopping(struct sim_unit *u) {
        u->sample.activity = MG_ACTIVITY_DEACTIVATING;
}
static void spoil_starting(struct sim_unit *u) {
        u->sample.activity = MG_ACTIVITY_ACTIVATING;
}
static void spoil_reloading(struct sim_unit *u) {
        u->sample.activity = MG_ACTIVITY_RELOADING;
}
static void spoil_breaker(struct sim_unit *u) {
        u->state.breaker_open = true;
}
static void spoil_cannot_trim(struct sim_unit *u) {
        u->process.can_trim = false;
}
static void spoil_suspended(struct sim_unit *u) {
        u->process.suspended = true;
}
static void spoil_threshold(struct sim_unit *u) {
        u->config.trim_above_bytes = MIB(500);
}
static void spoil_threshold_by_share(struct sim_unit *u) {
        u->config.trim_above_bytes = 0;
        u->config.trim_above_permyriad = 250000; /* of 20 MiB live */
}
static void spoil_backoff(struct sim_unit *u) {
        u->state.backoff_usec = MIN(10);
        u->state.backoff_until_usec = u->now_usec + 1;
        u->state.backoff_reason = MG_REASON_REGROWTH;
        u->state.last_trim_usec = u->now_usec - MIN(9);
}
static void spoil_min_gain(struct sim_unit *u) {
        u->process.estimate_bytes = MIB(31);
}
static void spoil_cooldown(struct sim_unit *u) {
        u->state.last_trim_usec = u->now_usec - MIN(4);
        u->state.cooldown_until_usec = u->now_usec + 1;
}
static void spoil_watchdog(struct sim_unit *u) {
        u->sample.watchdog_usec = SEC(1);
        u->state.last_pause_usec = SEC(1) / 4 + 1;
}
static void spoil_watchdog_predicted(struct sim_unit *u) {
        u->sample.watchdog_usec = 4000;
}
static void spoil_max_pause(struct sim_unit *u) {
        u->config.max_pause_usec = 1000;
}
static void spoil_when(struct sim_unit *u) {
        u->config.when = MG_WHEN_IDLE;
}
static void spoil_busy(struct sim_unit *u) {
        u->process.busy = true;
}
static void spoil_observe(struct sim_unit *u) {
        u->config.mode = MG_MODE_OBSERVE;
}

static const struct {
        enum mg_reason reason;
        mg_spoiler spoil;
        bool by_hand_too;
} spoilers[] = {
        { MG_REASON_OFF, spoil_off, false },
        { MG_REASON_PAUSED, spoil_paused, true },
        { MG_REASON_NO_AGENT, spoil_no_agent, true },
        { MG_REASON_NO_AGENT, spoil_no_process, true },
        { MG_REASON_NO_STATISTICS, spoil_no_statistics, true },
        { MG_REASON_NO_STATISTICS, spoil_no_memory, true },
        { MG_REASON_NOT_ACTIVE, spoil_stopping, true },
        { MG_REASON_NOT_ACTIVE, spoil_starting, true },
        { MG_REASON_NOT_ACTIVE, spoil_reloading, true },
        { MG_REASON_BREAKER, spoil_breaker, false },
        { MG_REASON_CANNOT_TRIM, spoil_cannot_trim, true },
        { MG_REASON_SUSPENDED, spoil_suspended, true },
        { MG_REASON_BELOW_THRESHOLD, spoil_threshold, false },
        { MG_REASON_BELOW_THRESHOLD, spoil_threshold_by_share, false },
        { MG_REASON_REGROWTH, spoil_backoff, false },
        { MG_REASON_BELOW_MIN_GAIN, spoil_min_gain, false },
        { MG_REASON_COOLDOWN, spoil_cooldown, false },
        { MG_REASON_WATCHDOG, spoil_watchdog, true },
        { MG_REASON_WATCHDOG, spoil_watchdog_predicted, true },
        { MG_REASON_MAX_PAUSE, spoil_max_pause, true },
        { MG_REASON_WHEN, spoil_when, false },
        { MG_REASON_BUSY, spoil_busy, true },
        { MG_REASON_OBSERVED, spoil_observe, false },
};

static void test_each_condition_alone(void **state) {
        for (size_t i = 0; i < MG_ELEMENTS(spoilers); i++) {
                struct sim_unit u;
                bool failed = false;

                setup(&u);
                spoilers[i].spoil(&u);
                assert_held(&u, spoilers[i].reason);
                /* Exactly one fails, it is the reason, and nothing after it was looked at. */
                for (uint32_t c = 0; c < u.decision.n_conditions; c++) {
                        const struct mg_condition *condition = &u.decision.conditions[c];

                        if (failed)
                                assert_int_equal(condition->state, MG_CONDITION_SKIPPED);
                        if (condition->state != MG_CONDITION_FAILS)
                                continue;
                        assert_int_equal(condition->reason, spoilers[i].reason);
                        failed = true;
                }
                assert_true(failed);
                assert_int_equal(u.decision.would_trim, spoilers[i].reason == MG_REASON_OBSERVED);
        }
}

/* Of two faults the earlier condition's is the reason; the table is in that order. */
static void test_order_of_reasons(void **state) {
        for (size_t first = 0; first < MG_ELEMENTS(spoilers); first++)
                for (size_t second = first + 1; second < MG_ELEMENTS(spoilers); second++) {
                        struct sim_unit u;

                        setup(&u);
                        spoilers[second].spoil(&u);
                        spoilers[first].spoil(&u);
                        assert_held(&u, spoilers[first].reason);
                }
}

static void test_by_hand(void **state) {
        for (size_t i = 0; i < MG_ELEMENTS(spoilers); i++) {
                struct mg_decision decision;
                struct mg_policy_state before;
                struct sim_unit u;

                setup(&u);
                spoilers[i].spoil(&u);
                before = u.state;
                policy_by_hand(&u.state, &u.config, &u.sample, u.now_usec, &decision);
                assert_memory_equal(&before, &u.state, sizeof(before));
                if (spoilers[i].by_hand_too) {
                        assert_int_equal(decision.action, MG_ACTION_HOLD);
                        assert_int_equal(decision.reason, spoilers[i].reason);
                } else {
                        assert_int_equal(decision.action, MG_ACTION_TRIM);
                        assert_int_equal(decision.reason, MG_REASON_BY_HAND);
                }
        }
}

/* A byte is worth an operator's trim, nothing is not. */
static void test_by_hand_of_nothing(void **state) {
        for (int soft = 0; soft < 2; soft++) {
                struct mg_decision decision;
                struct sim_unit u;

                setup(&u);
                u.soft = (uint64_t) soft;
                u.hard = 0;
                sim_measure(&u);
                policy_by_hand(&u.state, &u.config, &u.sample, u.now_usec, &decision);
                assert_int_equal(decision.action, soft ? MG_ACTION_TRIM : MG_ACTION_HOLD);
                assert_int_equal(
                                decision.reason,
                                soft ? MG_REASON_BY_HAND : MG_REASON_BELOW_MIN_GAIN);
        }
}

static void test_trim_above_larger_counts(void **state) {
        static const struct {
                uint64_t live, soft;
                bool due;
        } table[] = {
                { MIB(20), MIB(256), false },      { MIB(20), MIB(257), true },
                { MIB(4000), MIB(700), false },    { MIB(4000), MIB(800), false },
                { MIB(4000), MIB(801), true },     { 0, MIB(257), true },
                { MIB(100000), MIB(9000), false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct sim_unit u;

                sim_init(&u);
                u.config.max_pause_usec = SEC(10);
                u.live = table[i].live;
                u.soft = table[i].soft;
                sim_measure(&u);
                step(&u);
                assert_int_equal(u.decision.action == MG_ACTION_TRIM, table[i].due);
        }
}

static void test_expected_is_what_fits(void **state) {
        struct mg_process_sample p[2];
        struct sim_unit u;

        setup(&u);
        p[0] = p[1] = u.process;
        p[0].pid = 1;
        p[0].rss_anon_bytes = p[0].stats_rss_bytes = MIB(20) + MIB(9000);
        p[1].rss_anon_bytes = p[1].stats_rss_bytes = MIB(20) + MIB(60);
        u.sample.processes = p;
        u.sample.n_processes = 2;
        u.sample.memory.anon_bytes = MIB(9100);
        step(&u);
        assert_int_equal(u.decision.action, MG_ACTION_TRIM);
        assert_int_equal(u.decision.expected_bytes, MIB(60));

        /* What is left within MaxPause= is not worth a round: the pause is the reason, not the gain. */
        p[1].rss_anon_bytes = p[1].stats_rss_bytes = MIB(20) + MIB(8);
        assert_held(&u, MG_REASON_MAX_PAUSE);
}

/* What a suspended program keeps is worth no round of the others. */
static void test_suspended_sibling(void **state) {
        struct sim_unit u;

        setup(&u);
        u.soft = MIB(1);
        sim_measure(&u);
        sim_add_sibling(&u, MIB(20), MIB(600))->suspended = true;
        sim_tick(&u);
        assert_int_equal(u.decision.action, MG_ACTION_HOLD);
        assert_int_equal(u.decision.reason, MG_REASON_BELOW_MIN_GAIN);
        u.sample.under_pressure = true;
        sim_tick(&u);
        assert_int_equal(u.decision.action, MG_ACTION_HOLD);
        assert_false(u.decision.pressure_alert);
        u.sample.under_pressure = false;
        u.pair[1].suspended = false;
        assert_true(sim_tick(&u));
}

static void test_pressure(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.soft = MIB(100);
        sim_measure(&u);
        assert_held(&u, MG_REASON_BELOW_THRESHOLD);
        u.sample.under_pressure = true;
        step(&u);
        assert_int_equal(u.decision.action, MG_ACTION_TRIM);
        assert_int_equal(u.decision.reason, MG_REASON_PRESSURE);
        assert_false(u.decision.pressure_alert);

        /* It ignores a back-off, never the cool-down or MaxPause=. */
        spoil_backoff(&u);
        step(&u);
        assert_int_equal(u.decision.reason, MG_REASON_PRESSURE);
        spoil_cooldown(&u);
        assert_held(&u, MG_REASON_COOLDOWN);
        assert_int_equal(u.decision.hold_until_usec, u.now_usec + 1);

        /* The excess is live: an alert, no trim. */
        u.live = MIB(250);
        u.soft = MIB(10);
        u.now_usec += MIN(10);
        sim_measure(&u);
        assert_held(&u, MG_REASON_BELOW_MIN_GAIN);
        assert_true(u.decision.pressure_alert);
}

static void test_when(void **state) {
        struct sim_unit u;

        setup(&u);
        u.config.when = MG_WHEN_CHECKPOINT | MG_WHEN_PRESSURE;
        assert_held(&u, MG_REASON_WHEN);
        u.sample.checkpoint_at_usec = u.now_usec - SEC(61);
        assert_held(&u, MG_REASON_WHEN);
        u.sample.checkpoint_at_usec = u.now_usec - SEC(5);
        step(&u);
        assert_int_equal(u.decision.action, MG_ACTION_TRIM);

        setup(&u);
        u.config.when = MG_WHEN_PRESSURE;
        u.sample.under_pressure = true;
        step(&u);
        assert_int_equal(u.decision.action, MG_ACTION_TRIM);

        /* Pressure alone is no leave where the operator gave it for idle moments. */
        u.config.when = MG_WHEN_IDLE;
        assert_held(&u, MG_REASON_WHEN);
}

static void test_when_idle(void **state) {
        struct sim_unit u;

        setup(&u);
        u.config.when = MG_WHEN_IDLE;
        u.sample.cpu_usage_usec = 0;
        /* 10 % of a CPU for a minute, then 4 %: due 30 s after the last busy interval. */
        for (int i = 0; i < 12; i++) {
                u.sample.cpu_usage_usec += SEC(5) / 10;
                assert_false(sim_tick(&u));
                assert_int_equal(u.decision.reason, MG_REASON_WHEN);
        }
        for (int i = 1; i <= 6; i++) {
                u.sample.cpu_usage_usec += SEC(5) / 25;
                assert_int_equal(sim_tick(&u), i == 6);
        }

        /* A counter that goes back (a process has ended) or is unknown makes nobody idle. */
        setup(&u);
        u.config.when = MG_WHEN_IDLE;
        u.sample.cpu_usage_usec = MG_UNKNOWN;
        sim_run(&u, MIN(5));
        assert_int_equal(u.n_trims, 0);
        for (int i = 0; i < 20; i++) {
                u.sample.cpu_usage_usec = i % 2 ? SEC(500) : SEC(1);
                sim_tick(&u);
        }
        assert_int_equal(u.n_trims, 0);
}

static void test_would_trim_counted_once(void **state) {
        struct sim_unit u;

        setup(&u);
        u.config.mode = MG_MODE_OBSERVE;
        sim_run(&u, HOUR(3));
        assert_int_equal(u.state.would_trim, 1);
        assert_int_equal(u.state.would_trim_bytes, MIB(500));
        assert_true(u.decision.would_trim);
        /* It comes and goes with each request: no more than one in a cool-down. */
        u.state.would_trim = 0;
        for (int i = 0; i < 720; i++) {
                u.soft = i % 2 ? MIB(500) : 0;
                sim_tick(&u);
        }
        assert_in_range(u.state.would_trim, 10, 12);
        assert_int_equal(u.n_trims, 0);
}

static void test_repeated_sample(void **state) {
        struct sim_unit u;

        setup(&u);
        u.config.mode = MG_MODE_OBSERVE;
        for (int i = 0; i < 500; i++) {
                struct mg_policy_state once;
                struct mg_decision first;

                u.soft = MIB(i * 37 % 700);
                sim_tick(&u);
                once = u.state;
                first = u.decision;
                step(&u);
                assert_memory_equal(&first, &u.decision, sizeof(first));
                assert_memory_equal(&once, &u.state, sizeof(once));
        }
}

static void test_names(void **state) {
        for (int i = 0; i < _MG_REASON_MAX; i++) {
                assert_non_null(reason_to_string(i));
                assert_true(strlen(reason_describe(i)) > 4);
                assert_null(strstr(reason_describe(i), "leak"));
                for (int j = 0; j < i; j++)
                        assert_string_not_equal(reason_to_string(i), reason_to_string(j));
        }
        assert_string_equal(reason_to_string(MG_REASON_BELOW_THRESHOLD), "below-threshold");
        assert_string_equal(action_to_string(MG_ACTION_TRIM), "trim");
        assert_string_equal(verdict_to_string(MG_VERDICT_LEAK_SUSPECTED), "leak-suspected");
        assert_string_equal(source_to_string(MG_SOURCE_PROC), "proc");
        assert_string_equal(activity_to_string(MG_ACTIVITY_RELOADING), "reloading");
        assert_string_equal(condition_state_to_string(MG_CONDITION_FAILS), "fails");
        assert_string_equal(quantity_to_string(MG_QUANTITY_USEC), "usec");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_due),
                cmocka_unit_test(test_verdict_of_the_unseen),
                cmocka_unit_test(test_each_condition_alone),
                cmocka_unit_test(test_order_of_reasons),
                cmocka_unit_test(test_by_hand),
                cmocka_unit_test(test_by_hand_of_nothing),
                cmocka_unit_test(test_trim_above_larger_counts),
                cmocka_unit_test(test_expected_is_what_fits),
                cmocka_unit_test(test_suspended_sibling),
                cmocka_unit_test(test_pressure),
                cmocka_unit_test(test_when),
                cmocka_unit_test(test_when_idle),
                cmocka_unit_test(test_would_trim_counted_once),
                cmocka_unit_test(test_repeated_sample),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
