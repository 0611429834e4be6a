/* SPDX-License-Identifier: MIT */
/* Who is asked in a round: biggest first, nobody who may not be, and a huge one never blocks its siblings. */
#include "core/round.h"

#include "check.h"

#define MIB(n) ((uint64_t) (n) *MG_MIB)

static struct mg_process_sample process(pid_t pid, uint64_t retained) {
        return (struct mg_process_sample){
                .pid = pid,
                .start_time = (uint64_t) pid * 100,
                .rss_anon_bytes = retained + MIB(5),
                .live_bytes = MIB(5),
                .system_bytes = MG_UNKNOWN,
                .estimate_bytes = MG_UNKNOWN,
                .free_chunks = 10,
                .arenas = 1,
                .stats_at_usec = 1,
                .has_agent = true,
                .can_trim = true,
        };
}

struct fixture {
        struct mg_policy_state state;
        struct mg_unit_config config;
        struct mg_process_sample p[16];
        struct mg_unit_sample sample;
};

static void setup(struct fixture *f, size_t n) {
        policy_init(&f->state);
        unit_config_defaults(&f->config);
        for (size_t i = 0; i < n; i++)
                f->p[i] = process((pid_t) (10 + i), MIB(50 + i));
        f->sample = (struct mg_unit_sample){ .processes = f->p, .n_processes = n };
}

static void test_biggest_first(void **state) {
        struct mg_round_step steps[8];
        struct fixture f;
        size_t skipped;

        setup(&f, 5);
        f.p[2] = process(12, MIB(300));
        assert_int_equal(round_plan(&f.state, &f.config, &f.sample, steps, 8, &skipped), 5);
        assert_int_equal(skipped, 0);
        assert_int_equal(steps[0].pid, 12);
        assert_int_equal(steps[0].start_time, 1200);
        assert_int_equal(steps[0].retained_bytes, MIB(300));
        for (size_t i = 1; i < 5; i++)
                assert_true(steps[i - 1].retained_bytes >= steps[i].retained_bytes);

        /* Less room than processes: the biggest stay, and nothing is written beyond. */
        memset(steps, 0xee, sizeof(steps));
        assert_int_equal(round_plan(&f.state, &f.config, &f.sample, steps, 2, &skipped), 2);
        assert_int_equal(steps[0].pid, 12);
        assert_int_equal(steps[1].pid, 14);
        assert_int_equal(steps[2].pid, (pid_t) 0xeeeeeeee);
        assert_int_equal(round_plan(&f.state, &f.config, &f.sample, steps, 0, &skipped), 0);
}

static void test_equal_ones_by_pid(void **state) {
        struct mg_round_step steps[8];
        struct fixture f;
        size_t skipped;

        setup(&f, 3);
        f.p[0] = process(30, MIB(50));
        f.p[1] = process(10, MIB(50));
        f.p[2] = process(20, MIB(50));
        assert_int_equal(round_plan(&f.state, &f.config, &f.sample, steps, 8, &skipped), 3);
        assert_int_equal(steps[0].pid, 10);
        assert_int_equal(steps[1].pid, 20);
        assert_int_equal(steps[2].pid, 30);
}

static void test_who_is_left_out(void **state) {
        struct mg_round_step steps[16];
        struct mg_round_survey survey;
        struct fixture f;
        size_t skipped;

        setup(&f, 8);
        f.p[0].has_agent = false;
        f.p[1].can_trim = false;
        f.p[2].suspended = true;
        f.p[3].stats_at_usec = MG_UNKNOWN;
        f.p[4].busy = true;
        f.p[5].estimate_bytes = 0;
        f.p[6].rss_anon_bytes = MG_UNKNOWN;
        assert_int_equal(round_plan(&f.state, &f.config, &f.sample, steps, 16, &skipped), 1);
        assert_int_equal(steps[0].pid, 17);
        assert_int_equal(skipped, 0);

        round_survey(&f.state, &f.config, &f.sample, &survey);
        assert_int_equal(survey.n_agents, 7);
        assert_int_equal(survey.n_statistics, 5);
        assert_int_equal(survey.n_can_trim, 4);
        assert_int_equal(survey.n_willing, 3);
        assert_int_equal(survey.n_busy, 1);
        assert_int_equal(survey.n_fits, 2);
        assert_int_equal(survey.fits_bytes, MIB(54 + 57));
}

