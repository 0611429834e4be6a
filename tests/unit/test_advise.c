/* SPDX-License-Identifier: MIT */
/* Advice: the right remedy for each kind of trouble, and none where none is needed. */
#include "core/advise.h"

#include "simulated_unit.h"

struct scene {
        struct sim_unit u;
        struct mg_advice_facts facts;
        struct mg_advice advice[MG_ADVICE_MAX];
        size_t n;
};

static void setup(struct scene *s) {
        sim_init(&s->u);
        s->facts = (struct mg_advice_facts){
                .allocator = MG_ALLOCATOR_GLIBC, .arenas = 8, .free_chunks = 1000, .cpus = 2
        };
}

static void ask(struct scene *s) {
        s->n =
                        advise_unit(&s->u.config, &s->u.sample, &s->u.state, &s->u.decision,
                                    &s->facts, s->advice);
        assert_in_range(s->n, 1, MG_ADVICE_MAX);
}

static const struct mg_advice *find(const struct scene *s, enum mg_advice_kind kind) {
        for (size_t i = 0; i < s->n; i++)
                if (s->advice[i].kind == kind)
                        return &s->advice[i];
        return NULL;
}

static void assert_only(const struct scene *s, enum mg_advice_kind kind) {
        if (s->n != 1 || s->advice[0].kind != kind)
                fail_msg("%zu, first %s, not only %s", s->n,
                         advice_kind_to_string(s->advice[0].kind), advice_kind_to_string(kind));
}

static void test_nothing(void **state) {
        struct scene s;

        setup(&s);
        s.u.soft = MIB(20);
        sim_run(&s.u, HOUR(1));
        ask(&s);
        assert_only(&s, MG_ADVICE_NOTHING);
        assert_int_equal(s.advice[0].confidence, MG_CONFIDENCE_HIGH);
}

static void test_no_agent(void **state) {
        struct scene s;

        setup(&s);
        s.u.process.has_agent = false;
        sim_run(&s.u, HOUR(1));
        ask(&s);
        assert_only(&s, MG_ADVICE_ENROLL);
}

/* C3: the remedy is named, and the word for the other trouble is not. */
static void test_pinned(void **state) {
        char text[MG_ADVICE_TEXT_MAX];
        struct scene s;

        setup(&s);
        s.u.live = MIB(73);
        s.u.hard = MIB(439);
        sim_run(&s.u, HOUR(2));
        ask(&s);
        assert_non_null(find(&s, MG_ADVICE_RESTART));
        assert_int_equal(find(&s, MG_ADVICE_RESTART)->gain_bytes, MIB(439));
        assert_non_null(find(&s, MG_ADVICE_ARENA_MAX));
        assert_int_equal(find(&s, MG_ADVICE_ARENA_MAX)->value, 2);
        for (size_t i = 0; i < s.n; i++)
                assert_null(strstr(advise_text(&s.advice[i], text), "leak"));

        /* The operator has set MALLOC_ARENA_MAX= or tunables already; or there are no more arenas than CPUs. */
        s.facts.tuned = true;
        ask(&s);
        assert_only(&s, MG_ADVICE_RESTART);
        s.facts.tuned = false;
        s.facts.arenas = 2;
        ask(&s);
        assert_only(&s, MG_ADVICE_RESTART);
        s.facts.arenas = MG_UNKNOWN;
        ask(&s);
        assert_only(&s, MG_ADVICE_RESTART);
}

static void test_leak(void **state) {
        struct scene s;

        setup(&s);
        for (int i = 0; i < 2000; i++) {
                s.u.live += MIB(2);
                sim_tick(&s.u);
        }
        ask(&s);
        assert_only(&s, MG_ADVICE_LOOK_INSIDE);
        assert_int_equal(s.advice[0].confidence, MG_CONFIDENCE_HIGH);
}

static void test_not_malloc(void **state) {
        struct scene s;

        setup(&s);
        for (int i = 0; i < 500; i++) {
                s.u.other += MIB(2);
                sim_tick(&s.u);
        }
        ask(&s);
        assert_only(&s, MG_ADVICE_NOT_MALLOC);
}

/* S2, observed only. */
static void test_observed_retention(void **state) {
        char text[MG_ADVICE_TEXT_MAX];
        struct scene s;

        setup(&s);
        s.u.config.mode = MG_MODE_OBSERVE;
        for (int i = 0; i < 720; i++) {
                s.u.soft += MIB(3);
                sim_tick(&s.u);
        }
        ask(&s);
        assert_int_equal(s.advice[0].kind, MG_ADVICE_MODE_TRIM);
        assert_non_null(find(&s, MG_ADVICE_ARENA_MAX));
        assert_string_equal(
                        advise_text(&s.advice[0], text),
                        "Set Mode=trim: each trim would have given back about 258M.");
}

static void test_max_pause(void **state) {
        char text[MG_ADVICE_TEXT_MAX];
        struct scene s;

        setup(&s);
        s.u.process.arenas = 1;
        s.u.soft = MIB(2048);
        sim_run(&s.u, MIN(1));
        assert_int_equal(s.u.decision.reason, MG_REASON_MAX_PAUSE);
        ask(&s);
        assert_int_equal(s.advice[0].kind, MG_ADVICE_MAX_PAUSE);
        assert_int_equal(s.advice[0].confidence, MG_CONFIDENCE_LOW);
        assert_int_equal(s.advice[0].gain_bytes, MIB(2048));
        assert_true(s.advice[0].value > s.u.decision.predicted_pause_usec);
        assert_non_null(strstr(advise_text(&s.advice[0], text), "MaxPause=160ms"));

        /* With that much it is trimmed. */
        s.u.config.max_pause_usec = s.advice[0].value;
        assert_true(sim_tick(&s.u));
}

