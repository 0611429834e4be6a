/* SPDX-License-Identifier: MIT */
/* Section 4 of the design: from what was measured to live, freeable, pinned and other. */
#include "core/account.h"

#include "check.h"

#define MIB(n) ((uint64_t) (n) *MG_MIB)

static struct mg_memory no_memory(void) {
        struct mg_memory memory;

        memset(&memory, 0xff, sizeof(memory));
        return memory;
}

static struct mg_process_sample glibc_process(uint64_t rss, uint64_t live) {
        return (struct mg_process_sample){
                .pid = 10,
                .rss_anon_bytes = rss,
                .swap_bytes = 0,
                .base_bytes = 0,
                .live_bytes = live,
                .system_bytes = MG_UNKNOWN,
                .estimate_bytes = MG_UNKNOWN,
                .free_chunks = 8,
                .arenas = 8,
                .stats_at_usec = 1,
                .stats_rss_bytes = MG_UNKNOWN,
                .has_agent = true,
                .can_trim = true,
        };
}

static struct mg_unit_sample unit_of(uint64_t anon, const struct mg_process_sample *p, size_t n) {
        struct mg_unit_sample sample = {
                .memory = no_memory(),
                .processes = p,
                .n_processes = n,
                .cpu_usage_usec = MG_UNKNOWN,
                .watchdog_usec = MG_UNKNOWN,
                .checkpoint_at_usec = MG_UNKNOWN,
        };

        sample.memory.anon_bytes = anon;
        return sample;
}

static void assert_identity(const struct mg_account *a) {
        assert_int_equal(
                        a->anon_bytes + a->swap_bytes,
                        a->live_bytes + a->freeable_bytes + a->pinned_bytes + a->other_bytes);
        assert_int_equal(a->retained_bytes, a->freeable_bytes + a->pinned_bytes);
}

