/* SPDX-License-Identifier: MIT */
/* Tokens however they are cut and whatever is in them, who is let in, and who is told of what. */
#include "check.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "core/pressure_client.h"

#define NAME_60  "a123456789b123456789c123456789d123456789e123456789f123456789"
#define NAME_255 NAME_60 NAME_60 NAME_60 NAME_60 "a1234567.scope5"
_Static_assert(sizeof(NAME_255) - 1 == 255, "the longest name of a unit");

#define BYTES(text) (text), sizeof(text) - 1

static void tokens(void **state) {
        static const struct {
                const char *bytes;
                size_t length;
                const char *unit; /* NULL: none */
        } rows[] = {
                { BYTES("memguard 1 foo.service\n"), "foo.service" },
                { BYTES("memguard 1 foo.service\0"), "foo.service" },
                { BYTES("memguard 1 dev-disk\\x2dby.mount@a:b_c-d.service\n"),
                  "dev-disk\\x2dby.mount@a:b_c-d.service" },
                { BYTES("memguard 1 a\n"), "a" },
                { BYTES("memguard 1 " NAME_255 "\n"), NAME_255 },
                { BYTES("memguard 1 " NAME_255 "x\n"), NULL },
                { BYTES("memguard 1 " NAME_255 "x"), NULL },
                { BYTES("memguard 1 \n"), NULL },
                { BYTES("memguard 1 \0"), NULL },
                { BYTES("memguard 1  foo.service\n"), NULL },
                { BYTES("memguard 1 foo.service \n"), NULL },
                { BYTES("memguard 1 foo.service\r\n"), NULL },
                { BYTES("memguard 1 foo.service\n\n"), NULL },
                { BYTES("memguard 1 foo.service\n\0"), NULL },
                { BYTES("memguard 1 foo.service\nmemguard 1 foo.service\n"), NULL },
                { BYTES("memguard 1 *.service\n"), NULL },
                { BYTES("memguard 1 foo.service/..\n"), NULL },
                { BYTES("memguard 1 f\303\266\303\266.service\n"), NULL },
                { BYTES("memguard 2 foo.service\n"), NULL },
                { BYTES("memguard  1 foo.service\n"), NULL },
                { BYTES("MEMGUARD 1 foo.service\n"), NULL },
                { BYTES(" memguard 1 foo.service\n"), NULL },
                { BYTES("some 200000 2000000\0"),
                  NULL }, /* what PID 1 gives to those who watch the file */
                { BYTES("\n"), NULL },
                { BYTES("\0"), NULL },
                { BYTES("\377\377\377\377"), NULL },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++) {
                struct mg_pressure_token token = {};
                int r = pressure_token_parse(rows[i].bytes, rows[i].length, &token);

                if (r != (rows[i].unit ? 1 : -EINVAL))
                        fail_msg("row %zu: %d", i, r);
                if (!rows[i].unit)
                        continue;
                assert_int_equal(token.length, strlen(rows[i].unit));
                assert_memory_equal(token.unit, rows[i].unit, token.length);
                assert_true(rows[i].length <= MG_PRESSURE_TOKEN_MAX);
        }
}

/* Partial writes: each beginning of a right token may still become one, and any that has gone wrong never does. */
static void tokens_cut_anywhere(void **state) {
        static const char right[] = "memguard 1 worker@7.service\n";
        struct mg_pressure_token token;
        char bytes[sizeof(right)];

        for (size_t length = 0; length < sizeof(right) - 1; length++) {
                assert_int_equal(pressure_token_parse(right, length, &token), 0);
                for (size_t at = 0; at < length; at++) {
                        memcpy(bytes, right, sizeof(bytes));
                        bytes[at] = '\1';
                        assert_int_equal(pressure_token_parse(bytes, length, &token), -EINVAL);
                }
        }
}

/* Nothing that is random is taken for a token, and nothing is read beyond its end. */
static void random_bytes(void **state) {
        struct check_random random = check_seed(8);

        for (int i = 0; i < 20000; i++) {
                struct mg_pressure_token token;
                size_t length = check_below(&random, MG_PRESSURE_TOKEN_MAX + 2);
                char *bytes = malloc(length + 1); /* exactly as long, for the sanitizers */

                assert_non_null(bytes);
                for (size_t at = 0; at < length; at++)
                        bytes[at] = (char) check_below(&random, 256);
                assert_true(pressure_token_parse(bytes, length, &token) < 1);
                free(bytes);
        }
}

