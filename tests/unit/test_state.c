/* SPDX-License-Identifier: MIT */
/* The learned state comes back as it was, or not at all. */
#include "core/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/parse.h"
#include "simulated_unit.h"

/* The holes that gdb shows with ptype/o struct mg_policy_state on a 64-bit machine. */
#define PADDING_BYTES 51

/* A unit with a past: trims, back-off, a verdict and full trends. */
static void live_a_while(struct sim_unit *u) {
        sim_init(u);
        u->config.max_pause_usec = SEC(1);
        for (uint64_t i = 0; i < 2500; i++) {
                u->live = MIB(100) + MIB(i % 97);
                u->soft = i % 3 ? MIB(i % 700) : u->soft;
                u->hard = MIB(i % 400);
                u->other = MIB(i % 31) + i / 12 * MG_MIB / 8;
                u->sample.memory.anon_thp_bytes = MIB(i % 50);
                u->sample.cpu_usage_usec = i * 1000;
                sim_tick(u);
        }
        policy_learn_statistics(&u->state, 12345, MIB(500));
        assert_true(u->n_trims > 2);
}

static size_t encode(const struct mg_policy_state *state, char *text) {
        size_t length;

        assert_int_equal(state_encode(state, HOUR(9), text, MG_STATE_TEXT_MAX, &length), 0);
        assert_int_equal(strlen(text), length);
        return length;
}

static void assert_same(const struct mg_policy_state *a, const struct mg_policy_state *b) {
        static char text_a[MG_STATE_TEXT_MAX];
        static char text_b[MG_STATE_TEXT_MAX];

        encode(a, text_a);
        encode(b, text_b);
        assert_string_equal(text_a, text_b);
        assert_int_equal(a->verdict.slope_known, b->verdict.slope_known);
        assert_memory_equal(&a->verdict.slope, &b->verdict.slope, sizeof(a->verdict.slope));
}

static void test_round_trip(void **state) {
        static char text[MG_STATE_TEXT_MAX];
        struct mg_policy_state back;
        struct mg_policy_state fresh;
        struct sim_unit u;
        size_t length;

        live_a_while(&u);
        length = encode(&u.state, text);
        memset(&back, 0xee, sizeof(back));
        assert_int_equal(state_decode(text, length, HOUR(9), &back), 0);
        assert_same(&u.state, &back);

        policy_init(&fresh);
        length = encode(&fresh, text);
        assert_int_equal(state_decode(text, length, HOUR(9), &back), 0);
        assert_same(&fresh, &back);
        assert_memory_equal(&fresh, &back, sizeof(back));
}

/*
 * Changes each byte of the state in turn: one that makes no difference to the text is padding, the slope (the floors
 * determine it), or a member that somebody forgot in the table. The number changes with the structure alone.
 */
static void test_no_member_is_forgotten(void **state) {
        static char before[MG_STATE_TEXT_MAX];
        static char after[MG_STATE_TEXT_MAX];
        const size_t slope_bytes = sizeof(struct mg_slope) + sizeof(bool);
        struct mg_policy_state changed;
        struct sim_unit u;
        size_t silent = 0;

        live_a_while(&u);
        encode(&u.state, before);
        for (size_t i = 0; i < sizeof(changed); i++) {
                size_t length;

                if (i >= offsetof(struct mg_policy_state, verdict.slope) &&
                    i < offsetof(struct mg_policy_state, verdict.slope) + slope_bytes)
                        continue;
                changed = u.state;
                /* The lowest bit is a change for numbers, enums and bools alike. */
                ((unsigned char *) &changed)[i] ^= 1;
                if (state_encode(&changed, HOUR(9), after, sizeof(after), &length) == 0 &&
                    strcmp(before, after) == 0)
                        silent++;
        }
        assert_int_equal(silent, PADDING_BYTES);
}

