/* SPDX-License-Identifier: MIT */
/*
 * The cases that the policy exists for, as traces in simulated time: stale counters, pinned heaps, leaks, stalls, refault
 * churn, memory that is no heap, pressure, huge pages; and the four published services.
 */
#include "core/learn.h"

#include "simulated_unit.h"

#define SEEN(verdict) (UINT64_C(1) << (verdict))

/* C2: C1, trimmed, then ten idle minutes in which glibc's free bytes still say 512 MiB. */
static void test_stale_counter(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.live = MIB(2);
        u.soft = MIB(512);
        u.process.estimate_bytes = MIB(512);
        u.process.system_bytes = MIB(514);
        for (int i = 0; i < 120; i++) {
                struct mg_account *account = &u.decision.account;

                sim_tick(&u);
                assert_true(account->freeable_bytes + account->pinned_bytes <=
                            account->anon_bytes - account->live_bytes);
        }
        assert_int_equal(u.n_trims, 1);
        assert_int_equal(u.trims[0].at_usec, HOUR(1) + SEC(5));
        assert_int_equal(u.trims[0].gain_bytes, MIB(512));
        assert_int_equal(u.decision.account.retained_bytes, 0);
}

/* C3: each seventh block kept. */
static void test_pinned(void **state) {
        static const uint64_t apart[] = { 10, 20, 40, 80, 160, 240, 240 };
        uint64_t seen = 0;
        struct sim_unit u;

        sim_init(&u);
        u.live = MIB(73);
        u.hard = MIB(439);
        u.process.free_chunks = 150000;
        for (int i = 0; i < 17 * 720; i++) {
                sim_tick(&u);
                seen |= SEEN(u.state.verdict.verdict);
        }
        assert_in_range(u.n_trims, 7, 8);
        for (size_t i = 1; i < u.n_trims; i++) {
                uint64_t wait = u.trims[i].at_usec - u.trims[i - 1].at_usec;

                assert_int_equal(u.trims[i].gain_bytes, 0);
                assert_int_equal(u.trims[i].reason, MG_REASON_PROBE);
                assert_true(wait >= 4 * u.interval_usec);
                assert_int_equal(wait, MIN(apart[i - 1]));
        }
        assert_int_equal(u.state.verdict.verdict, MG_VERDICT_PINNED);
        assert_false(seen & SEEN(MG_VERDICT_LEAK_SUSPECTED));
        assert_false(seen & SEEN(MG_VERDICT_LIVE_GROWTH));
}

/* C4: 1 MiB/s that is never freed, and 64 MiB for five seconds in each twenty. */
static void test_leak(void **state) {
        int64_t slope;
        struct sim_unit u;

        sim_init(&u);
        u.config.trim_above_bytes = MIB(32);
        u.config.min_gain_bytes = MIB(16);
        for (uint64_t i = 0; i < 90 * 12; i++) {
                bool burst = i % 4 == 0;

                u.live = MIB(20) + i * MIB(5) + (burst ? MIB(64) : 0);
                if (burst)
                        u.soft = 0;
                else if (i % 4 == 1)
                        u.soft = MIB(64);
                sim_tick(&u);
        }
        assert_int_equal(u.state.verdict.verdict, MG_VERDICT_LEAK_SUSPECTED);
        slope = u.state.verdict.slope.bytes_per_hour / 60;
        assert_in_range(slope, 54 * MG_MIB, 66 * MG_MIB);
        assert_in_range(u.n_trims, 1, 2);
}

/* C5: 375,000 free chunks of 15 KB behind one lock. */
static void test_stall_is_predicted(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.config.max_pause_usec = 50000;
        u.process.arenas = 1;
        u.process.free_chunks = 375000;
        u.live = MIB(400);
        u.soft = MIB(5600);
        sim_run(&u, HOUR(6));
        assert_int_equal(u.n_trims, 0);
        assert_int_equal(u.decision.reason, MG_REASON_MAX_PAUSE);
        assert_true(u.decision.predicted_pause_usec > SEC(1));
        assert_int_equal(
                        u.decision.conditions[u.decision.n_conditions - 4].have,
                        u.decision.predicted_pause_usec);
}

