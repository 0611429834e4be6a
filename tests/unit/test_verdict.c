/* SPDX-License-Identifier: MIT */
/* One word for why memory grows, over simulated hours; and that it does not flap. */
#include "core/verdict.h"

#include "simulated_unit.h"

struct fixture {
        struct mg_verdict_state verdict;
        struct mg_verdict_hints hints;
        struct check_random random;
        uint64_t now;
        unsigned changes;
        uint64_t seen; /* a bit for each verdict that was in force */
};

static void setup(struct fixture *f) {
        memset(f, 0, sizeof(*f));
        verdict_init(&f->verdict);
        f->hints.has_agent = true;
        f->hints.has_statistics = true;
        f->now = HOUR(1);
        f->random = check_seed(3);
}

static struct mg_account account_of(uint64_t live, uint64_t retained, uint64_t other) {
        return (struct mg_account){
                .anon_bytes = live + retained + other,
                .live_bytes = live,
                .retained_bytes = retained,
                .freeable_bytes = retained,
                .other_bytes = other,
                .known = true,
                .anon_known = true,
        };
}

/* Twelve samples a minute, each with up to NOISE on top. */
static void minute(
                struct fixture *f,
                uint64_t live,
                uint64_t retained,
                uint64_t other,
                uint64_t noise) {
        for (int i = 0; i < 12; i++) {
                struct mg_account account =
                                account_of(live + (noise ? check_below(&f->random, noise) : 0),
                                           retained, other);

                f->now += SEC(5);
                f->changes += verdict_update(&f->verdict, &account, &f->hints, f->now);
                f->seen |= UINT64_C(1) << f->verdict.verdict;
        }
}

static void assert_verdict(const struct fixture *f, enum mg_verdict verdict) {
        if (f->verdict.verdict != verdict)
                fail_msg("%s, not %s", verdict_to_string(f->verdict.verdict),
                         verdict_to_string(verdict));
}

static void assert_never(const struct fixture *f, enum mg_verdict verdict) {
        assert_false(f->seen & (UINT64_C(1) << verdict));
}

static void test_learning_then_flat(void **state) {
        struct fixture f;

        setup(&f);
        for (int i = 0; i < 15; i++) {
                minute(&f, MIB(100), MIB(50), MIB(10), MIB(20));
                assert_verdict(&f, MG_VERDICT_LEARNING);
        }
        for (int i = 0; i < 300; i++)
                minute(&f, MIB(100), MIB(50), MIB(10), MIB(20));
        assert_verdict(&f, MG_VERDICT_FLAT);
        assert_int_equal(f.changes, 1);
}

/* The published cases' rates: 2.5 GiB/h of arenas, 0.76 GB/h of sweeps. */
static void test_retention(void **state) {
        static const uint64_t per_minute[] = { MIB(2560) / 60, MIB(725) / 60, MIB(30) / 60 };

        for (size_t i = 0; i < MG_ELEMENTS(per_minute); i++) {
                struct fixture f;

                setup(&f);
                for (uint64_t m = 0; m < 90; m++)
                        minute(&f, MIB(300), MIB(100) + m * per_minute[i], MIB(10), MIB(5));
                assert_verdict(&f, MG_VERDICT_RETENTION);
                assert_int_equal(f.changes, 1);
                assert_never(&f, MG_VERDICT_LEAK_SUSPECTED);
        }
}

/* Under 16 MiB/h is noise. */
static void test_slow_growth_is_flat(void **state) {
        struct fixture f;

        setup(&f);
        for (uint64_t m = 0; m < 300; m++)
                minute(&f, MIB(100), MIB(100) + m * MIB(12) / 60, MIB(10), 0);
        assert_verdict(&f, MG_VERDICT_FLAT);
        assert_int_equal(f.changes, 1);

        /* 2 % an hour of 50 GiB would be 1 GiB; 256 MiB/h is growth at any size. */
        setup(&f);
        for (uint64_t m = 0; m < 60; m++)
                minute(&f, MIB(20000), MIB(30000) + m * MIB(300) / 60, MIB(10), 0);
        assert_verdict(&f, MG_VERDICT_RETENTION);
}

static void test_leak(void **state) {
        struct fixture f;
        uint64_t suspected_at = 0;

        setup(&f);
        for (uint64_t m = 0; m < 180; m++) {
                minute(&f, MIB(100) + m * MIB(60), MIB(10), MIB(5), MIB(64));
                if (!suspected_at && f.verdict.verdict == MG_VERDICT_LEAK_SUSPECTED)
                        suspected_at = m;
        }
        assert_verdict(&f, MG_VERDICT_LEAK_SUSPECTED);
        assert_in_range(suspected_at, 60, 80);
        assert_int_equal(f.changes, 2);
        /* 60 MiB a minute, within a tenth. */
        assert_in_range(f.verdict.slope.bytes_per_hour, 54 * 60 * MG_MIB, 66 * 60 * MG_MIB);
}