static void whose_token(void **state) {
        static const struct {
                const char *token, *unit;
                bool its;
        } rows[] = {
                { "foo.service", "foo.service", true },
                { "foo.service", "foo.servic", false },
                { "foo.servic", "foo.service", false },
                { "foo.service", "foo@1.service", false },
                { "foo@.service", "foo@1.service", true },
                { "foo@.service", "foo@a@b.service", true },
                { "foo@.service", "foo@a.b.service", true },
                { "foo@.service", "foo@1.scope", false },
                { "foo@.service", "foo.service", false },
                { "foo@.service", "fooo@1.service", false },
                { "foo@1.service", "foo@2.service", false },
                { "foo@1.service", "foo@1.service", true },
                { "foo@.service", "foo@.service", true },
                { "@.service", "foo@1.service", false },
                { "foo@", "foo@1", false },
                { "foo@.b", "foo.a@1", false },
                { "foo@", "foo@", true },
                { "redis-server@.process", "redis-server@1000.process", true },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++) {
                struct mg_pressure_token token = { rows[i].token, strlen(rows[i].token) };

                if (pressure_token_is_of(&token, rows[i].unit) != rows[i].its)
                        fail_msg("row %zu", i);
        }
}

static void who_is_let_in(void **state) {
        static const struct {
                struct mg_pressure_crowd crowd;
                size_t max;
                enum mg_pressure_admission admission;
        } rows[] = {
                { { 0, 0, 0, false }, 0, MG_PRESSURE_FULL },
                { { 0, 0, 0, true }, 0, MG_PRESSURE_FULL },
                { { 0, 0, 0, false }, 1, MG_PRESSURE_ADMIT },
                { { 1, 0, 0, true }, 1, MG_PRESSURE_FULL },
                /* 200 workers of root's, each a process, but of another user's only a quarter of all, at least 16 ... */
                { { 199, 199, 0, true }, 200, MG_PRESSURE_ADMIT },
                { { 200, 200, 0, true }, 200, MG_PRESSURE_FULL },
                { { 60, 49, 0, false }, 200, MG_PRESSURE_ADMIT },
                { { 60, 50, 0, false }, 200, MG_PRESSURE_TOO_MANY },
                { { 15, 15, 0, false }, 20, MG_PRESSURE_ADMIT },
                { { 16, 16, 0, false }, 20, MG_PRESSURE_TOO_MANY },
                /* ... and of one process four, root's too; also where all is full, so that it cannot fill the queue. */
                { { 9, 9, 3, true }, 200, MG_PRESSURE_ADMIT },
                { { 9, 9, 4, true }, 200, MG_PRESSURE_TOO_MANY },
                { { 200, 9, 4, true }, 200, MG_PRESSURE_TOO_MANY },
                { { 200, 50, 0, false }, 200, MG_PRESSURE_TOO_MANY },
                { { SIZE_MAX, SIZE_MAX, SIZE_MAX, true }, SIZE_MAX, MG_PRESSURE_TOO_MANY },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++)
                if (pressure_client_admit(&rows[i].crowd, rows[i].max) != rows[i].admission)
                        fail_msg("row %zu", i);
}

#define S MG_USEC_PER_SEC