/* C5, where the prediction was too kind: one overrun, then none until somebody resumes it. */
static void test_stall_is_measured(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.soft = MIB(500);
        u.pause_usec = 900000;
        sim_run(&u, HOUR(6));
        assert_int_equal(u.n_trims, 1);
        assert_true(u.state.breaker_open);
}

/* C6: 16 MiB taken and freed each second. */
static void test_refault_churn(void **state) {
        struct sim_unit u;
        uint64_t last_wait = 0;

        sim_init(&u);
        u.interval_usec = SEC(1);
        u.config.trim_above_bytes = MIB(8);
        u.config.min_gain_bytes = MIB(8);
        u.config.cooldown_usec = SEC(10);
        for (int i = 0; i < 300; i++) {
                u.soft = MIB(16);
                sim_tick(&u);
        }
        assert_in_range(u.n_trims, 2, 5);
        for (size_t i = 1; i < u.n_trims; i++) {
                uint64_t wait = u.trims[i].at_usec - u.trims[i - 1].at_usec;

                assert_true(wait >= 2 * last_wait);
                last_wait = wait;
        }
        assert_int_equal(u.state.backoff_reason, MG_REASON_REGROWTH);
        assert_false(u.state.pinned);
}

/* C10: a large page cache, small files, tmpfs; a heap of 20 MiB. */
static void test_not_the_heap(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.live = MIB(18);
        u.soft = MIB(2);
        for (uint64_t i = 0; i < 720; i++) {
                u.sample.memory.file_bytes = MIB(i * 3);
                u.sample.memory.shmem_bytes = MG_MIN(MIB(i), MIB(300));
                u.sample.memory.slab_reclaimable_bytes = MIB(i % 200);
                u.sample.memory.current_bytes = MIB(20 + i * 5);
                sim_tick(&u);
                assert_int_equal(u.decision.account.anon_bytes, MIB(20));
        }
        assert_int_equal(u.n_trims, 0);
        assert_int_equal(u.decision.reason, MG_REASON_BELOW_THRESHOLD);
        assert_int_equal(u.state.verdict.verdict, MG_VERDICT_HELD);
}

/* C14: 260 MiB under MemoryHigh=200M, 100 of them retained; then the same with everything live. */
static void test_urgent(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.live = MIB(160);
        u.soft = MIB(100);
        sim_run(&u, MIN(1));
        assert_int_equal(u.n_trims, 0);
        u.sample.under_pressure = true;
        assert_true(sim_tick(&u));
        assert_int_equal(u.trims[0].reason, MG_REASON_PRESSURE);
        assert_int_equal(u.sample.memory.anon_bytes, MIB(160));
        /* The pressure lasts, though there is nothing left to give: an alert, no second trim. */
        sim_run(&u, HOUR(1));
        assert_int_equal(u.n_trims, 1);
        assert_true(u.decision.pressure_alert);

        sim_init(&u);
        u.live = MIB(260);
        u.sample.under_pressure = true;
        sim_run(&u, HOUR(1));
        assert_int_equal(u.n_trims, 0);
        assert_true(u.decision.pressure_alert);
        u.sample.under_pressure = false;
        sim_tick(&u);
        assert_false(u.decision.pressure_alert);
}

/* C15: khugepaged fills 496 MiB of holes again within two minutes of each trim. */
static void test_huge_pages(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.live = MIB(16);
        u.soft = MIB(496);
        u.config.cooldown_usec = SEC(30);
        u.sample.memory.anon_thp_bytes = MIB(504);
        for (int i = 0; i < 720; i++) {
                if (u.soft < MIB(496)) {
                        u.soft += MIB(31);
                        u.sample.memory.anon_thp_bytes += MIB(31);
                }
                sim_tick(&u);
        }
        assert_int_equal(u.state.verdict.verdict, MG_VERDICT_REFILLED);
        assert_int_equal(u.state.backoff_reason, MG_REASON_REFILLED);
        assert_in_range(u.n_trims, 2, 7);
}