static void test_process_retained(void **state) {
        static const struct {
                const char *what;
                uint64_t rss, swap, base, live, system, then, want;
        } table[] = {
                { "plain", MIB(514), 0, 0, MIB(2), MG_UNKNOWN, 0, MIB(512) },
                { "base is not the heap's", MIB(514), 0, MIB(4), MIB(2), MG_UNKNOWN, 0, MIB(508) },
                { "no more than the heap took", MIB(514), 0, 0, MIB(2), MIB(100), 0, MIB(98) },
                { "live above resident", MIB(10), 0, 0, MIB(20), MG_UNKNOWN, 0, 0 },
                { "base above resident", MIB(10), 0, MIB(20), MIB(1), MG_UNKNOWN, 0, 0 },
                { "swapped pages are retained too", MIB(50), MIB(50), 0, MIB(2), MG_UNKNOWN, 0,
                  MIB(98) },
                { "swap unknown", MIB(50), MG_UNKNOWN, 0, MIB(2), MG_UNKNOWN, 0, MIB(48) },
                { "base unknown", MIB(50), 0, MG_UNKNOWN, MIB(2), MG_UNKNOWN, 0, MIB(48) },
                { "growth since the statistics is live", MIB(300), 0, 0, MIB(20), MG_UNKNOWN,
                  MIB(100), MIB(80) },
                { "a fall since then is not", MIB(60), 0, 0, MIB(20), MG_UNKNOWN, MIB(100),
                  MIB(40) },
                { "no statistics", MIB(60), 0, 0, MG_UNKNOWN, MG_UNKNOWN, 0, MG_UNKNOWN },
                { "no resident size", MG_UNKNOWN, 0, 0, MIB(1), MG_UNKNOWN, 0, MG_UNKNOWN },
                { "live near the end of numbers", MIB(60), 0, 0, UINT64_MAX - 1, MG_UNKNOWN,
                  MIB(10), 0 },
                { "all near the end", UINT64_MAX - 1, UINT64_MAX - 1, 1, 5, MG_UNKNOWN, 0,
                  UINT64_MAX - 7 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct mg_process_sample p = glibc_process(table[i].rss, table[i].live);

                p.swap_bytes = table[i].swap;
                p.base_bytes = table[i].base;
                p.system_bytes = table[i].system;
                p.stats_rss_bytes = table[i].then;
                if (account_process_retained(&p) != table[i].want)
                        fail_msg("%s: %ju", table[i].what,
                                 (uintmax_t) account_process_retained(&p));
        }
}

static void test_never_measured(void **state) {
        struct mg_process_sample p = glibc_process(MIB(100), MIB(10));
        struct mg_unit_sample sample = unit_of(MIB(100), &p, 1);
        struct mg_account account;

        p.stats_at_usec = MG_UNKNOWN;
        account_unit(&sample, 0, &account);
        assert_false(account.known);
        assert_true(account.anon_known);
        assert_int_equal(account.other_bytes, MIB(100));
        assert_int_equal(account_process_reach(&p), 0);
        assert_identity(&account);
}

/* C2: the allocator's own free bytes still count what was given back. */
static void test_stale_counter(void **state) {
        struct mg_process_sample p = glibc_process(MIB(18), MIB(2));
        struct mg_unit_sample sample = unit_of(MIB(18), &p, 1);
        struct mg_account account;

        p.system_bytes = MIB(514);
        p.estimate_bytes = MIB(512);
        account_unit(&sample, 0, &account);
        assert_int_equal(account.retained_bytes, MIB(16));
        assert_int_equal(account.freeable_bytes, MIB(16));
        assert_identity(&account);
}

/* C11: a master with 15 MiB live and 180 retained, and three children that share it all. */
static void test_prefork_counts_once(void **state) {
        struct mg_process_sample p[4];
        struct mg_unit_sample sample;
        struct mg_account account;

        for (size_t i = 0; i < 4; i++)
                p[i] = glibc_process(MIB(195), MIB(15));
        sample = unit_of(MIB(197), p, 4);
        account_unit(&sample, 0, &account);
        assert_int_equal(account.retained_bytes, MIB(182));
        assert_int_equal(account.live_bytes, MIB(15));
        assert_int_equal(account.other_bytes, 0);
        assert_identity(&account);
}

/* C10: file pages, tmpfs and slab are nobody's heap. */
static void test_only_anon_counts(void **state) {
        struct mg_process_sample p = glibc_process(MIB(20), MIB(18));
        struct mg_unit_sample sample = unit_of(MIB(20), &p, 1);
        struct mg_account account;

        sample.memory.file_bytes = MIB(2048 + 500);
        sample.memory.shmem_bytes = MIB(300);
        sample.memory.slab_reclaimable_bytes = MIB(200);
        sample.memory.current_bytes = MIB(3000);
        account_unit(&sample, 0, &account);
        assert_int_equal(account.anon_bytes, MIB(20));
        assert_int_equal(account.retained_bytes, MIB(2));
        assert_identity(&account);
}

static void test_stuck_and_reach(void **state) {
        static const struct {
                uint64_t stuck, estimate;
                bool can_trim;
                uint64_t freeable, pinned, reach;
        } table[] = {
                { 0, MG_UNKNOWN, true, MIB(100), 0, MIB(100) },
                { MIB(30), MG_UNKNOWN, true, MIB(70), MIB(30), MIB(100) },
                { MIB(500), MG_UNKNOWN, true, 0, MIB(100), MIB(100) },
                { 0, MIB(40), true, MIB(40), MIB(60), MIB(40) },
                { MIB(90), MIB(40), true, MIB(10), MIB(90), MIB(40) },
                { 0, MG_UNKNOWN, false, 0, MIB(100), 0 },
                { UINT64_MAX, UINT64_MAX, true, 0, MIB(100), MIB(100) },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct mg_process_sample p = glibc_process(MIB(120), MIB(20));
                struct mg_unit_sample sample = unit_of(MIB(120), &p, 1);
                struct mg_account account;

                p.estimate_bytes = table[i].estimate;
                p.can_trim = table[i].can_trim;
                account_unit(&sample, table[i].stuck, &account);
                assert_int_equal(account.freeable_bytes, table[i].freeable);
                assert_int_equal(account.pinned_bytes, table[i].pinned);
                assert_int_equal(account.reach_bytes, table[i].reach);
                assert_identity(&account);
        }
}

static void test_lazyfree(void **state) {
        struct mg_process_sample p = glibc_process(MIB(100), MIB(10));
        struct mg_unit_sample sample = unit_of(MIB(100), &p, 1);
        struct mg_memory *m = &sample.memory;
        struct mg_account account;

        assert_int_equal(account_lazyfree(m), 0);
        m->shmem_bytes = MIB(5);
        m->active_anon_bytes = MIB(40);
        m->inactive_anon_bytes = MIB(25);
        m->unevictable_bytes = MIB(10);
        assert_int_equal(account_lazyfree(m), MIB(30));
        assert_int_equal(account_footprint(m), MIB(70));
        account_unit(&sample, 0, &account);
        assert_int_equal(account.retained_bytes, MIB(60));
        assert_int_equal(account.other_bytes, MIB(30));
        assert_identity(&account);

        m->swap_bytes = MIB(7);
        assert_int_equal(account_footprint(m), MIB(77));
        m->unevictable_bytes = MIB(500);
        assert_int_equal(account_lazyfree(m), 0);
        m->active_anon_bytes = UINT64_MAX - 1;
        assert_int_equal(account_lazyfree(m), 0);
        m->anon_bytes = MG_UNKNOWN;
        assert_int_equal(account_footprint(m), MG_UNKNOWN);
}

static void test_anon_from_processes(void **state) {
        struct mg_process_sample p[2] = { glibc_process(MIB(30), MIB(10)),
                                          glibc_process(MG_UNKNOWN, MIB(10)) };
        struct mg_unit_sample sample = unit_of(MG_UNKNOWN, p, 2);
        struct mg_account account;

        account_unit(&sample, 0, &account);
        assert_int_equal(account.anon_bytes, MIB(30));
        assert_true(account.known);
        assert_identity(&account);

        sample.n_processes = 0;
        account_unit(&sample, 0, &account);
        assert_false(account.anon_known);
        assert_false(account.known);
        assert_identity(&account);
}

static uint64_t hostile_number(struct check_random *random) {
        switch (check_below(random, 6)) {
        case 0:
                return MG_UNKNOWN;
        case 1:
                return 0;
        case 2:
                return UINT64_MAX - 1 - check_below(random, 3);
        default:
                return check_below(random, MIB(900));
        }
}

/* Whatever is measured, the four parts add up to what the unit has. */
static void test_identity_always(void **state) {
        struct check_random random = check_seed(1);

        for (int round = 0; round < 50000; round++) {
                struct mg_process_sample p[5] = {};
                struct mg_unit_sample sample;
                struct mg_account account;
                size_t n = check_below(&random, 6);

                for (size_t i = 0; i < n; i++) {
                        p[i] = glibc_process(hostile_number(&random), hostile_number(&random));
                        p[i].swap_bytes = hostile_number(&random);
                        p[i].base_bytes = hostile_number(&random);
                        p[i].system_bytes = hostile_number(&random);
                        p[i].estimate_bytes = hostile_number(&random);
                        p[i].stats_rss_bytes = hostile_number(&random);
                        p[i].can_trim = check_below(&random, 2);
                }
                sample = unit_of(check_below(&random, MIB(4000)), p, n);
                sample.memory.swap_bytes = check_below(&random, 2) ? MG_UNKNOWN : MIB(50);
                sample.memory.shmem_bytes = hostile_number(&random);
                sample.memory.active_anon_bytes = hostile_number(&random);
                sample.memory.inactive_anon_bytes = hostile_number(&random);
                sample.memory.unevictable_bytes = hostile_number(&random);
                account_unit(&sample, hostile_number(&random), &account);
                assert_identity(&account);
                assert_true(account.freeable_bytes <= account.reach_bytes);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_process_retained), cmocka_unit_test(test_never_measured),
                cmocka_unit_test(test_stale_counter),    cmocka_unit_test(test_prefork_counts_once),
                cmocka_unit_test(test_only_anon_counts), cmocka_unit_test(test_stuck_and_reach),
                cmocka_unit_test(test_lazyfree),         cmocka_unit_test(test_anon_from_processes),
                cmocka_unit_test(test_identity_always),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