static void test_breaker(void **state) {
        struct scene s;

        setup(&s);
        s.u.soft = MIB(500);
        s.u.pause_usec = 400000;
        sim_run(&s.u, MIN(1));
        ask(&s);
        assert_non_null(find(&s, MG_ADVICE_MAX_PAUSE));
        assert_int_equal(find(&s, MG_ADVICE_MAX_PAUSE)->value, 500000);
        assert_int_equal(find(&s, MG_ADVICE_MAX_PAUSE)->confidence, MG_CONFIDENCE_HIGH);
}

static void test_watchdog(void **state) {
        struct scene s;

        setup(&s);
        s.u.soft = MIB(500);
        s.u.sample.watchdog_usec = 1000;
        sim_run(&s.u, MIN(1));
        ask(&s);
        assert_only(&s, MG_ADVICE_WATCHDOG);
        s.u.sample.watchdog_usec = s.advice[0].value;
        assert_true(sim_tick(&s.u));
}

static void test_huge_pages(void **state) {
        struct scene s;

        setup(&s);
        s.u.soft = MIB(500);
        s.u.sample.memory.anon_thp_bytes = MIB(502);
        sim_tick(&s.u);
        s.u.soft = MIB(450);
        s.u.sample.memory.anon_thp_bytes = MIB(452);
        sim_run(&s.u, MIN(2));
        ask(&s);
        assert_int_equal(s.advice[0].kind, MG_ADVICE_HUGE_PAGES);
        assert_int_equal(s.advice[0].gain_bytes, MIB(500));
}

static void test_jemalloc(void **state) {
        struct scene s;

        setup(&s);
        s.facts.allocator = MG_ALLOCATOR_JEMALLOC;
        s.u.config.mode = MG_MODE_TRIM;
        s.u.config.when = MG_WHEN_IDLE;
        s.u.soft = MIB(250);
        sim_run(&s.u, MIN(2));
        ask(&s);
        assert_only(&s, MG_ADVICE_BACKGROUND_THREAD);
        s.facts.background_thread = true;
        ask(&s);
        assert_only(&s, MG_ADVICE_NOTHING);
        s.facts.background_thread = false;
        s.u.config.jemalloc_background_thread = MG_YES;
        ask(&s);
        assert_only(&s, MG_ADVICE_NOTHING);
}

static void test_cannot_trim(void **state) {
        struct scene s;

        setup(&s);
        s.facts.allocator = MG_ALLOCATOR_MIMALLOC;
        s.u.process.can_trim = false;
        s.u.soft = MIB(491);
        sim_run(&s.u, MIN(2));
        ask(&s);
        assert_only(&s, MG_ADVICE_OTHER_ALLOCATOR);
}

/* Blocks of 4 MiB that come and go each minute. */
static void test_mmap_threshold(void **state) {
        struct scene s;

        setup(&s);
        s.facts.free_chunks = 100;
        s.facts.arenas = 1;
        for (int i = 0; i < 60; i++) {
                s.u.soft = MIB(400);
                sim_run(&s.u, MIN(1));
        }
        assert_int_equal(s.u.state.backoff_reason, MG_REASON_REGROWTH);
        ask(&s);
        assert_non_null(find(&s, MG_ADVICE_MMAP_THRESHOLD));
        assert_int_equal(find(&s, MG_ADVICE_MMAP_THRESHOLD)->confidence, MG_CONFIDENCE_LOW);
        s.facts.free_chunks = 100000;
        ask(&s);
        assert_null(find(&s, MG_ADVICE_MMAP_THRESHOLD));
}

static void test_texts(void **state) {
        static const uint64_t numbers[] = { 0, MIB(123), UINT64_MAX - 1, UINT64_MAX };
        char text[MG_ADVICE_TEXT_MAX];

        for (int kind = 0; kind < _MG_ADVICE_KIND_MAX; kind++)
                for (size_t i = 0; i < MG_ELEMENTS(numbers); i++) {
                        struct mg_advice advice = { .kind = kind,
                                                    .gain_bytes = numbers[i],
                                                    .value = numbers[i] };

                        advise_text(&advice, text);
                        assert_null(strchr(text, '%'));
                        assert_int_equal(text[strlen(text) - 1], '.');
                }
        for (int confidence = 0; confidence < _MG_CONFIDENCE_MAX; confidence++)
                assert_non_null(confidence_to_string(confidence));
        assert_int_equal(advice_allocator_from_string("glibc", 5), MG_ALLOCATOR_GLIBC);
        assert_int_equal(advice_allocator_from_string("mimalloc 3", 8), MG_ALLOCATOR_MIMALLOC);
        assert_int_equal(advice_allocator_from_string("go", 2), MG_ALLOCATOR_OTHER);
        assert_int_equal(advice_allocator_from_string("", 0), MG_ALLOCATOR_OTHER);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing),        cmocka_unit_test(test_no_agent),
                cmocka_unit_test(test_pinned),         cmocka_unit_test(test_leak),
                cmocka_unit_test(test_not_malloc),     cmocka_unit_test(test_observed_retention),
                cmocka_unit_test(test_max_pause),      cmocka_unit_test(test_breaker),
                cmocka_unit_test(test_watchdog),       cmocka_unit_test(test_huge_pages),
                cmocka_unit_test(test_jemalloc),       cmocka_unit_test(test_cannot_trim),
                cmocka_unit_test(test_mmap_threshold), cmocka_unit_test(test_texts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