/* A slow leak under noise as large as an hour's growth. */
static void test_noisy_leak(void **state) {
        struct fixture f;

        setup(&f);
        for (uint64_t m = 0; m < 240; m++)
                minute(&f, MIB(300) + m * MIB(60) / 60, MIB(10), MIB(5), MIB(60));
        assert_verdict(&f, MG_VERDICT_LEAK_SUSPECTED);
        assert_in_range(f.changes, 2, 3);
}

/* A cache that fills for 50 minutes and is then full is no leak, and ends as held or flat. */
static void test_cache_filling(void **state) {
        struct fixture f;

        setup(&f);
        for (uint64_t m = 0; m < 300; m++)
                minute(&f, MIB(100) + MG_MIN(m, UINT64_C(50)) * MIB(40), MIB(10), MIB(5), MIB(3));
        assert_never(&f, MG_VERDICT_LEAK_SUSPECTED);
        assert_true(f.seen & (UINT64_C(1) << MG_VERDICT_LIVE_GROWTH));
        assert_verdict(&f, MG_VERDICT_HELD);
        assert_in_range(f.changes, 2, 3);
}

static void test_held(void **state) {
        struct fixture f;

        setup(&f);
        for (int i = 0; i < 60; i++)
                minute(&f, MIB(950), MIB(20), MIB(30), 0);
        assert_verdict(&f, MG_VERDICT_HELD);
        assert_int_equal(f.changes, 1);
}

static void test_not_malloc(void **state) {
        struct fixture f;

        setup(&f);
        for (uint64_t m = 0; m < 90; m++)
                minute(&f, MIB(100), MIB(20), MIB(50) + m * MIB(10), MIB(5));
        assert_verdict(&f, MG_VERDICT_NOT_MALLOC);
        assert_int_equal(f.changes, 1);
}

/* Live creeps, the rest races: the larger part names it. */
static void test_the_larger_part_names_it(void **state) {
        struct fixture f;

        setup(&f);
        for (uint64_t m = 0; m < 120; m++)
                minute(&f, MIB(100) + m * MIB(1), MIB(20) + m * MIB(30), MIB(50), 0);
        assert_verdict(&f, MG_VERDICT_RETENTION);
        assert_never(&f, MG_VERDICT_LEAK_SUSPECTED);
}

static void test_hints_need_no_floors(void **state) {
        static const struct {
                struct mg_verdict_hints hints;
                enum mg_verdict verdict;
        } table[] = {
                { { .has_agent = false }, MG_VERDICT_NO_AGENT },
                { { .has_agent = true }, MG_VERDICT_NO_STATISTICS },
                { { .has_agent = true, .has_statistics = true, .pinned = true },
                  MG_VERDICT_PINNED },
                { { .has_agent = true, .has_statistics = true, .refilled = true },
                  MG_VERDICT_REFILLED },
                { { .has_agent = true, .has_statistics = true, .pinned = true, .refilled = true },
                  MG_VERDICT_REFILLED },
                { { .has_agent = false, .pinned = true, .refilled = true }, MG_VERDICT_NO_AGENT },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct mg_account account = account_of(MIB(100), MIB(500), 0);
                struct fixture f;

                setup(&f);
                f.hints = table[i].hints;
                assert_false(verdict_update(&f.verdict, &account, &f.hints, SEC(5)));
                /* The same sample again is no second answer. */
                assert_false(verdict_update(&f.verdict, &account, &f.hints, SEC(5)));
                assert_verdict(&f, MG_VERDICT_LEARNING);
                assert_true(verdict_update(&f.verdict, &account, &f.hints, SEC(10)));
                assert_verdict(&f, table[i].verdict);
                assert_false(verdict_update(&f.verdict, &account, &f.hints, SEC(15)));
        }
}

/* The word goes as quickly as it came, once an agent answers. */
static void test_an_agent_comes(void **state) {
        struct mg_account account = account_of(MIB(100), MIB(500), 0);
        struct fixture f;

        setup(&f);
        f.hints.has_agent = false;
        verdict_update(&f.verdict, &account, &f.hints, SEC(5));
        verdict_update(&f.verdict, &account, &f.hints, SEC(10));
        assert_verdict(&f, MG_VERDICT_NO_AGENT);
        f.hints.has_agent = f.hints.has_statistics = true;
        assert_false(verdict_update(&f.verdict, &account, &f.hints, SEC(15)));
        assert_true(verdict_update(&f.verdict, &account, &f.hints, SEC(20)));
        assert_verdict(&f, MG_VERDICT_LEARNING);
}

static void test_no_agent_has_a_slope(void **state) {
        struct fixture f;

        setup(&f);
        f.hints.has_agent = false;
        for (uint64_t m = 0; m < 30; m++) {
                struct mg_account account = account_of(0, 0, MIB(100) + m * MIB(4));

                account.known = false;
                f.now += MIN(1);
                verdict_update(&f.verdict, &account, &f.hints, f.now);
        }
        assert_verdict(&f, MG_VERDICT_NO_AGENT);
        assert_true(f.verdict.slope_known);
        assert_int_equal(f.verdict.slope.bytes_per_hour, 240 * MG_MIB);
}

