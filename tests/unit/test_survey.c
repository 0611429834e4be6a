/* SPDX-License-Identifier: MIT */
/* Who would profit from an agent, as far as that can be told from outside; and the survey of this very process. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "ctl/survey.h"
#include "host/allocator.h"

#define HAS(name) (UINT32_C(1) << MG_ALLOCATOR_##name)

static void test_judge(void **state) {
        static const struct {
                struct survey_unit unit;
                enum survey_profit profit;
        } cases[] = {
                /* The smallest and the largest that count as large enough. */
                { { .anon_bytes = 64 * MG_MIB - 1, .arena_heaps = 9, .allocators = HAS(GLIBC) },
                  SURVEY_NO },
                { { .anon_bytes = 64 * MG_MIB, .arena_heaps = 9, .allocators = HAS(GLIBC) },
                  SURVEY_LIKELY },
                { { .anon_bytes = MG_GIB, .arena_heaps = 1, .allocators = HAS(GLIBC) },
                  SURVEY_POSSIBLE },
                { { .anon_bytes = 128 * MG_MIB, .arena_heaps = 1, .allocators = HAS(GLIBC) },
                  SURVEY_UNLIKELY },
                { { .anon_bytes = MG_GIB, .allocators = HAS(GLIBC) | HAS(JEMALLOC) },
                  SURVEY_LIKELY },
                { { .anon_bytes = 128 * MG_MIB, .allocators = HAS(GLIBC) | HAS(JEMALLOC) },
                  SURVEY_POSSIBLE },
                { { .anon_bytes = MG_GIB, .allocators = HAS(GLIBC) | HAS(TCMALLOC) },
                  SURVEY_POSSIBLE },
                { { .anon_bytes = MG_GIB, .arena_heaps = 9, .allocators = HAS(GLIBC) | HAS(JVM) },
                  SURVEY_UNLIKELY },
                { { .anon_bytes = MG_GIB, .arena_heaps = 9, .allocators = HAS(GLIBC) | HAS(GO) },
                  SURVEY_NO },
                { { .anon_bytes = MG_GIB, .is_static = true, .allocators = HAS(JEMALLOC) },
                  SURVEY_NO },
                { { .anon_bytes = MG_GIB, .allocators = HAS(MUSL) }, SURVEY_NO },
                { { .anon_bytes = MG_GIB, .arena_heaps = 2, .allocators = HAS(MUSL) | HAS(GLIBC) },
                  SURVEY_LIKELY },
                { { .anon_bytes = MG_GIB }, SURVEY_UNLIKELY },
                { { .anon_bytes = MG_GIB, .agents = 1, .is_static = true }, SURVEY_HAS_AGENT },
                { { .agents = 1 }, SURVEY_HAS_AGENT },
                { { .anon_bytes = MG_GIB, .unreadable = 2 }, SURVEY_UNKNOWN },
                { { .anon_bytes = MG_GIB,
                    .unreadable = 1,
                    .arena_heaps = 2,
                    .allocators = HAS(GLIBC) },
                  SURVEY_LIKELY },
                { { .anon_bytes = UINT64_MAX - 1,
                    .arena_heaps = UINT32_MAX,
                    .allocators = UINT32_MAX },
                  SURVEY_NO },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct survey_unit unit = cases[i].unit;
                const char *reason = NULL;
                unit.processes = 2;
                enum survey_profit profit = survey_judge(&unit, &reason);
                if (profit != cases[i].profit)
                        fail_msg("case %zu: %s", i, survey_profit_to_string(profit));
                assert_non_null(reason);
        }
}

static void test_rank(void **state) {
        struct survey_unit units[] = {
                { .name = "small", .anon_bytes = MG_MIB, .processes = 1 },
                { .name = "possible",
                  .anon_bytes = 9 * MG_GIB,
                  .processes = 1,
                  .allocators = HAS(GLIBC) },
                { .name = "likely-1",
                  .anon_bytes = MG_GIB,
                  .processes = 1,
                  .arena_heaps = 4,
                  .allocators = HAS(GLIBC) },
                { .name = "likely-2",
                  .anon_bytes = 2 * MG_GIB,
                  .processes = 1,
                  .arena_heaps = 4,
                  .allocators = HAS(GLIBC) },
        };
        struct survey survey = { .units = units, .n = MG_ELEMENTS(units) };
        static const char *const order[] = { "likely-2", "likely-1", "possible", "small" };

        survey_rank(&survey);
        for (size_t i = 0; i < MG_ELEMENTS(order); i++)
                assert_string_equal(units[i].name, order[i]);
        survey_rank(&(struct survey){});
}

static void test_gather(void **state) {
        struct survey survey = {};
        bool found = false;

        assert_int_equal(survey_gather("/proc", NULL, &survey), 0);
        for (size_t i = 0; i < survey.n; i++) {
                const struct survey_unit *unit = &survey.units[i];
                assert_true(unit->processes > 0 && unit->unreadable <= unit->processes);
                if (strncmp(unit->name, "test-survey", strlen("test-survey")) != 0)
                        continue;
                found = true;
                assert_true(unit->allocators & HAS(GLIBC));
                assert_true(unit->anon_bytes > 0 && unit->threads >= 1);
                assert_false(unit->is_static);
                assert_int_equal(unit->agents, 0);
        }
        assert_true(found);
        survey_done(&survey);
        assert_true(survey_gather("/nonexistent", NULL, &survey) < 0);
}

/* A cgroup's name is any bytes but a slash; its unit must not be missing for that. */
static void test_row(void **state) {
        static const struct {
                const char *name;
                const char *path;
                const char *shown_name;
                const char *shown_path;
        } cases[] = {
                { "a.service", "/system.slice/a.service", "a.service", "/system.slice/a.service" },
                { "a.process", NULL, "a.process", NULL },
                { "", "", "", "" },
                { "gr\xc3\xbcn", "/gr\xc3\xbcn", "gr\xc3\xbcn", "/gr\xc3\xbcn" },
                { "\xff.service", "/a.slice/\xff.service", "<ff>.service",
                  "/a.slice/<ff>.service" },
                { "a", "/\xc3", "a", "/<c3>" },                     /* the first half alone */
                { "a", "/\xed\xa0\x80", "a", "/<ed><a0><80>" },     /* a surrogate */
                { "a", "/\xc0\xaf", "a", "/<c0><af>" },             /* overlong */
                { "a", "/\x1b[2J\n\x7f", "a", "/<1b>[2J<0a><7f>" }, /* a terminal's */
                { "a", "/\xe2\x82\xac\xe2\x82", "a", "/\xe2\x82\xac<e2><82>" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct survey_unit unit = { .path = (char *) cases[i].path, .processes = 1 };
                const char *path;
                json_t *row;

                memcpy(unit.name, cases[i].name, strlen(cases[i].name) + 1);
                row = survey_row(&unit);
                assert_non_null(row);
                assert_string_equal(
                                json_string_value(json_object_get(row, "unit")),
                                cases[i].shown_name);
                path = json_string_value(json_object_get(row, "cgroup"));
                if (cases[i].shown_path)
                        assert_string_equal(path, cases[i].shown_path);
                else
                        assert_null(path);
                json_decref(row);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_judge),
                cmocka_unit_test(test_rank),
                cmocka_unit_test(test_gather),
                cmocka_unit_test(test_row),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