static void test_every_truncation(void **state) {
        static char text[MG_STATE_TEXT_MAX];
        struct mg_policy_state untouched;
        struct mg_policy_state back;
        struct sim_unit u;
        size_t length;

        live_a_while(&u);
        length = encode(&u.state, text);
        memset(&back, 0xee, sizeof(back));
        untouched = back;
        for (size_t cut = 0; cut < length; cut++)
                assert_true(state_decode(text, cut, HOUR(9), &back) < 0);
        text[length] = 'x';
        assert_int_equal(state_decode(text, length + 1, HOUR(9), &back), -EBADMSG);
        assert_memory_equal(&untouched, &back, sizeof(back));
}

static void test_every_changed_byte(void **state) {
        static char text[MG_STATE_TEXT_MAX];
        struct mg_policy_state untouched;
        struct mg_policy_state back;
        struct sim_unit u;
        size_t length;

        live_a_while(&u);
        length = encode(&u.state, text);
        memset(&back, 0xee, sizeof(back));
        untouched = back;
        for (size_t i = 0; i < length; i++) {
                char was = text[i];
                int r;

                text[i] = (char) (was ^ (1 + i % 250));
                r = state_decode(text, length, HOUR(9), &back);
                if (r != -EBADMSG && r != -EPROTONOSUPPORT)
                        fail_msg("byte %zu: %d", i, r);
                text[i] = was;
        }
        assert_memory_equal(&untouched, &back, sizeof(back));
        assert_int_equal(state_decode(text, length, HOUR(9), &back), 0);
}

/* Writes the right checksum under BODY, so that only what BODY says is judged. */
static int decode_signed(const char *body, struct mg_policy_state *back) {
        static char text[2 * MG_STATE_TEXT_MAX];
        uint64_t hash = UINT64_C(14695981039346656037);
        int length;

        for (const char *c = body; *c; c++)
                hash = (hash ^ (unsigned char) *c) * UINT64_C(1099511628211);
        length = snprintf(text, sizeof(text), "%sCHECKSUM=%ju\n", body, (uintmax_t) hash);
        assert_in_range(length, 1, sizeof(text) - 1);
        return state_decode(text, (size_t) length, HOUR(9), back);
}

/* BODY is an encoded state without its last line, in which the line of KEY becomes LINE. */
static void replace_line(const char *text, const char *key, const char *line, char *ret_body) {
        const char *at = strstr(text, key);
        const char *rest = strchr(at, '\n') + 1;

        sprintf(ret_body, "%.*s%s%s", (int) (at - text), text, line, rest);
        *strstr(ret_body, "CHECKSUM=") = '\0';
}

