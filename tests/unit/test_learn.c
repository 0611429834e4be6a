/* SPDX-License-Identifier: MIT */
/* What rounds and the samples after them teach: back-offs, stuck memory, mass frees, pauses, the breaker. */
#include "core/learn.h"

#include "simulated_unit.h"

static struct mg_outcome outcome_of(uint64_t before, uint64_t after, uint64_t expected) {
        return (struct mg_outcome){
                .before_bytes = before,
                .after_bytes = after,
                .expected_bytes = expected,
                .pause_usec = 1000,
                .predicted_pause_usec = 1000,
                .asked_bytes = expected,
                .n_asked = 1,
                .n_answered = 1,
        };
}

static void test_gain(void **state) {
        static const struct {
                uint64_t before, after, growth, want;
        } table[] = {
                { MIB(500), MIB(100), 0, MIB(400) },
                { MIB(500), MIB(520), 0, 0 },
                { MIB(500), MIB(520), MIB(100), MIB(80) },
                { MG_UNKNOWN, MIB(100), 0, 0 },
                { MIB(500), MG_UNKNOWN, 0, 0 },
                { UINT64_MAX - 1, 0, UINT64_MAX - 1, UINT64_MAX - 1 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct mg_outcome outcome = outcome_of(table[i].before, table[i].after, 0);

                outcome.live_growth_bytes = table[i].growth;
                assert_int_equal(outcome_gain(&outcome), table[i].want);
        }
}

static void test_pinned_or_not(void **state) {
        static const struct {
                uint64_t expected, gain;
                bool pinned;
        } table[] = {
                { MIB(500), MIB(400), false },
                { MIB(500), MIB(51), false },
                { MIB(500), MIB(49), true },
                { MIB(500), MIB(31), true },
                { MIB(500), 0, true },
                { MIB(40), MIB(31), true },
                { MIB(40), MIB(32), false },
                { MIB(10), 0, false }, /* by hand: proves nothing */
                { 0, 0, false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct mg_outcome outcome =
                                outcome_of(MIB(600), MIB(600) - table[i].gain, table[i].expected);
                struct sim_unit u;

                sim_init(&u);
                policy_learn(&u.state, &u.config, &outcome, u.now_usec);
                assert_int_equal(u.state.pinned, table[i].pinned);
                assert_int_equal(u.state.backoff_usec, table[i].pinned ? MIN(10) : 0);
                assert_int_equal(u.state.cooldown_until_usec, u.now_usec + MIN(5));
                assert_int_equal(u.state.last_gain_bytes, table[i].gain);
                assert_int_equal(u.state.trims, 1);
        }
}

static void test_backoff_doubles_to_its_limit(void **state) {
        static const uint64_t minutes[] = { 10, 20, 40, 80, 160, 240, 240, 240 };
        struct mg_outcome nothing = outcome_of(MIB(600), MIB(600), MIB(500));
        struct mg_outcome good = outcome_of(MIB(600), MIB(100), MIB(500));
        struct sim_unit u;

        sim_init(&u);
        for (size_t i = 0; i < MG_ELEMENTS(minutes); i++) {
                policy_learn(&u.state, &u.config, &nothing, HOUR(i));
                assert_int_equal(u.state.backoff_usec, MIN(minutes[i]));
                assert_int_equal(u.state.backoff_until_usec, HOUR(i) + MIN(minutes[i]));
                assert_int_equal(u.state.backoff_reason, MG_REASON_PINNED);
        }
        policy_learn(&u.state, &u.config, &good, HOUR(100));
        assert_int_equal(u.state.backoff_usec, 0);
        assert_false(u.state.pinned);
}

/* CooldownSec=0 and a maximum below the cool-down are allowed. */
static void test_odd_configurations(void **state) {
        struct mg_outcome nothing = outcome_of(MIB(600), MIB(600), MIB(500));
        struct sim_unit u;

        sim_init(&u);
        u.config.cooldown_usec = 0;
        for (int i = 0; i < 70; i++)
                policy_learn(&u.state, &u.config, &nothing, HOUR(i));
        assert_int_equal(u.state.backoff_usec, HOUR(4));

        sim_init(&u);
        u.config.cooldown_max_usec = 0;
        policy_learn(&u.state, &u.config, &nothing, HOUR(1));
        assert_int_equal(u.state.backoff_usec, MIN(5));

        sim_init(&u);
        u.config.cooldown_usec = u.config.cooldown_max_usec = UINT64_MAX - 1;
        policy_learn(&u.state, &u.config, &nothing, HOUR(1));
        policy_learn(&u.state, &u.config, &nothing, HOUR(1));
        assert_true(u.state.backoff_until_usec >= HOUR(1));
        assert_int_equal(policy_stuck(&u.state, &u.config, UINT64_MAX), u.state.stuck_bytes);
}

static void test_unreachable(void **state) {
        struct mg_outcome silent = outcome_of(MIB(600), MIB(600), MIB(500));
        struct mg_outcome good = outcome_of(MIB(600), MIB(100), MIB(500));
        struct sim_unit u;

        sim_init(&u);
        silent.n_answered = 0;
        policy_learn(&u.state, &u.config, &silent, HOUR(1));
        assert_int_equal(u.state.backoff_reason, MG_REASON_UNREACHABLE);
        assert_int_equal(u.state.backoff_usec, MIN(10));
        assert_int_equal(u.state.trims, 0);
        assert_false(u.state.pinned);
        /* All refused is the same; one that did it is not. */
        silent.n_asked = silent.n_answered = silent.n_refused = 3;
        policy_learn(&u.state, &u.config, &silent, HOUR(2));
        assert_int_equal(u.state.backoff_usec, MIN(20));
        good.n_asked = good.n_answered = 3;
        good.n_refused = 2;
        policy_learn(&u.state, &u.config, &good, HOUR(3));
        assert_int_equal(u.state.backoff_usec, 0);
        assert_int_equal(u.state.trims, 1);
}

static void test_stuck_halves(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.soft = MIB(500);
        u.hard = MIB(260);
        assert_true(sim_tick(&u));
        sim_tick(&u);
        assert_int_equal(u.state.stuck_bytes, MIB(260));
        assert_int_equal(u.decision.account.freeable_bytes, 0);
        assert_int_equal(u.decision.account.pinned_bytes, MIB(260));
        assert_int_equal(u.decision.reason, MG_REASON_BELOW_MIN_GAIN);
        sim_run(&u, HOUR(4) - SEC(10));
        assert_int_equal(u.n_trims, 1);
        sim_run(&u, SEC(20));
        /* Half of it is believed freeable again: one probe, which finds out, and is not repeated at once. */
        assert_int_equal(u.n_trims, 2);
        assert_int_equal(u.trims[1].reason, MG_REASON_PROBE);
        assert_true(u.state.pinned);
        sim_run(&u, MIN(9));
        assert_int_equal(u.n_trims, 2);
        assert_int_equal(u.state.stuck_bytes, MIB(260));
        assert_int_equal(u.decision.reason, MG_REASON_PINNED);
}

/* Twice as much again on top of what is pinned ends the wait. */
static void test_new_evidence_ends_a_pinned_backoff(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.hard = MIB(400);
        assert_true(sim_tick(&u));
        sim_run(&u, MIN(6));
        assert_int_equal(u.decision.reason, MG_REASON_PINNED);
        assert_int_equal(u.decision.hold_until_usec, u.trims[0].at_usec + MIN(10));
        u.soft = MIB(40); /* an eighth of what is pinned would be 50 */
        sim_tick(&u);
        assert_int_equal(u.n_trims, 1);
        u.soft = MIB(60);
        sim_tick(&u);
        assert_int_equal(u.n_trims, 2);
        assert_int_equal(u.trims[1].reason, MG_REASON_THRESHOLD);
        assert_int_equal(u.trims[1].expected_bytes, MIB(60));
        assert_int_equal(u.state.backoff_usec, 0);
}

/* A sibling that is never asked is no news to the others' back-off. */
static void test_a_sibling_not_asked_is_no_new_evidence(void **state) {
        for (int regrows = 0; regrows < 2; regrows++) {
                uint64_t alone = 0;

                for (int siblings = 0; siblings < 2; siblings++) {
                        struct sim_unit u;

                        sim_init(&u);
                        u.hard = regrows ? 0 : MIB(400);
                        if (siblings)
                                sim_add_sibling(&u, MIB(20), MIB(9000))->can_trim = false;
                        for (int minute = 0; minute < 12 * 60; minute++) {
                                u.soft = regrows ? MIB(400) : 0;
                                sim_run(&u, MIN(1));
                        }
                        if (!siblings)
                                alone = u.n_trims;
                        assert_in_range(u.n_trims, 2, alone);
                }
        }
}

/* By hand of the little that fits: the pinned rest has not been looked at. */
static void test_by_hand_of_little_proves_nothing(void **state) {
        struct mg_policy_state before;
        struct sim_unit u;

        sim_init(&u);
        u.hard = MIB(300);
        assert_true(sim_tick(&u));
        sim_run(&u, MIN(1));
        before = u.state;
        u.hard = MIB(1);
        sim_measure(&u);
        policy_by_hand(&u.state, &u.config, &u.sample, u.now_usec, &u.decision);
        assert_int_equal(u.decision.action, MG_ACTION_TRIM);
        sim_round(&u);
        u.hard = MIB(300);
        sim_tick(&u);
        assert_true(u.state.pinned);
        assert_int_equal(u.state.stuck_bytes, before.stuck_bytes);
        assert_int_equal(u.state.backoff_usec, before.backoff_usec);
}

/* Memory in use again before anybody could see what the attempt left, and freed so slowly that it is no mass free. */
static void test_what_comes_and_goes_is_no_new_evidence(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.hard = MIB(400);
        assert_true(sim_tick(&u));
        u.hard = 0;
        u.live += MIB(400);
        sim_run(&u, MIN(1));
        assert_int_equal(u.state.stuck_bytes, 0);
        for (int i = 0; i < 40; i++) {
                u.live -= MIB(10);
                u.hard += MIB(10);
                sim_tick(&u);
        }
        assert_int_equal(u.n_trims, 1);
        assert_int_equal(u.decision.reason, MG_REASON_PINNED);
        sim_run(&u, MIN(6)); /* the wait's end */
        assert_int_equal(u.n_trims, 2);
}

/* An hour in which every gain is taken again within a minute. */
static void take_again_for_an_hour(struct sim_unit *u) {
        sim_init(u);
        for (int minute = 0; minute < 60; minute++) {
                u->soft = MIB(300);
                sim_run(u, MIN(1));
        }
}

static void test_regrowth(void **state) {
        struct sim_unit u;

        take_again_for_an_hour(&u);
        /* At 0, 10, 30 minutes; the next would be at 70. */
        assert_int_equal(u.n_trims, 3);
        assert_int_equal(u.state.backoff_reason, MG_REASON_REGROWTH);
        assert_int_equal(u.state.backoff_usec, MIN(40));
        assert_int_equal(u.decision.reason, MG_REASON_REGROWTH);
        assert_false(u.state.pinned);

        /* It stops: after the next round has kept its gain for a cool-down all is forgiven. */
        sim_run(&u, MIN(15));
        assert_int_equal(u.n_trims, 4);
        assert_int_equal(u.state.backoff_usec, MIN(40));
        sim_run(&u, MIN(1));
        assert_int_equal(u.state.backoff_usec, 0);
        u.soft = MIB(300);
        assert_true(sim_tick(&u));
}

/* After a night's load the unit sleeps, with what the last burst has left: it does not wait for the end of the back-off. */
static void test_regrowth_then_sleep(void **state) {
        struct sim_unit u;

        take_again_for_an_hour(&u);
        assert_int_equal(u.n_trims, 3);
        assert_int_equal(u.state.backoff_usec, MIN(40));
        assert_true(policy_wants_cpu(&u.state, &u.config));
        u.sample.cpu_usage_usec = SEC(1);
        for (int minute = 0; minute < 4; minute++)
                sim_run(&u, MIN(1));
        assert_int_equal(u.n_trims, 3); /* a pause of less than CooldownSec= is none */
        u.sample.cpu_usage_usec += MIN(1);
        sim_run(&u, MIN(1));
        for (int minute = 0; minute < 4; minute++)
                sim_run(&u, MIN(1));
        assert_int_equal(u.n_trims, 3);
        sim_run(&u, MIN(2));
        assert_int_equal(u.n_trims, 4);
}

/*
 * 5 GiB an hour: each gain is taken again within the cool-down, but not by the same memory. Backing off as for churn would
 * let it run away.
 */
static void test_racing_retention_is_no_churn(void **state) {
        struct sim_unit u;
        uint64_t peak = 0;

        sim_init(&u);
        for (int i = 0; i < 12 * 720; i++) {
                u.soft += MIB(5120) / 720;
                sim_tick(&u);
                peak = MG_MAX(peak, u.soft);
        }
        assert_true(peak <= MIB(900));
        assert_true(u.n_trims > 50);
}

static void test_regrowth_of_less_than_four_fifths(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.soft = MIB(500);
        assert_true(sim_tick(&u));
        u.live += MIB(399);
        sim_run(&u, MIN(6));
        assert_int_equal(u.state.backoff_usec, 0);
}

static void test_refilled(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.soft = MIB(500);
        u.sample.memory.anon_thp_bytes = MIB(2);
        assert_true(sim_tick(&u));
        /* khugepaged is slow: 2 MiB every 5 s, long after the cool-down. */
        for (int i = 0; i < 250; i++) {
                u.soft += MIB(2);
                u.sample.memory.anon_thp_bytes += MIB(2);
                sim_tick(&u);
        }
        assert_true(u.state.refilled);
        assert_int_equal(u.state.backoff_reason, MG_REASON_REFILLED);
        assert_int_equal(u.verdict_changes, 1);
        assert_int_equal(u.state.verdict.verdict, MG_VERDICT_REFILLED);

        /* Then nothing comes back at all, and there is no huge page left to blame. */
        u.hard = MIB(500);
        u.soft = u.sample.memory.anon_thp_bytes = 0;
        sim_run(&u, HOUR(24));
        assert_false(u.state.refilled);
        assert_int_equal(u.state.verdict.verdict, MG_VERDICT_PINNED);

        /* Without huge pages the same rise is nobody's fault. */
        sim_init(&u);
        u.soft = MIB(500);
        assert_true(sim_tick(&u));
        for (int i = 0; i < 120; i++) {
                u.soft += MIB(2);
                sim_tick(&u);
        }
        assert_false(u.state.refilled);
}

static void test_refill_is_forgotten(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.soft = MIB(500);
        u.sample.memory.anon_thp_bytes = MIB(502);
        sim_tick(&u);
        u.soft = u.sample.memory.anon_thp_bytes = MIB(400);
        sim_run(&u, MIN(1));
        assert_true(u.state.refilled);
        /* THP is switched off: the probe at the end of the back-off holds, and ten minutes on all is well. */
        u.sample.memory.anon_thp_bytes = 0;
        sim_run(&u, MIN(15));
        assert_int_equal(u.n_trims, 2);
        sim_run(&u, HOUR(5));
        assert_false(u.state.refilled);
        assert_int_equal(u.state.backoff_usec, 0);
}

static void test_mass_free(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.live = MIB(300);
        sim_run(&u, MIN(2));
        u.live = MIB(200);
        u.soft = MIB(100); /* under TrimAbove= */
        assert_true(sim_tick(&u));
        assert_int_equal(u.trims[0].reason, MG_REASON_MASS_FREE);
        assert_int_equal(u.trims[0].gain_bytes, MIB(100));

        /* The next one within the cool-down waits for its end, and has to be twice the gain. */
        u.live = MIB(500);
        sim_tick(&u);
        u.live = MIB(301);
        u.soft = MIB(199);
        sim_run(&u, MIN(6));
        assert_int_equal(u.n_trims, 1);
        u.live = MIB(502);
        sim_tick(&u);
        u.live = MIB(301);
        u.soft = MIB(201);
        assert_true(sim_tick(&u));
        assert_int_equal(u.n_trims, 2);
}

static void test_mass_free_waits_for_the_cooldown(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.soft = MIB(300);
        assert_true(sim_tick(&u));
        u.live = MIB(1020);
        sim_run(&u, MIN(1));
        u.live = MIB(20);
        u.soft = MIB(100);
        sim_tick(&u);
        assert_int_equal(u.decision.reason, MG_REASON_COOLDOWN);
        sim_run(&u, MIN(4) - SEC(20));
        assert_int_equal(u.n_trims, 1);
        sim_run(&u, SEC(20));
        assert_int_equal(u.n_trims, 2);
        assert_int_equal(u.trims[1].reason, MG_REASON_MASS_FREE);
        assert_int_equal(u.trims[1].at_usec - u.trims[0].at_usec, MIN(5));
}

/* Statistics from before a trim say of what it gave back that it is live: that they fall afterwards is no news. */
static void test_mass_free_before_a_trim_is_served(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.live = MIB(300);
        sim_run(&u, MIN(1));
        u.state.last_trim_usec = u.now_usec;
        u.state.last_gain_bytes = MIB(250);
        u.state.last.expected_bytes = MIB(100);
        u.live = MIB(140);
        u.soft = MIB(100);
        sim_run(&u, MIN(1));
        assert_int_equal(u.state.mass_free_at_usec, MG_UNKNOWN);
        assert_int_equal(u.n_trims, 0);

        /* More than that has been freed since. */
        sim_init(&u);
        u.live = MIB(400);
        sim_run(&u, MIN(1));
        u.state.last_trim_usec = u.now_usec;
        u.state.last_gain_bytes = MIB(250);
        u.state.last.expected_bytes = MIB(100);
        u.live = MIB(100);
        u.soft = MIB(150);
        assert_true(sim_tick(&u));
        assert_int_equal(u.trims[0].reason, MG_REASON_MASS_FREE);
}

/* What was freed and is in use again by then is not asked for. */
static void test_mass_free_expires(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.live = MIB(300);
        sim_run(&u, MIN(1));
        u.live = MIB(100);
        u.soft = MIB(20);
        sim_run(&u, MIN(8));
        assert_int_equal(u.state.mass_free_at_usec, MG_UNKNOWN);
        u.soft = MIB(200);
        sim_run(&u, MIN(1));
        assert_int_equal(u.n_trims, 0);
}

static void test_pinned_mass_frees_need_more_each_time(void **state) {
        struct sim_unit u;
        unsigned swings = 0;

        sim_init(&u);
        u.config.trim_above_bytes = MIB(10000);
        for (; swings < 60; swings++) {
                u.live = MIB(300);
                u.hard = 0;
                sim_run(&u, MIN(10));
                u.live = MIB(100);
                u.hard = MIB(200); /* freed, and scattered: no trim gets it */
                sim_run(&u, MIN(10));
        }
        assert_int_equal(u.n_trims, 1);
        assert_int_equal(u.state.mass_free_bar_bytes, MIB(400));
}

/* A worker that ends takes its memory along: nothing was freed inside anybody. */
static void test_end_of_a_process_is_no_mass_free(void **state) {
        struct mg_process_sample p[2];
        struct sim_unit u;

        sim_init(&u);
        u.soft = MIB(100);
        sim_measure(&u);
        p[0] = p[1] = u.process;
        p[1].live_bytes = MIB(400);
        p[1].rss_anon_bytes = p[1].stats_rss_bytes = MIB(400);
        u.sample.processes = p;
        u.sample.n_processes = 2;
        u.sample.memory.anon_bytes = MIB(520);
        policy_step(&u.state, &u.config, &u.sample, SEC(1), &u.decision);
        /* Another one in its place, between two readings. */
        p[1].pid = 300;
        p[1].live_bytes = MIB(5);
        p[1].rss_anon_bytes = p[1].stats_rss_bytes = MIB(5);
        u.sample.memory.anon_bytes = MIB(125);
        policy_step(&u.state, &u.config, &u.sample, SEC(6), &u.decision);
        assert_int_equal(u.state.mass_free_at_usec, MG_UNKNOWN);
        u.sample.n_processes = 1;
        u.sample.memory.anon_bytes = MIB(120);
        policy_step(&u.state, &u.config, &u.sample, SEC(11), &u.decision);
        assert_int_equal(u.state.mass_free_at_usec, MG_UNKNOWN);
        assert_int_equal(u.decision.reason, MG_REASON_BELOW_THRESHOLD);
}

static void test_checkpoint(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.hard = MIB(300);
        assert_true(sim_tick(&u)); /* pinned: backing off */
        sim_run(&u, MIN(6));
        u.soft = MIB(33);
        sim_tick(&u);
        assert_int_equal(u.n_trims, 1);
        u.sample.checkpoint_at_usec = u.now_usec;
        assert_true(sim_tick(&u));
        assert_int_equal(u.trims[1].reason, MG_REASON_MASS_FREE);
        /* It is served once. */
        u.soft = MIB(33);
        sim_run(&u, MIN(6));
        assert_int_equal(u.n_trims, 2);

        /* One that the daemon only hears of after a restart is history. */
        sim_init(&u);
        u.soft = MIB(100);
        u.sample.checkpoint_at_usec = u.now_usec - MIN(3);
        sim_run(&u, MIN(3));
        assert_int_equal(u.n_trims, 0);
}

/* FACTS: four sweeps trimmed each, or only at the end. Checkpoints in the middle of a back-off must not be missed. */
static void test_each_sweep_is_trimmed(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.config.cooldown_usec = MIN(1);
        for (int sweep = 0; sweep < 4; sweep++) {
                u.live = MIB(600);
                u.soft = 0;
                sim_run(&u, MIN(2));
                u.live = MIB(30);
                u.soft = MIB(570);
                u.sample.checkpoint_at_usec = u.now_usec;
                sim_tick(&u);
                assert_int_equal(u.n_trims, sweep + 1);
                assert_int_equal(u.trims[sweep].reason, MG_REASON_MASS_FREE);
        }
}

static void test_breaker(void **state) {
        struct sim_unit u;
        struct mg_outcome overrun;

        sim_init(&u);
        u.soft = MIB(500);
        u.pause_usec = 51000;
        assert_true(sim_tick(&u));
        assert_true(u.state.breaker_open);
        u.soft = MIB(5000);
        sim_run(&u, HOUR(12));
        assert_int_equal(u.n_trims, 1);
        assert_int_equal(u.decision.reason, MG_REASON_BREAKER);
        /* It is opened once. */
        overrun = outcome_of(MIB(500), MIB(20), MIB(400));
        overrun.pause_usec = SEC(1);
        assert_false(policy_learn(&u.state, &u.config, &overrun, u.now_usec));

        policy_resume(&u.state);
        assert_false(u.state.breaker_open);
        assert_int_equal(u.state.pause_usec_per_gib, MG_UNKNOWN);
        u.soft = MIB(500);
        u.pause_usec = 50000;
        sim_run(&u, MIN(11)); /* that overrun's gain was taken again: ten minutes of back-off */
        assert_int_equal(u.n_trims, 2);
        assert_false(u.state.breaker_open);
}

static void test_resume_without_a_breaker_keeps_what_was_learned(void **state) {
        struct mg_outcome nothing = outcome_of(MIB(600), MIB(600), MIB(500));
        struct sim_unit u;

        sim_init(&u);
        nothing.pause_usec = 3000;
        policy_learn(&u.state, &u.config, &nothing, HOUR(1));
        policy_resume(&u.state);
        assert_int_equal(u.state.backoff_usec, 0);
        assert_int_not_equal(u.state.pause_usec_per_gib, MG_UNKNOWN);
        assert_int_equal(u.state.last_pause_usec, 3000);
}

/* A heap that costs ten times the generic rate, then one that costs a tenth: predictions come to fit. */
static void test_rates_converge(void **state) {
        static const struct {
                uint64_t chunks, usec_per_gib, usec_per_million;
        } worlds[] = {
                { 0, 600000, 0 },
                { 0, 20000, 0 },
                { 100000, 64000, 28000000 },
                { 100000, 64000, 400000 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(worlds); i++) {
                struct sim_unit u;
                uint64_t real = 500 + worlds[i].usec_per_gib +
                                worlds[i].usec_per_million * worlds[i].chunks / 1000000;
                uint64_t predicted;

                sim_init(&u);
                u.process.arenas = 1;
                u.process.free_chunks = worlds[i].chunks;
                u.soft = MIB(1024);
                sim_measure(&u);
                for (int round = 0; round < 12; round++) {
                        struct mg_outcome outcome = outcome_of(MIB(1100), MIB(76), MIB(1024));

                        outcome.free_chunks = worlds[i].chunks;
                        outcome.pause_usec = real;
                        outcome.predicted_pause_usec = policy_predict_pause(&u.state, &u.process);
                        policy_learn(&u.state, &u.config, &outcome, HOUR(round));
                        u.state.breaker_open = false;
                }
                predicted = policy_predict_pause(&u.state, &u.process);
                if (predicted < real * 8 / 10 || predicted > real * 13 / 10)
                        fail_msg("world %zu: %ju for %ju", i, (uintmax_t) predicted,
                                 (uintmax_t) real);
        }
}

/* One call that was slow by chance, within MaxPause=: the next need is larger, and held by what it taught, but not for ever. */
static void test_slow_rates_are_forgotten(void **state) {
        struct sim_unit u;
        uint64_t held_usec;

        sim_init(&u);
        u.process.arenas = 1;
        u.soft = MIB(300);
        u.pause_usec = 46000;
        sim_run(&u, SEC(10));
        assert_int_equal(u.n_trims, 1);
        assert_false(u.state.breaker_open);
        u.soft = MIB(340);
        u.pause_usec = 20000;
        held_usec = u.now_usec;
        sim_run(&u, HOUR(1));
        assert_int_equal(u.decision.reason, MG_REASON_MAX_PAUSE);
        while (u.n_trims == 1 && u.now_usec < held_usec + HOUR(24))
                sim_tick(&u);
        assert_int_equal(u.n_trims, 2);
        assert_true(u.now_usec >= held_usec + u.config.cooldown_max_usec - MIN(1));
}

static void test_rates_are_bounded(void **state) {
        static const uint64_t pauses[] = { 0, 1, UINT64_MAX - 1 };

        for (size_t i = 0; i < MG_ELEMENTS(pauses); i++) {
                struct mg_outcome outcome = outcome_of(MIB(1100), MIB(76), MIB(1024));
                struct sim_unit u;

                sim_init(&u);
                outcome.pause_usec = pauses[i];
                for (int round = 0; round < 100; round++)
                        policy_learn(&u.state, &u.config, &outcome, HOUR(round));
                assert_in_range(u.state.pause_usec_per_gib, 4000, 64 * 64000);
        }
}

static void test_statistics_cost(void **state) {
        struct sim_unit u;

        sim_init(&u);
        assert_int_equal(policy_predict_statistics(&u.state, MIB(100)), MG_UNKNOWN);
        policy_learn_statistics(&u.state, 18000, MIB(100));
        assert_int_equal(policy_predict_statistics(&u.state, MIB(100)), 18000);
        assert_int_equal(policy_predict_statistics(&u.state, MIB(1000)), 180000);
        assert_int_equal(policy_predict_statistics(&u.state, MIB(10)), 18000);
        /* A small child's cheap call does not make the parent look cheap. */
        policy_learn_statistics(&u.state, 50, MIB(5));
        assert_true(policy_predict_statistics(&u.state, MIB(100)) >= 15000);
        policy_learn_statistics(&u.state, MG_UNKNOWN, MIB(5));
        policy_learn_statistics(&u.state, 10, MG_UNKNOWN);
        assert_int_equal(policy_predict_statistics(&u.state, MG_UNKNOWN), MG_UNKNOWN);
}

static void test_clock_back_frees_nobody_and_holds_nobody(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.now_usec = HOUR(1000);
        u.hard = MIB(400);
        assert_true(sim_tick(&u));
        sim_tick(&u);
        u.now_usec = HOUR(2);
        sim_tick(&u);
        assert_int_equal(u.n_trims, 1);
        assert_true(u.state.cooldown_until_usec <= u.now_usec + MIN(5));
        assert_true(u.state.backoff_until_usec <= u.now_usec + MIN(10));
        sim_run(&u, MIN(11));
        assert_int_equal(u.n_trims, 2);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_gain),
                cmocka_unit_test(test_pinned_or_not),
                cmocka_unit_test(test_backoff_doubles_to_its_limit),
                cmocka_unit_test(test_odd_configurations),
                cmocka_unit_test(test_unreachable),
                cmocka_unit_test(test_stuck_halves),
                cmocka_unit_test(test_new_evidence_ends_a_pinned_backoff),
                cmocka_unit_test(test_a_sibling_not_asked_is_no_new_evidence),
                cmocka_unit_test(test_by_hand_of_little_proves_nothing),
                cmocka_unit_test(test_what_comes_and_goes_is_no_new_evidence),
                cmocka_unit_test(test_regrowth),
                cmocka_unit_test(test_regrowth_then_sleep),
                cmocka_unit_test(test_racing_retention_is_no_churn),
                cmocka_unit_test(test_regrowth_of_less_than_four_fifths),
                cmocka_unit_test(test_refilled),
                cmocka_unit_test(test_refill_is_forgotten),
                cmocka_unit_test(test_mass_free),
                cmocka_unit_test(test_mass_free_waits_for_the_cooldown),
                cmocka_unit_test(test_mass_free_before_a_trim_is_served),
                cmocka_unit_test(test_mass_free_expires),
                cmocka_unit_test(test_pinned_mass_frees_need_more_each_time),
                cmocka_unit_test(test_end_of_a_process_is_no_mass_free),
                cmocka_unit_test(test_checkpoint),
                cmocka_unit_test(test_each_sweep_is_trimmed),
                cmocka_unit_test(test_breaker),
                cmocka_unit_test(test_resume_without_a_breaker_keeps_what_was_learned),
                cmocka_unit_test(test_rates_converge),
                cmocka_unit_test(test_slow_rates_are_forgotten),
                cmocka_unit_test(test_rates_are_bounded),
                cmocka_unit_test(test_statistics_cost),
                cmocka_unit_test(test_clock_back_frees_nobody_and_holds_nobody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
