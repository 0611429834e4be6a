/* SPDX-License-Identifier: MIT */
/* Which cgroups to watch, whether reclaim gets anywhere, and when an alert is due. */
#include "check.h"

#include "core/pressure.h"

#define ROOM 64

static void assert_plan(
                const char *const *paths,
                size_t n_paths,
                size_t max,
                const char *const *wanted,
                size_t n_wanted) {
        struct mg_pressure_place places[ROOM];
        size_t n = pressure_plan(paths, n_paths, places, max);

        assert_int_equal(n, n_wanted);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(places[i].length, strlen(wanted[i]));
                assert_memory_equal(places[i].path, wanted[i], places[i].length);
        }
}

static void plan_is_shallow_first_and_each_once(void **state) {
        static const char *const paths[] = {
                "/system.slice/a.service",
                "/system.slice/b.service",
                "/user.slice/user-1000.slice/user@1000.service/app.slice/p.service",
                "/system.slice/a.service",
        };
        static const char *const wanted[] = {
                "",
                "/system.slice",
                "/user.slice",
                "/system.slice/a.service",
                "/system.slice/b.service",
                "/user.slice/user-1000.slice",
                "/user.slice/user-1000.slice/user@1000.service",
                "/user.slice/user-1000.slice/user@1000.service/app.slice",
                "/user.slice/user-1000.slice/user@1000.service/app.slice/p.service",
        };

        assert_plan(paths, MG_ELEMENTS(paths), ROOM, wanted, MG_ELEMENTS(wanted));
        /* Cut off at the bottom, whatever the limit. */
        for (size_t max = 0; max < MG_ELEMENTS(wanted); max++)
                assert_plan(paths, MG_ELEMENTS(paths), max, wanted, max);
}

static void plan_of_odd_paths(void **state) {
        static const char *const root[] = { "" };
        static const char *const odd[] = { "", "/", "a.service", "//" };
        static const char *const names[] = { "/a", "/ab", "/a/b", "/ab/b" };
        static const char *const named[] = { "", "/a", "/ab", "/a/b", "/ab/b" };

        assert_plan(NULL, 0, ROOM, root, 1);
        for (size_t i = 0; i < MG_ELEMENTS(odd) - 1; i++)
                assert_plan(&odd[i], 1, ROOM, root, 1);
        assert_plan(names, MG_ELEMENTS(names), ROOM, named, MG_ELEMENTS(named));
}

static void place_of_a_path(void **state) {
        static const struct {
                const char *path, *place;
                bool at;
        } rows[] = {
                { "/a/b", "", true },        { "/a/b", "/a", true }, { "/a/b", "/a/b", true },
                { "/a/b", "/a/b/c", false }, { "/ab", "/a", false }, { "/a", "/ab", false },
                { "/b/a", "/a", false },     { "/a", "/a/", false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++)
                assert_int_equal(
                                pressure_is_at(rows[i].path, rows[i].place, strlen(rows[i].place)),
                                rows[i].at);
}

static void short_of_memory(void **state) {
        assert_false(pressure_is_short(74, 100));
        assert_true(pressure_is_short(75, 100));
        assert_true(pressure_is_short(200, 100));
        assert_true(pressure_is_short(0, 0));
        /* No limit; what is used is not known. */
        assert_false(pressure_is_short(UINT64_MAX - 1, MG_UNKNOWN));
        assert_true(pressure_is_short(MG_UNKNOWN, 100));
}

static void poor_reclaim(void **state) {
        static const struct {
                struct mg_pressure_reading before, now;
                bool poor;
        } rows[] = {
                { { 5, 1000, 500, 0 }, { 6, 2000, 900, 4001 }, true },
                /* Half is not poor; one page less is. */
                { { 5, 1000, 500, 0 }, { 6, 2000, 1000, 9000 }, false },
                { { 5, 1000, 500, 0 }, { 6, 2000, 999, 9000 }, true },
                { { 5, 1000, 500, 0 }, { 6, 2000, 900, 4000 }, false },
                { { 5, 1000, 500, 0 }, { 5, 2000, 500, 9000 }, false },
                /* Without swap nothing anonymous is scanned. */
                { { 5, 1000, 500, 0 }, { 6, 1000, 500, 9000 }, true },
                { { 0, 0, 0, 0 }, { 1, 0, 0, 10000 }, true },
                /* Unknown is no evidence. */
                { { MG_UNKNOWN, 1000, 500, 0 }, { 6, 2000, 900, 9000 }, false },
                { { 5, 1000, 500, 0 }, { MG_UNKNOWN, 2000, 900, 9000 }, false },
                { { 5, MG_UNKNOWN, 500, 0 }, { 6, 2000, 900, 9000 }, false },
                { { 5, 1000, 500, 0 }, { 6, MG_UNKNOWN, 900, 9000 }, false },
                { { 5, 1000, MG_UNKNOWN, 0 }, { 6, 2000, 900, 9000 }, false },
                { { 5, 1000, 500, 0 }, { 6, 2000, MG_UNKNOWN, 9000 }, false },
                { { 5, 1000, 500, 0 }, { 6, 2000, 900, MG_UNKNOWN }, false },
                /* Counters of another cgroup, which began anew. */
                { { 50, 1000, 500, 0 }, { 6, 10, 0, 9000 }, false },
                /* So many that a product would overflow. */
                { { 0, 0, 0, 0 }, { 1, MG_UNKNOWN - 1, MG_UNKNOWN / 2, 9000 }, false },
                { { 0, 0, 0, 0 }, { 1, MG_UNKNOWN - 1, MG_UNKNOWN / 4, 9000 }, true },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++)
                if (pressure_is_poor_reclaim(&rows[i].before, &rows[i].now) != rows[i].poor)
                        fail_msg("row %zu", i);
}

static void live_over_limit(void **state) {
        static const struct {
                bool alert;
                uint64_t live_mib, anon_mib, current_mib, high_mib; /* 0: unknown */
                bool over;
        } rows[] = {
                { true, 198, 200, 201, 200, true },
                { true, 198, 200, 180, 200, true },
                { true, 198, 200, 179, 200, false },
                { false, 198, 200, 201, 200, false },
                { true, 198, 200, 201, 0, false },
                /* Pinned or foreign memory is not the program's own. */
                { true, 99, 200, 201, 200, false },
                { true, 198, 200, 0, 200, true },
                { true, 198, 150, 0, 200, false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++) {
                struct mg_decision decision = { .pressure_alert = rows[i].alert };
                struct mg_memory memory = { .current_bytes = MG_UNKNOWN, .high_bytes = MG_UNKNOWN };

                decision.account.live_bytes = rows[i].live_mib * MG_MIB;
                decision.account.anon_bytes = rows[i].anon_mib * MG_MIB;
                if (rows[i].current_mib > 0)
                        memory.current_bytes = rows[i].current_mib * MG_MIB;
                if (rows[i].high_mib > 0)
                        memory.high_bytes = rows[i].high_mib * MG_MIB;
                if (pressure_is_live_over_limit(&decision, &memory) != rows[i].over)
                        fail_msg("row %zu", i);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(plan_is_shallow_first_and_each_once),
                cmocka_unit_test(plan_of_odd_paths),
                cmocka_unit_test(place_of_a_path),
                cmocka_unit_test(short_of_memory),
                cmocka_unit_test(poor_reclaim),
                cmocka_unit_test(live_over_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
