/* SPDX-License-Identifier: MIT */
/*
 * What must hold for any service: 10,000 random lives of a unit, the same on every machine. Programs allocate, free and
 * scatter; agents come and go; units stop and reload; numbers go missing; clocks jump; configurations are odd.
 */
#include "core/state.h"

#include "simulated_unit.h"

#define TRACES 10000
#define TICKS  60

struct life {
        struct sim_unit unit;
        struct check_random random;
        uint64_t digest; /* of every decision */
        bool jumps;      /* the clock may */
        bool broken;     /* its numbers are garbage */
};

static bool chance(struct life *life, uint64_t one_in) {
        return check_below(&life->random, one_in) == 0;
}

static uint64_t pick(struct life *life, const uint64_t *values, size_t n) {
        return values[check_below(&life->random, n)];
}

#define PICK(life, ...)                               \
        pick(life, (const uint64_t[]){ __VA_ARGS__ }, \
             sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void begin(struct life *life, uint64_t seed) {
        struct mg_unit_config *config = &life->unit.config;
        struct mg_process_sample *process = &life->unit.process;

        *life = (struct life){ .random = check_seed(seed) };
        sim_init(&life->unit);
        config->mode =
                        PICK(life, MG_MODE_TRIM, MG_MODE_TRIM, MG_MODE_TRIM, MG_MODE_OBSERVE,
                             MG_MODE_OFF);
        config->trim_above_bytes = PICK(life, 0, MIB(16), MIB(256));
        config->trim_above_permyriad = (uint32_t) PICK(life, 0, 2000, 10000);
        config->min_gain_bytes = PICK(life, 0, MIB(8), MIB(32), MIB(200));
        config->max_pause_usec = PICK(life, 1000, 50000, SEC(5));
        config->cooldown_usec = PICK(life, 0, SEC(10), MIN(5), HOUR(5));
        config->cooldown_max_usec = PICK(life, 0, MIN(20), HOUR(4));
        config->when =
                        (uint32_t) PICK(life, MG_WHEN_ANY, MG_WHEN_ANY, MG_WHEN_IDLE,
                                        MG_WHEN_CHECKPOINT | MG_WHEN_PRESSURE);
        process->arenas = PICK(life, 0, 1, 8, MG_UNKNOWN);
        process->sliced = chance(life, 3);
        life->unit.stats_interval_usec = PICK(life, 0, 0, SEC(60), MIN(10));
        life->unit.pause_usec = PICK(life, 100, 5000, 49000, 70000);
        life->unit.sample.watchdog_usec = PICK(life, MG_UNKNOWN, MG_UNKNOWN, 0, SEC(1), SEC(30));
        life->unit.sample.cpu_usage_usec = PICK(life, MG_UNKNOWN, 0);
}

/* What the program does. */
static void allocate_and_free(struct life *life) {
        struct sim_unit *u = &life->unit;
        uint64_t amount = MIB(check_below(&life->random, 400));

        switch (check_below(&life->random, 7)) {
        case 0:
                u->soft -= MG_MIN(u->soft, amount);
                u->live += amount;
                break;
        case 1:
                amount = MG_MIN(amount, u->live);
                u->live -= amount;
                u->soft += amount;
                break;
        case 2:
                amount = MG_MIN(amount, u->live);
                u->live -= amount;
                u->hard += amount;
                break;
        case 3:
                u->hard = 0;
                break;
        case 4:
                u->other = amount;
                break;
        case 5:
                u->soft += amount;
                u->sample.memory.anon_thp_bytes = MIB(check_below(&life->random, 500));
                break;
        default:
                break;
        }
        u->process.free_chunks = PICK(life, 0, 1000, 200000, MG_UNKNOWN);
        u->process.estimate_bytes = PICK(life, MG_UNKNOWN, MG_UNKNOWN, MIB(100), 0);
        if (u->sample.cpu_usage_usec != MG_UNKNOWN)
                u->sample.cpu_usage_usec += PICK(life, 0, 1000, SEC(2));
}

/* What happens around it. */
static void disturb(struct life *life) {
        struct sim_unit *u = &life->unit;

        u->sample.activity = chance(life, 6) ? (enum mg_activity) check_below(
                                                               &life->random, _MG_ACTIVITY_MAX)
                                             : MG_ACTIVITY_ACTIVE;
        u->sample.paused = chance(life, 15);
        u->sample.under_pressure = chance(life, 8);
        u->process.has_agent = !chance(life, 15);
        u->process.can_trim = !chance(life, 15);
        u->process.suspended = chance(life, 15);
        u->process.busy = chance(life, 15);
        u->mute = chance(life, 10);
        u->sample.n_processes = !chance(life, 25);
        if (chance(life, 20))
                u->process.stats_at_usec = MG_UNKNOWN;
        if (chance(life, 12))
                u->sample.checkpoint_at_usec = u->now_usec;
        if (chance(life, 40))
                policy_resume(&u->state);
        u->interval_usec =
                        PICK(life, MG_USEC_PER_SEC / 10, SEC(1), SEC(5), SEC(5), MIN(1), MIN(7),
                             HOUR(1));
        if (life->jumps && chance(life, 10))
                u->now_usec = PICK(
                                life, u->now_usec + HOUR(1000), u->now_usec / 2, 0, UINT64_MAX / 2);
}

static void break_numbers(struct life *life) {
        struct sim_unit *u = &life->unit;
        uint64_t *numbers[] = { &u->process.rss_anon_bytes,
                                &u->process.live_bytes,
                                &u->process.base_bytes,
                                &u->process.system_bytes,
                                &u->process.estimate_bytes,
                                &u->sample.memory.anon_bytes,
                                &u->sample.memory.swap_bytes,
                                &u->sample.memory.shmem_bytes,
                                &u->sample.memory.active_anon_bytes,
                                &u->sample.memory.inactive_anon_bytes,
                                &u->sample.memory.unevictable_bytes };

        for (size_t i = 0; i < MG_ELEMENTS(numbers); i++)
                if (chance(life, 3))
                        *numbers[i] = PICK(life, 0, MG_UNKNOWN, UINT64_MAX - 1, MIB(700), 1);
}

static void digest(struct life *life, uint64_t value) {
        life->digest = (life->digest ^ value) * UINT64_C(1099511628211) + 1;
}

static void digest_decision(struct life *life) {
        const struct mg_decision *d = &life->unit.decision;

        digest(life, d->action);
        digest(life, d->reason);
        digest(life, d->would_trim);
        digest(life, d->pressure_alert);
        digest(life, d->expected_bytes);
        digest(life, d->predicted_pause_usec);
        digest(life, d->hold_until_usec);
        digest(life, d->account.freeable_bytes);
        digest(life, life->unit.state.verdict.verdict);
        digest(life, life->unit.state.would_trim);
        for (uint32_t i = 0; i < d->n_conditions; i++) {
                digest(life, d->conditions[i].state);
                digest(life, d->conditions[i].have);
                digest(life, d->conditions[i].want);
        }
}

/* A trim is only ever decided on when all of this holds. */
static void assert_may_trim(const struct sim_unit *u) {
        assert_int_equal(u->config.mode, MG_MODE_TRIM);
        assert_int_equal(u->sample.activity, MG_ACTIVITY_ACTIVE);
        assert_int_equal(u->sample.n_processes, 1);
        assert_false(u->sample.paused);
        assert_false(u->process.busy);
        assert_false(u->process.suspended);
        assert_true(u->process.has_agent);
        assert_true(u->process.can_trim);
        assert_false(u->state.breaker_open);
        assert_true(u->decision.expected_bytes >= u->config.min_gain_bytes);
        assert_true(u->decision.predicted_pause_usec <= u->config.max_pause_usec);
}

static void step(struct life *life) {
        struct sim_unit *u = &life->unit;

        policy_step(&u->state, &u->config, &u->sample, u->now_usec, &u->decision);
}

static void prepare(struct life *life) {
        struct sim_unit *u = &life->unit;

        allocate_and_free(life);
        disturb(life);
        u->now_usec += u->interval_usec;
        sim_measure(u);
        if (life->broken)
                break_numbers(life);
}

static void finish(struct life *life) {
        const struct mg_account *account = &life->unit.decision.account;

        digest_decision(life);
        assert_int_equal(
                        account->anon_bytes + account->swap_bytes,
                        account->live_bytes + account->freeable_bytes + account->pinned_bytes +
                                        account->other_bytes);
        assert_true(life->unit.decision.n_conditions <= MG_CONDITIONS_MAX);
        if (life->unit.decision.action != MG_ACTION_TRIM)
                return;
        assert_may_trim(&life->unit);
        sim_round(&life->unit);
}

static void tick(struct life *life) {
        prepare(life);
        step(life);
        finish(life);
}

static uint64_t live(struct life *life, uint64_t seed) {
        begin(life, seed);
        for (int i = 0; i < TICKS; i++)
                tick(life);
        return life->digest;
}

static void test_no_two_trims_within_the_cooldown(void **state) {
        size_t trims = 0;
        struct life life;

        for (uint64_t seed = 0; seed < TRACES; seed++) {
                live(&life, seed);
                for (size_t i = 1; i < life.unit.n_trims; i++)
                        assert_true(life.unit.trims[i].at_usec - life.unit.trims[i - 1].at_usec >=
                                    life.unit.config.cooldown_usec);
                trims += life.unit.n_trims;
        }
        /* The property says little about lives without trims. */
        assert_in_range(trims, TRACES / 4, TRACES * 10);
}

/* Side by side with a unit whose numbers are garbage, before it and after it, each unit decides as it does alone. */
static void test_units_do_not_disturb_each_other(void **state) {
        struct life alone, first, second, broken;

        for (uint64_t seed = 0; seed < TRACES; seed += 2) {
                live(&alone, seed);
                begin(&first, seed);
                begin(&second, seed);
                begin(&broken, seed + 1);
                broken.broken = true;
                for (int i = 0; i < TICKS; i++) {
                        tick(&first);
                        tick(&broken);
                        tick(&second);
                }
                assert_int_equal(first.digest, alone.digest);
                assert_int_equal(second.digest, alone.digest);
        }
}

static void test_a_repeated_sample_changes_nothing(void **state) {
        struct life once, twice;

        for (uint64_t seed = 0; seed < TRACES; seed++) {
                live(&once, seed);
                begin(&twice, seed);
                for (int i = 0; i < TICKS; i++) {
                        prepare(&twice);
                        step(&twice);
                        step(&twice);
                        finish(&twice);
                }
                assert_int_equal(once.digest, twice.digest);
        }
}

static void test_a_restart_changes_nothing(void **state) {
        static char text[MG_STATE_TEXT_MAX];
        struct life whole, restarted;
        size_t length;

        for (uint64_t seed = 0; seed < TRACES; seed++) {
                struct sim_unit *u = &restarted.unit;
                int at = (int) (seed % TICKS);

                live(&whole, seed);
                begin(&restarted, seed);
                for (int i = 0; i < TICKS; i++) {
                        tick(&restarted);
                        if (i != at)
                                continue;
                        assert_int_equal(
                                        state_encode(&u->state, u->now_usec, text, sizeof(text),
                                                     &length),
                                        0);
                        memset(&u->state, 0x5a, sizeof(u->state));
                        assert_int_equal(state_decode(text, length, u->now_usec, &u->state), 0);
                }
                assert_int_equal(whole.digest, restarted.digest);
        }
}

/* The clock goes anywhere. Afterwards a healthy unit is trimmed again before long. */
static void test_clock_jumps(void **state) {
        struct life life;

        for (uint64_t seed = 0; seed < TRACES; seed++) {
                struct sim_unit *u = &life.unit;
                uint64_t patience;

                begin(&life, seed);
                life.jumps = true;
                for (int i = 0; i < TICKS; i++)
                        tick(&life);

                /* All obstacles but those of time are taken away. */
                u->config.mode = MG_MODE_TRIM;
                u->config.when = MG_WHEN_ANY;
                u->config.max_pause_usec = HOUR(1);
                u->sample.activity = MG_ACTIVITY_ACTIVE;
                u->sample.n_processes = 1;
                u->sample.watchdog_usec = MG_UNKNOWN;
                u->sample.paused = u->sample.under_pressure = u->mute = false;
                u->process.has_agent = u->process.can_trim = true;
                u->process.busy = u->process.suspended = false;
                u->process.estimate_bytes = MG_UNKNOWN;
                u->stats_interval_usec = 0;
                u->process.stats_at_usec = MG_UNKNOWN;
                u->state.breaker_open = false;
                u->live = MIB(10);
                u->hard = 0;
                u->n_trims = 0;
                u->interval_usec = MIN(5);
                patience = u->now_usec + u->config.cooldown_usec +
                           MG_MAX(u->config.cooldown_max_usec, u->config.cooldown_usec) + HOUR(1);
                while (u->n_trims == 0 && u->now_usec < patience) {
                        u->soft = MIB(3000);
                        sim_tick(u);
                }
                if (u->n_trims == 0)
                        fail_msg("seed %ju: %s", (uintmax_t) seed,
                                 reason_to_string(u->decision.reason));
        }
}

static void test_garbage_is_survived(void **state) {
        struct life life;

        for (uint64_t seed = 0; seed < TRACES; seed++) {
                begin(&life, seed);
                life.broken = life.jumps = true;
                for (int i = 0; i < TICKS; i++) {
                        prepare(&life);
                        step(&life);
                        digest_decision(&life);
                        if (life.unit.decision.action == MG_ACTION_TRIM)
                                sim_round(&life.unit);
                }
        }
}

/* By hand: never past MaxPause=, never into a unit that is stopping, whatever else holds. */
static void test_by_hand(void **state) {
        struct life life;

        for (uint64_t seed = 0; seed < TRACES; seed++) {
                struct mg_decision decision;
                struct sim_unit *u = &life.unit;

                begin(&life, seed);
                for (int i = 0; i < TICKS / 4; i++)
                        tick(&life);
                prepare(&life);
                policy_by_hand(&u->state, &u->config, &u->sample, u->now_usec, &decision);
                if (decision.action != MG_ACTION_TRIM)
                        continue;
                assert_int_equal(decision.reason, MG_REASON_BY_HAND);
                assert_int_equal(u->sample.activity, MG_ACTIVITY_ACTIVE);
                assert_false(u->sample.paused || u->process.busy || u->process.suspended);
                assert_true(decision.predicted_pause_usec <= u->config.max_pause_usec);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_no_two_trims_within_the_cooldown),
                cmocka_unit_test(test_units_do_not_disturb_each_other),
                cmocka_unit_test(test_a_repeated_sample_changes_nothing),
                cmocka_unit_test(test_a_restart_changes_nothing),
                cmocka_unit_test(test_clock_jumps),
                cmocka_unit_test(test_garbage_is_survived),
                cmocka_unit_test(test_by_hand),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