/* S1: caches full and evicting; fragmentation creeps up by 500 MiB an hour, of which a fifth is out of reach. */
static void test_s1_lru_at_capacity(void **state) {
        uint64_t average = 0;
        struct sim_unit u;

        sim_init(&u);
        u.live = MIB(1024);
        for (int i = 0; i < 24 * 720; i++) {
                u.soft += MIB(400) / 720;
                u.hard = MG_MIN(u.hard + MIB(100) / 720, MIB(200));
                sim_tick(&u);
                average += (u.live + u.soft + u.hard) / MG_MIB;
        }
        average /= 24 * 720;
        assert_true(average <= 1024 + 200 + 150);
        assert_true(u.n_trims >= 20);
        assert_true(u.n_trims <= 24 * 8);
        assert_int_equal(u.state.breaker_open, false);
}

/* S2: the floor rises by 2.5 GiB an hour; observed first, then trimmed. */
static void test_s2_threads_per_request(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.config.mode = MG_MODE_OBSERVE;
        u.live = MIB(300);
        for (int i = 0; i < 720; i++) {
                u.soft += MIB(2560) / 720;
                sim_tick(&u);
        }
        assert_int_equal(u.n_trims, 0);
        assert_int_equal(u.state.verdict.verdict, MG_VERDICT_RETENTION);
        assert_true(u.state.would_trim >= 1);
        assert_in_range(u.state.verdict.slope.bytes_per_hour, MIB(2500), MIB(2600));

        u.config.mode = MG_MODE_TRIM;
        for (int i = 0; i < 4 * 720; i++) {
                u.soft += MIB(2560) / 720;
                sim_tick(&u);
                if (i > 0)
                        assert_true(u.live + u.soft <= MIB(300 + 256 + 220));
        }
        assert_int_equal(u.state.verdict.verdict, MG_VERDICT_FLAT);
        assert_true(u.n_trims >= 20);
}

/* S3: a sweep each half hour frees 600 MiB in ten seconds, without a word; observed by the fall of live alone. */
static void test_s3_sweeps(void **state) {
        unsigned late = 0;
        struct sim_unit u;

        sim_init(&u);
        u.config.trim_above_bytes = MIB(1024);
        for (int i = 0; i < 24 * 720; i++) {
                int phase = i % 360;
                uint64_t built = MIB(30) + MIB(600) * (uint64_t) MG_MIN(phase, 340) / 340;

                if (phase == 345) {
                        u.live -= MIB(300);
                        u.soft += MIB(300);
                } else if (phase == 346) {
                        u.live -= MIB(270);
                        u.soft += MIB(270);
                } else if (phase < 345) {
                        u.soft -= MG_MIN(u.soft, built > u.live ? built - u.live : 0);
                        u.live = built;
                }
                sim_tick(&u);
                late += i > 360 && phase == 60 &&
                        u.soft > 0; /* six minutes after the end of the last */
        }
        assert_int_equal(late, 0);
        assert_int_equal(u.n_trims, 2 * 48 - 1);
        for (size_t i = 0; i < u.n_trims; i++)
                assert_int_equal(u.trims[i].reason, MG_REASON_MASS_FREE);
}

/* S4: a burst of 28 GB that ends; blocks are large, so free chunks are few. */
static void test_s4_burst_of_large_blocks(void **state) {
        struct sim_unit u;

        sim_init(&u);
        u.config.max_pause_usec = SEC(1);
        u.live = MIB(500);
        sim_run(&u, MIN(20));
        u.live = MIB(27000);
        sim_run(&u, MIN(30));
        u.live = MIB(500);
        u.soft = MIB(26500);
        sim_tick(&u);
        assert_int_equal(u.n_trims, 1);
        assert_int_equal(u.trims[0].reason, MG_REASON_MASS_FREE);
        sim_run(&u, MIN(30));
        assert_int_equal(u.n_trims, 1);
        assert_int_equal(u.live + u.soft, MIB(500));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stale_counter),
                cmocka_unit_test(test_pinned),
                cmocka_unit_test(test_leak),
                cmocka_unit_test(test_stall_is_predicted),
                cmocka_unit_test(test_stall_is_measured),
                cmocka_unit_test(test_refault_churn),
                cmocka_unit_test(test_not_the_heap),
                cmocka_unit_test(test_urgent),
                cmocka_unit_test(test_huge_pages),
                cmocka_unit_test(test_s1_lru_at_capacity),
                cmocka_unit_test(test_s2_threads_per_request),
                cmocka_unit_test(test_s3_sweeps),
                cmocka_unit_test(test_s4_burst_of_large_blocks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