static void which_units_are_told(void **state) {
        static const struct {
                enum mg_pressure_cause cause;
                enum mg_mode mode;
                uint32_t when;
                bool paused;
                uint64_t last_usec, now_usec; /* CooldownSec= is 300 s */
                bool told;
        } rows[] = {
                /* Its own pressure is the kernel's word: nothing of ours holds it back. */
                { MG_PRESSURE_OWN, MG_MODE_TRIM, MG_WHEN_ANY, false, 0, 9 * S, true },
                { MG_PRESSURE_OWN, MG_MODE_OBSERVE, MG_WHEN_ANY, false, 0, 9 * S, true },
                { MG_PRESSURE_OWN, MG_MODE_OFF, MG_WHEN_IDLE, true, 8 * S, 9 * S, true },
                { MG_PRESSURE_BY_HAND, MG_MODE_OFF, MG_WHEN_IDLE, true, 8 * S, 9 * S, true },
                { MG_PRESSURE_ABOVE, MG_MODE_TRIM, MG_WHEN_ANY, false, 0, 9 * S, true },
                { MG_PRESSURE_ABOVE, MG_MODE_TRIM, MG_WHEN_PRESSURE, false, 0, 9 * S, true },
                { MG_PRESSURE_ABOVE, MG_MODE_TRIM, MG_WHEN_IDLE | MG_WHEN_PRESSURE, false, 0, 9 * S,
                  true },
                { MG_PRESSURE_ABOVE, MG_MODE_TRIM, MG_WHEN_IDLE | MG_WHEN_CHECKPOINT, false, 0,
                  9 * S, false },
                { MG_PRESSURE_ABOVE, MG_MODE_TRIM, MG_WHEN_ANY, true, 0, 9 * S, false },
                { MG_PRESSURE_ABOVE, MG_MODE_OBSERVE, MG_WHEN_ANY, false, 0, 9 * S, false },
                { MG_PRESSURE_ABOVE, MG_MODE_OFF, MG_WHEN_ANY, false, 0, 9 * S, false },
                { MG_PRESSURE_ABOVE, MG_MODE_TRIM, MG_WHEN_ANY, false, 9 * S, 308 * S, false },
                { MG_PRESSURE_ABOVE, MG_MODE_TRIM, MG_WHEN_ANY, false, 9 * S, 309 * S, true },
                /* A clock that went back is no reason. */
                { MG_PRESSURE_ABOVE, MG_MODE_TRIM, MG_WHEN_ANY, false, 9 * S, 8 * S, false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++) {
                struct mg_unit_config config;

                unit_config_defaults(&config);
                config.mode = rows[i].mode;
                config.when = rows[i].when;
                if (pressure_unit_is_told(
                                    rows[i].cause, &config, rows[i].paused, rows[i].last_usec,
                                    rows[i].now_usec) != rows[i].told)
                        fail_msg("row %zu", i);
        }
}

static void which_clients_are_told(void **state) {
        static const struct {
                struct mg_pressure_client client;
                enum mg_pressure_cause cause;
                size_t unread;
                uint64_t now_usec;
                bool told;
        } rows[] = {
                { { true, 0 }, MG_PRESSURE_OWN, 0, 1, true },
                { { false, 0 }, MG_PRESSURE_OWN, 0, 1, false },
                { { false, 0 }, MG_PRESSURE_BY_HAND, 0, 1, false },
                { { true, 0 }, MG_PRESSURE_OWN, 1, 1, false },
                { { true, 0 }, MG_PRESSURE_BY_HAND, 1, 1, false },
                { { true, 0 }, MG_PRESSURE_BY_HAND, SIZE_MAX, 1, false },
                /* The unit's trigger, its slice's and the host's are one event; the next one is two seconds later. */
                { { true, 5 * S }, MG_PRESSURE_ABOVE, 0, 5 * S + 1, false },
                { { true, 5 * S }, MG_PRESSURE_OWN, 0, 6 * S - 1, false },
                { { true, 5 * S }, MG_PRESSURE_OWN, 0, 6 * S, true },
                { { true, 5 * S }, MG_PRESSURE_OWN, 0, 7 * S, true },
                { { true, 5 * S }, MG_PRESSURE_BY_HAND, 0, 5 * S + 1, true },
                { { true, 5 * S }, MG_PRESSURE_OWN, 0, 4 * S, false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++)
                if (pressure_client_is_told(
                                    &rows[i].client, rows[i].cause, rows[i].unread,
                                    rows[i].now_usec) != rows[i].told)
                        fail_msg("row %zu", i);
}

/* By hand to those who have no agent; never around a reason to leave the unit alone. */
static void stands_in_for_an_agent(void **state) {
        for (unsigned reason = 0; reason < _MG_REASON_MAX; reason++)
                assert_int_equal(
                                pressure_stands_in((enum mg_reason) reason),
                                reason == MG_REASON_NO_AGENT || reason == MG_REASON_NO_STATISTICS ||
                                                reason == MG_REASON_CANNOT_TRIM);
        assert_false(pressure_stands_in(MG_REASON_NOT_ACTIVE));
        assert_string_equal(pressure_cause_to_string(MG_PRESSURE_OWN), "own");
        assert_string_equal(pressure_cause_to_string(MG_PRESSURE_BY_HAND), "by-hand");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(tokens),
                cmocka_unit_test(tokens_cut_anywhere),
                cmocka_unit_test(random_bytes),
                cmocka_unit_test(whose_token),
                cmocka_unit_test(who_is_let_in),
                cmocka_unit_test(which_units_are_told),
                cmocka_unit_test(which_clients_are_told),
                cmocka_unit_test(stands_in_for_an_agent),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
