/* SPDX-License-Identifier: MIT */
/* A history over a restart of the daemon: nothing lost, nothing twice, and hostile bytes. */
#include "core/history_image.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/macros.h"
#include "check.h"

#define SEC(n) ((uint64_t) (n) *MG_USEC_PER_SEC)
#define MIB(n) ((uint64_t) (n) *MG_MIB)

static struct mg_history history;
static struct mg_history_image image;

static int set_up(void **state) {
        history_init(&history);
        return 0;
}

static void add(uint64_t anon_bytes, uint64_t now_usec) {
        history_add(&history,
                    &(struct mg_history_sample){ anon_bytes, MIB(1), MG_UNKNOWN, MIB(64) },
                    now_usec);
}

static void trimmed(uint64_t before_bytes, uint64_t ended_usec) {
        history_trimmed(&history, &(struct mg_outcome){ .before_bytes = before_bytes,
                                                        .after_bytes = MIB(1),
                                                        .expected_bytes = MIB(2),
                                                        .ended_usec = ended_usec });
}

static uint64_t anon_at(enum mg_history_span span, size_t age) {
        struct mg_history_sample sample;
        uint64_t start_usec;

        return history_get(&history, span, age, &sample, &start_usec) ? sample.anon_bytes
                                                                      : MG_UNKNOWN;
}

static uint64_t before_of_trim(size_t age) {
        struct mg_history_trim trim;

        return history_get_trim(&history, age, &trim) ? trim.before_bytes : MG_UNKNOWN;
}

static void restart(void) {
        history_image_make(&history, &image);
        history_init(&history);
}

static int restore(uint64_t now_usec) {
        return history_image_restore(&image, sizeof(image), now_usec, &history);
}

static void empty(void **state) {
        restart();
        assert_int_equal(restore(SEC(1)), 0);
        assert_false(history.started);
        assert_int_equal(before_of_trim(0), MG_UNKNOWN);
}

/* The daemon was away for half a minute, and has been there for two samples and a trim since. */
static void what_is_new_goes_on_top(void **state) {
        for (uint64_t t = 0; t < 600; t += 5)
                add(MIB(100 + t), SEC(10000 + t));
        trimmed(MIB(7), SEC(10590));
        restart();
        add(MIB(50), SEC(10630));
        add(MIB(51), SEC(10635));
        trimmed(MIB(8), SEC(10636));
        assert_int_equal(restore(SEC(10637)), 0);

        assert_int_equal(anon_at(MG_HISTORY_RAW, 0), MIB(51));
        assert_int_equal(anon_at(MG_HISTORY_RAW, 1), MIB(50));
        for (size_t age = 2; age < 8; age++)
                assert_int_equal(anon_at(MG_HISTORY_RAW, age), MG_UNKNOWN);
        assert_int_equal(anon_at(MG_HISTORY_RAW, 8), MIB(695));
        assert_int_equal(anon_at(MG_HISTORY_RAW, 9), MIB(690));
        assert_int_equal(anon_at(MG_HISTORY_MINUTE, 0), MIB(50));
        assert_int_equal(anon_at(MG_HISTORY_MINUTE, 2), MIB(100 + 500));
        assert_int_equal(before_of_trim(0), MIB(8));
        assert_int_equal(before_of_trim(1), MIB(7));
        assert_int_equal(before_of_trim(2), MG_UNKNOWN);
}

/* Stopped and started within one step: its floor is that of both. */
static void within_one_step(void **state) {
        add(MIB(10), SEC(1000));
        restart();
        add(MIB(20), SEC(1004));
        assert_int_equal(restore(SEC(1004)), 0);
        assert_int_equal(anon_at(MG_HISTORY_RAW, 0), MIB(10));
        assert_int_equal(anon_at(MG_HISTORY_RAW, 1), MG_UNKNOWN);
}

static void trims_wrap(void **state) {
        for (uint64_t i = 0; i < MG_HISTORY_TRIMS; i++)
                trimmed(MIB(i), SEC(100 + i));
        restart();
        trimmed(MIB(1000), SEC(500));
        assert_int_equal(restore(SEC(501)), 0);
        assert_int_equal(history.n_rounds, MG_HISTORY_TRIMS + 1);
        assert_int_equal(before_of_trim(0), MIB(1000));
        assert_int_equal(before_of_trim(1), MIB(MG_HISTORY_TRIMS - 1));
        assert_int_equal(before_of_trim(MG_HISTORY_TRIMS - 1), MIB(1));
        assert_int_equal(before_of_trim(MG_HISTORY_TRIMS), MG_UNKNOWN);
}

static void expect_refused(int error) {
        struct mg_history before = history;

        assert_int_equal(restore(SEC(2000)), error);
        assert_memory_equal(&history, &before, sizeof(before));
}

static void sign(void) {
        image.checksum =
                        hash_add(MG_HASH_INIT, (const char *) &image,
                                 offsetof(struct mg_history_image, checksum));
}

static void hostile(void **state) {
        static char shifted[sizeof(image) + 1];
        struct mg_history_image good;

        add(MIB(10), SEC(1000));
        trimmed(MIB(7), SEC(1001));
        restart();
        good = image;
        for (size_t at = 0; at < sizeof(image); at += 7) {
                image = good;
                ((char *) &image)[at] ^= 0x10;
                expect_refused(at < sizeof(image.version) ? -EPROTONOSUPPORT : -EBADMSG);
        }
        for (size_t length = 0; length < sizeof(image); length += 61)
                assert_int_equal(
                                history_image_restore(&good, length, SEC(2000), &history),
                                -EBADMSG);

        /* Well signed, and yet. */
        image = good;
        image.history.rounds[0].reason = _MG_REASON_MAX;
        sign();
        expect_refused(-EBADMSG);
        image = good;
        image.history.rounds[0].result = _MG_OUTCOME_MAX;
        sign();
        expect_refused(-EBADMSG);
        image = good;
        image.history.latest[MG_HISTORY_MINUTE] = UINT64_MAX;
        sign();
        expect_refused(-ESTALE);

        /* At any address. */
        memcpy(shifted + 1, &good, sizeof(good));
        assert_int_equal(history_image_restore(shifted + 1, sizeof(good), SEC(2000), &history), 0);
        assert_int_equal(before_of_trim(0), MIB(7));
}

/* From before a reboot, had the boot's id not told. */
static void of_the_future(void **state) {
        add(MIB(10), SEC(3000));
        restart();
        expect_refused(-ESTALE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(empty, set_up),
                cmocka_unit_test_setup(what_is_new_goes_on_top, set_up),
                cmocka_unit_test_setup(within_one_step, set_up),
                cmocka_unit_test_setup(trims_wrap, set_up),
                cmocka_unit_test_setup(hostile, set_up),
                cmocka_unit_test_setup(of_the_future, set_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