/* Nobody could read anything for a while. */
static void test_unknown_anon_is_no_sample(void **state) {
        struct mg_account nothing = {};
        struct fixture f;

        setup(&f);
        for (int i = 0; i < 60; i++)
                minute(&f, MIB(100), MIB(50), MIB(10), 0);
        for (int i = 0; i < 600; i++) {
                f.now += SEC(5);
                assert_false(verdict_update(&f.verdict, &nothing, &f.hints, f.now));
        }
        for (int i = 0; i < 60; i++)
                minute(&f, MIB(100), MIB(50), MIB(10), 0);
        assert_verdict(&f, MG_VERDICT_FLAT);
        assert_int_equal(f.changes, 1);
}

static void test_hourly_bursts_do_not_flap(void **state) {
        struct fixture f;

        setup(&f);
        for (int m = 0; m < 24 * 60; m++)
                minute(&f, m % 60 < 7 ? MIB(900) : MIB(100), MIB(150), MIB(10), MIB(30));
        assert_verdict(&f, MG_VERDICT_FLAT);
        assert_int_equal(f.changes, 1);
}

static void test_sawtooth_does_not_flap(void **state) {
        static const unsigned periods[] = { 120, 90, 60, 30, 13 };

        for (size_t i = 0; i < MG_ELEMENTS(periods); i++) {
                struct fixture f;

                setup(&f);
                /* The first rise may be told from a leak by nobody: growth, its suspicion, and back. */
                for (unsigned m = 0; m < 3 * 60; m++)
                        minute(&f, MIB(100) + m % periods[i] * MIB(8), MIB(50), MIB(10), MIB(8));
                assert_in_range(f.changes, 1, 4);
                f.changes = 0;
                f.seen = 0;
                for (unsigned m = 3 * 60; m < 24 * 60; m++)
                        minute(&f, MIB(100) + m % periods[i] * MIB(8), MIB(50), MIB(10), MIB(8));
                if (f.changes > 1)
                        fail_msg("period %u: %u changes, %jx", periods[i], f.changes,
                                 (uintmax_t) f.seen);
                assert_never(&f, MG_VERDICT_LEAK_SUSPECTED);
                assert_never(&f, MG_VERDICT_RETENTION);
        }
}

/* Trims take anon down every half hour; the leak below goes on and is called one. */
static void test_leak_through_trims(void **state) {
        struct fixture f;

        setup(&f);
        f.hints.trimmed = true;
        for (uint64_t m = 0; m < 200; m++)
                minute(&f, MIB(100) + m * MIB(5), m % 30 * MIB(20), MIB(5), MIB(2));
        assert_verdict(&f, MG_VERDICT_LEAK_SUSPECTED);
}

static void test_clock_jumps(void **state) {
        struct fixture f;

        setup(&f);
        for (int m = 0; m < 600; m++) {
                minute(&f, MIB(100), MIB(50), MIB(10), MIB(10));
                if (m % 97 == 50)
                        f.now += HOUR(30);
                if (m % 97 == 80)
                        f.now -= HOUR(29);
        }
        for (int m = 0; m < 30; m++)
                minute(&f, MIB(100), MIB(50), MIB(10), MIB(10));
        assert_verdict(&f, MG_VERDICT_FLAT);
        assert_int_equal(
                        f.seen & ~(UINT64_C(1) << MG_VERDICT_FLAT |
                                   UINT64_C(1) << MG_VERDICT_LEARNING),
                        0);
}

/* A thousand of them have to fit in 8 MiB beside everything else. */
static void test_size(void **state) {
        assert_true(sizeof(struct mg_verdict_state) <= 2048);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_learning_then_flat),
                cmocka_unit_test(test_retention),
                cmocka_unit_test(test_slow_growth_is_flat),
                cmocka_unit_test(test_leak),
                cmocka_unit_test(test_noisy_leak),
                cmocka_unit_test(test_cache_filling),
                cmocka_unit_test(test_held),
                cmocka_unit_test(test_not_malloc),
                cmocka_unit_test(test_the_larger_part_names_it),
                cmocka_unit_test(test_hints_need_no_floors),
                cmocka_unit_test(test_an_agent_comes),
                cmocka_unit_test(test_no_agent_has_a_slope),
                cmocka_unit_test(test_unknown_anon_is_no_sample),
                cmocka_unit_test(test_hourly_bursts_do_not_flap),
                cmocka_unit_test(test_sawtooth_does_not_flap),
                cmocka_unit_test(test_leak_through_trims),
                cmocka_unit_test(test_clock_jumps),
                cmocka_unit_test(test_size),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
