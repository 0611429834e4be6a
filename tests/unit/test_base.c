/* SPDX-License-Identifier: MIT */
/* The small rest of base: saturating arithmetic, ownership, the list, the duty limit. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/duty.h"
#include "base/list.h"
#include "base/macros.h"

static void test_arithmetic_saturates(void **state) {
        const uint64_t top = MG_UNKNOWN - 1; /* the largest known number */

        assert_int_equal(mg_sub_floor(5, 3), 2);
        assert_int_equal(mg_sub_floor(3, 5), 0);
        assert_int_equal(mg_sub_floor(0, top), 0);
        assert_int_equal(mg_add_cap(2, 3), 5);
        assert_int_equal(mg_add_cap(top, 0), top);
        assert_int_equal(mg_add_cap(top, 1), top);
        assert_int_equal(mg_add_cap(top, top), top);
        assert_int_equal(mg_scale(7, 3, 2), 10);
        assert_int_equal(mg_scale(0, top, 1), 0);
        assert_int_equal(mg_scale(top, top, top), top);
        assert_int_equal(mg_scale(top, 3, 4), UINT64_C(13835058055282163710));
        assert_int_equal(mg_scale(top, 2, 1), top);
        assert_int_equal(mg_scale(MG_UNKNOWN, MG_UNKNOWN, 1), top);
}

struct thing {
        struct mg_list by_age;
        int age;
        int freed;
};

static struct thing *thing_free(struct thing *thing) {
        thing->freed++;
        return NULL;
}
MG_DEFINE_CLEANUP(struct thing *, thing_free)

static struct thing *hand_on(struct thing *thing) {
        MG_CLEANUP(thing_freep) struct thing *owned = thing;
        return MG_TAKE(owned);
}

static void test_ownership(void **state) {
        struct thing thing = {};
        int fd = 7;

        assert_ptr_equal(hand_on(&thing), &thing);
        assert_int_equal(thing.freed, 0);
        {
                MG_CLEANUP(thing_freep) struct thing *owned = &thing;
                MG_CLEANUP(thing_freep) struct thing *nothing = NULL;
        }
        assert_int_equal(thing.freed, 1);
        assert_int_equal(MG_TAKE_FD(fd), 7);
        assert_int_equal(fd, -EBADF);
}

static struct thing *thing_of(struct mg_list *entry) {
        return MG_CONTAINER_OF(entry, struct thing, by_age);
}

static int sum_of_ages(struct mg_list *head) {
        int place = 1, sum = 0;

        MG_LIST_FOREACH(entry, head)
                sum += place++ * thing_of(entry)->age;
        return sum;
}

static void test_list(void **state) {
        struct mg_list head = MG_LIST_INIT(head);
        struct thing things[4] = { { .age = 1 }, { .age = 10 }, { .age = 100 }, { .age = 1000 } };

        assert_true(list_is_empty(&head));
        for (size_t i = 0; i < MG_ELEMENTS(things); i++)
                list_append(&head, &things[i].by_age);
        assert_int_equal(sum_of_ages(&head), 1 + 20 + 300 + 4000);
        list_remove(&things[1].by_age);
        list_remove(&things[1].by_age); /* out already: harmless */
        assert_int_equal(sum_of_ages(&head), 1 + 200 + 3000);
        list_append(&head, &things[1].by_age);
        assert_int_equal(sum_of_ages(&head), 1 + 200 + 3000 + 40);
        MG_LIST_FOREACH_SAFE(entry, &head)
                list_remove(entry);
        assert_true(list_is_empty(&head));
        list_init(&head);
        assert_true(list_is_empty(&head));
}

static void test_duty_interval(void **state) {
        /* 0.2 % of wall time: five hundred times the cost. */
        assert_int_equal(duty_interval_usec(0), 0);
        assert_int_equal(duty_interval_usec(1), 500);
        assert_int_equal(duty_interval_usec(230000), 115 * MG_USEC_PER_SEC);
        assert_int_equal(duty_interval_usec(MG_UNKNOWN - 1), MG_UNKNOWN - 1);
}

static void test_duty_prediction(void **state) {
        static const struct {
                uint64_t cost, then, now, predicted;
        } cases[] = {
                { 100, MG_GIB, MG_GIB, 100 },
                { 100, MG_GIB, 2 * MG_GIB, 200 },
                { 100, MG_GIB, MG_GIB / 2,
                  100 }, /* never down: the chunks may all still be there */
                { 100, MG_GIB, 0, 100 },
                { 100, 0, MG_GIB, 3200 }, /* measured on next to nothing: on the grain */
                { 20, 140 * MG_KIB, MG_GIB, 640 },
                { 100, MG_DUTY_GRAIN_BYTES, 2 * MG_DUTY_GRAIN_BYTES, 200 },
                { 0, MG_GIB, 2 * MG_GIB, 0 },
                { 1 << 30, 1, MG_UNKNOWN - 1, MG_UNKNOWN - 1 },
        };
        for (size_t i = 0; i < MG_ELEMENTS(cases); i++)
                assert_int_equal(
                                duty_predict_usec(cases[i].cost, cases[i].then, cases[i].now),
                                cases[i].predicted);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_arithmetic_saturates),
                cmocka_unit_test(test_ownership),
                cmocka_unit_test(test_list),
                cmocka_unit_test(test_duty_interval),
                cmocka_unit_test(test_duty_prediction),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