static void test_hostile_contents(void **state) {
        static char text[MG_STATE_TEXT_MAX];
        static char body[2 * MG_STATE_TEXT_MAX];
        static char long_trend[MG_STATE_TEXT_MAX] = "ANON=5 5";
        const struct {
                const char *key, *line;
                int want;
        } table[] = {
                { "TRIMS=", "TRIMS=7\n", 0 },
                { "TRIMS=", "", -EBADMSG },
                { "TRIMS=", "TRIMS=7\nTRIMS=7\n", -EBADMSG },
                { "TRIMS=", "TRIMS=7\nUNHEARD_OF=1\n", -EBADMSG },
                { "TRIMS=", "TRIMS\n", -EBADMSG },
                { "TRIMS=", "TRIMS=\n", -EBADMSG },
                { "TRIMS=", "\nTRIMS=7\n", -EBADMSG },
                { "TRIMS=", "TRIMS=-7\n", -EBADMSG },
                { "TRIMS=", "TRIMS=7 \n", -EBADMSG },
                { "TRIMS=", "TRIMS=7\r\n", -EBADMSG },
                { "TRIMS=", "TRIMS=-\n", 0 },
                { "TRIMS=", "TRIMS=18446744073709551614\n", 0 },
                { "TRIMS=", "TRIMS=18446744073709551615\n", -EBADMSG },
                { "TRIMS=", "TRIMS=18446744073709551616\n", -EBADMSG },
                { "PINNED=", "PINNED=2\n", -EBADMSG },
                { "PINNED=", "PINNED=-\n", -EBADMSG },
                { "VERDICT=", "VERDICT=10\n", 0 },
                { "VERDICT=", "VERDICT=11\n", -EBADMSG },
                { "BACKOFF_REASON=", "BACKOFF_REASON=1000\n", -EBADMSG },
                { "LAST_ASKED=", "LAST_ASKED=4294967295\n", 0 },
                { "LAST_ASKED=", "LAST_ASKED=4294967296\n", -EBADMSG },
                { "ANON=", "ANON=\n", 0 },
                { "ANON=", "ANON=5\n", -EBADMSG },
                { "ANON=", "ANON=5 6\n", 0 },
                { "ANON=", "ANON=5 6 \n", 0 },
                { "ANON=", "ANON=5  6\n", -EBADMSG },
                { "ANON=", "ANON=5 6 - 7\n", 0 },
                { "ANON=", "ANON=5 - 7\n", -EBADMSG },
                { "ANON=", "ANON=5 6 4294967295\n", -EBADMSG },
                { "ANON=", long_trend, -EBADMSG },
                { "SAVED_USEC=", "SAVED_USEC=32400000000\n", 0 },
                { "SAVED_USEC=", "SAVED_USEC=32400000001\n", -ESTALE },
                { "SAVED_USEC=", "", -EBADMSG },
                { "MEMGUARD_STATE=", "MEMGUARD_STATE=2\n", -EPROTONOSUPPORT },
                { "MEMGUARD_STATE=", "MEMGUARD_STATE=\n", -EPROTONOSUPPORT },
                { "MEMGUARD_STATE=", "MEMGUARD_COSTS=1\n", -EBADMSG },
                { "MEMGUARD_STATE=", "", -EBADMSG },
        };
        struct sim_unit u;

        for (int i = 0; i < 121; i++)
                strcat(long_trend, " 1");
        strcat(long_trend, "\n");
        live_a_while(&u);
        encode(&u.state, text);
        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct mg_policy_state back;
                char key[64];

                /* The first line has none before it; the others are found with theirs. */
                snprintf(key, sizeof(key), "%s", table[i].key);
                replace_line(text, key, table[i].line, body);
                if (decode_signed(body, &back) != table[i].want)
                        fail_msg("%s -> %s", key, table[i].line);
        }
}

static void test_never_more_than_promised(void **state) {
        static char text[MG_STATE_TEXT_MAX];
        struct mg_policy_state worst;
        char small[100];
        size_t length;

        /* The longest numbers everywhere. */
        memset(&worst, 0xfe, sizeof(worst));
        worst.stuck_pending = worst.regrowth_checked = worst.refill_checked = true;
        worst.breaker_open = worst.pinned = worst.refilled = worst.would_trim_counted = true;
        worst.last.sliced = worst.last.by_hand = true;
        for (int i = 0; i < 3; i++) {
                struct mg_trend *trend = i == 0   ? &worst.verdict.anon
                                         : i == 1 ? &worst.verdict.live
                                                  : &worst.verdict.other;

                trend->started = true;
                trend->count = MG_TREND_FLOORS_MAX;
                trend->head = 5;
        }
        assert_int_equal(state_encode(&worst, UINT64_MAX, text, sizeof(text), &length), 0);
        assert_int_equal(state_encode(&worst, 0, small, sizeof(small), &length), -EMSGSIZE);
        assert_int_equal(state_encode(&worst, 0, small, 0, &length), -EMSGSIZE);
}

static void test_garbage(void **state) {
        struct check_random random = check_seed(5);
        struct mg_policy_state back;
        char text[600];

        for (int i = 0; i < 20000; i++) {
                size_t length = check_below(&random, sizeof(text));

                for (size_t j = 0; j < length; j++)
                        text[j] = (char) check_next(&random);
                if (i % 2 && length > 20)
                        memcpy(text, "MEMGUARD_STATE=1\n", 17);
                assert_int_equal(state_decode(text, length, 0, &back), -EBADMSG);
        }
        assert_int_equal(state_decode("", 0, 0, &back), -EBADMSG);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_no_member_is_forgotten),
                cmocka_unit_test(test_every_truncation),
                cmocka_unit_test(test_every_changed_byte),
                cmocka_unit_test(test_hostile_contents),
                cmocka_unit_test(test_never_more_than_promised),
                cmocka_unit_test(test_garbage),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