static void test_huge_one_does_not_block(void **state) {
        struct mg_round_step steps[8];
        struct mg_round_survey survey;
        struct fixture f;
        size_t skipped;

        setup(&f, 3);
        f.p[1] = process(11, MIB(8192));
        assert_int_equal(round_plan(&f.state, &f.config, &f.sample, steps, 8, &skipped), 2);
        assert_int_equal(skipped, 1);
        round_survey(&f.state, &f.config, &f.sample, &survey);
        assert_int_equal(survey.n_skipped, 1);
        assert_int_equal(survey.fits_bytes, MIB(50 + 52));
        assert_true(survey.longest_fitting_usec <= f.config.max_pause_usec);

        /* The same heap in slices fits. */
        f.p[1].sliced = true;
        f.p[1].arenas = MG_UNKNOWN;
        assert_int_equal(round_plan(&f.state, &f.config, &f.sample, steps, 8, &skipped), 3);
        assert_int_equal(skipped, 0);
}

/* The generic rates against what was measured (the comments in predict.c). */
static void test_predictions(void **state) {
        static const struct {
                const char *what;
                uint64_t retained, chunks, arenas;
                bool sliced;
                uint64_t least_msec, most_msec;
        } table[] = {
                { "C1: 512 MiB in 8 arenas", MIB(512), 16, 8, false, 1, 20 },
                { "C3: free chunks under a page", MIB(440), 150000, 8, false, 1, 20 },
                { "C5: 375,000 chunks of 15 KB in one arena", MIB(5600), 375000, 1, false, 1000,
                  4000 },
                { "100,000 chunks of 12 KB", MIB(1170), 100000, 1, false, 300, 800 },
                { "1 GiB in one chunk", MIB(1024), 1, 1, false, 50, 110 },
                { "jemalloc, 8 arenas", MIB(1024), 0, 8, true, 5, 50 },
                { "jemalloc, one arena", MIB(1024), 0, 1, true, 60, 120 },
                { "tcmalloc: slices of 64 MiB", MIB(4096), 0, MG_UNKNOWN, true, 2, 20 },
                { "chunks unknown", MIB(100), MG_UNKNOWN, 0, false, 3, 20 },
                { "nothing", 0, 0, 0, false, 0, 1 },
        };
        struct mg_policy_state policy;

        policy_init(&policy);
        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct mg_process_sample p = process(1, table[i].retained);
                uint64_t msec;

                p.free_chunks = table[i].chunks;
                p.arenas = table[i].arenas;
                p.sliced = table[i].sliced;
                msec = policy_predict_pause(&policy, &p) / MG_USEC_PER_MSEC;
                if (msec < table[i].least_msec || msec > table[i].most_msec)
                        fail_msg("%s: %ju ms", table[i].what, (uintmax_t) msec);
        }
}

static void test_prediction_survives_any_number(void **state) {
        static const uint64_t numbers[] = { 0, 1, 4096, MG_GIB, UINT64_MAX - 1, UINT64_MAX };
        struct mg_policy_state policy;
        struct mg_process_sample p = process(1, 0);

        policy_init(&policy);
        policy.pause_usec_per_gib = policy.pause_usec_per_million_chunks = UINT64_MAX - 1;
        for (size_t i = 0; i < MG_ELEMENTS(numbers); i++)
                for (size_t j = 0; j < MG_ELEMENTS(numbers); j++)
                        for (size_t k = 0; k < MG_ELEMENTS(numbers); k++) {
                                p.rss_anon_bytes = numbers[i];
                                p.free_chunks = numbers[j];
                                p.arenas = numbers[k];
                                p.sliced = i & 1;
                                assert_true(policy_predict_pause(&policy, &p) >= 500);
                        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_biggest_first),
                cmocka_unit_test(test_equal_ones_by_pid),
                cmocka_unit_test(test_who_is_left_out),
                cmocka_unit_test(test_huge_one_does_not_block),
                cmocka_unit_test(test_predictions),
                cmocka_unit_test(test_prediction_survives_any_number),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
