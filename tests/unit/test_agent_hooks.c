/* SPDX-License-Identifier: MIT */
/* Caches, checkpoints and suspensions; the duty limit of looks; the waiting times of a client. */
#include "check.h"

#include <errno.h>
#include <string.h>

#include "agent/client.h"
#include "agent/hooks.h"
#include "agent/look.h"
#include "base/macros.h"

static struct memguard_cache *cache[MEMGUARD_CACHES_MAX + 1];

static uint64_t count(void *userdata) {
        return *(uint64_t *) userdata;
}

static uint64_t shrink(uint64_t goal_bytes, void *userdata) {
        uint64_t *bytes = userdata, freed = goal_bytes == 0 ? *bytes : MG_MIN(goal_bytes, *bytes);
        *bytes -= freed;
        return freed;
}

static uint64_t count_caches(void) {
        uint64_t n, bytes;

        hooks_count_caches(&n, &bytes);
        return n;
}

static uint64_t leave(void *userdata) {
        assert_true(hooks_is_in_callback());
        assert_int_equal(hooks_unregister_cache(cache[0]), 0);
        return 1;
}

static void test_caches(void **state) {
        uint64_t first = 1000, second = 500, n, bytes;

        assert_int_equal(hooks_register_cache(NULL, count, NULL, &first, &cache[0]), -EINVAL);
        assert_int_equal(hooks_register_cache("", count, NULL, &first, &cache[0]), -EINVAL);
        assert_int_equal(hooks_register_cache("a", NULL, NULL, &first, &cache[0]), -EINVAL);
        assert_int_equal(hooks_register_cache("a", count, NULL, &first, NULL), -EINVAL);
        assert_int_equal(count_caches(), 0);
        assert_int_equal(hooks_register_cache("a", count, shrink, &first, &cache[0]), 0);
        assert_int_equal(hooks_register_cache("b", count, NULL, &second, &cache[1]), 0);
        hooks_count_caches(&n, &bytes);
        assert_int_equal(n, 2);
        assert_int_equal(bytes, 1500);
        assert_int_equal(hooks_shrink_caches(300), 300);
        assert_int_equal(hooks_shrink_caches(0), 700);
        assert_int_equal(first, 0);
        assert_int_equal(second, 500);
        second = UINT64_MAX; /* a callback that lies */
        hooks_count_caches(&n, &bytes);
        assert_int_equal(bytes, MG_UNKNOWN - 1);
        assert_int_equal(hooks_unregister_cache(cache[0]), 0);
        assert_int_equal(hooks_unregister_cache(cache[0]), 0);
        assert_int_equal(hooks_unregister_cache(cache[1]), 0);
        assert_int_equal(hooks_unregister_cache(NULL), 0);
        assert_int_equal(count_caches(), 0);
}

static void test_cache_leaves_in_callback(void **state) {
        uint64_t n, bytes;

        assert_int_equal(hooks_register_cache("a", leave, NULL, NULL, &cache[0]), 0);
        hooks_count_caches(&n, &bytes);
        assert_int_equal(n, 1);
        assert_int_equal(count_caches(), 0);
        assert_false(hooks_is_in_callback());
}

static void test_too_many_caches(void **state) {
        uint64_t bytes = 1;
        static const char long_name[] =
                        "0123456789012345678901234567890123456789012345678901234567890123456789";

        for (int i = 0; i < MEMGUARD_CACHES_MAX; i++)
                assert_int_equal(
                                hooks_register_cache(long_name, count, NULL, &bytes, &cache[i]), 0);
        assert_int_equal(hooks_register_cache("x", count, NULL, &bytes, &cache[32]), -ENOSPC);
        hooks_unregister_cache(cache[5]);
        assert_int_equal(hooks_register_cache("x", count, NULL, &bytes, &cache[5]), 0);
        for (int i = 0; i < MEMGUARD_CACHES_MAX; i++)
                hooks_unregister_cache(cache[i]);
}

static void test_suspend(void **state) {
        struct mg_event event;

        assert_int_equal(hooks_resume(NULL), -EINVAL);
        assert_int_equal(hooks_suspend(NULL), -EINVAL);
        assert_int_equal(hooks_suspend(""), -EINVAL);
        assert_int_equal(hooks_suspend("backup"), 1);
        assert_int_equal(hooks_suspend("inner"), 2);
        assert_int_equal(hooks_suspended(), 2);
        assert_int_equal(hooks_resume("inner"), 1);
        assert_int_equal(hooks_resume(NULL), 0);
        /* Only the outermost pair is news. */
        assert_true(hooks_take_event(&event));
        assert_int_equal(event.verb, MG_VERB_SUSPEND);
        assert_string_equal(event.text, "backup");
        assert_int_equal(event.suspended, 1);
        assert_true(hooks_take_event(&event));
        assert_int_equal(event.verb, MG_VERB_RESUME);
        assert_int_equal(event.suspended, 0);
        assert_false(hooks_take_event(&event));
}

static unsigned woken;

static void count_wake(void) {
        woken++;
}

static void test_checkpoints(void **state) {
        struct mg_event event;
        char cut[100];

        hooks_set_wake(count_wake);
        assert_int_equal(hooks_checkpoint(NULL), -EINVAL);
        assert_int_equal(hooks_checkpoint(""), -EINVAL);
        for (int i = 0; i < 100; i++)
                assert_int_equal(hooks_checkpoint(i % 2 ? "sweep" : "load"), 0);
        assert_int_equal(woken, 100);
        int n = 0;
        for (; hooks_take_event(&event); n++)
                assert_string_equal(event.text, n % 2 ? "sweep" : "load");
        assert_true(n >= 2 && n < 100);
        /* Cut at 63 bytes, which is in the middle of a character: the whole character goes. */
        memset(cut, 'x', sizeof(cut));
        memcpy(cut + 62, "\xc3\xa4", 2);
        cut[99] = '\0';
        hooks_checkpoint(cut);
        assert_true(hooks_take_event(&event));
        assert_int_equal(strlen(event.text), 62);
        hooks_checkpoint("dropped");
        hooks_drop_events();
        assert_false(hooks_has_event());
        hooks_set_wake(NULL);
}

static void test_look_refusal(void **state) {
        struct mg_look look;

        look_init(&look);
        assert_non_null(look_refusal(&look, MG_MIB, 0, MG_UNKNOWN));
        look.cost_usec = 1000;
        look.cost_bytes = 100 * MG_MIB;
        look.started_at_usec = 1000000;
        /* 1 ms at 0.2 % is once in half a second. */
        assert_non_null(look_refusal(&look, 100 * MG_MIB, 1499999, MG_UNKNOWN));
        assert_null(look_refusal(&look, 100 * MG_MIB, 1500000, MG_UNKNOWN));
        assert_null(look_refusal(&look, 100 * MG_MIB, 1500000, 1000));
        assert_non_null(look_refusal(&look, 100 * MG_MIB, 1500000, 999));
        /* Grown tenfold, the prediction has; fallen, it has not. */
        assert_non_null(look_refusal(&look, 1000 * MG_MIB, 1500000, 9999));
        assert_null(look_refusal(&look, 1000 * MG_MIB, 1500000, 10000));
        assert_non_null(look_refusal(&look, 1, 1500000, 999));
        assert_non_null(look_refusal(&look, MG_UNKNOWN, 1500000, 50000));
        assert_non_null(look_refusal(&look, 1, 0, MG_UNKNOWN));
}

static void test_backoff(void **state) {
        uint64_t backoff = MG_USEC_PER_SEC, random = 0, sum = 0;

        for (int i = 0; i < 100; i++) {
                uint64_t before = backoff, wait = client_next_backoff(&backoff, &random);
                assert_true(wait >= before / 2 && wait <= before);
                assert_true(backoff == before * 2 || backoff == MG_USEC_PER_MIN);
                sum += wait;
        }
        assert_int_equal(backoff, MG_USEC_PER_MIN);
        /* The random part is there: a hundred waits do not all have the same end. */
        assert_true(sum > 100 * 30 * MG_USEC_PER_SEC && sum < 100 * 58 * MG_USEC_PER_SEC);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_caches),
                cmocka_unit_test(test_cache_leaves_in_callback),
                cmocka_unit_test(test_too_many_caches),
                cmocka_unit_test(test_suspend),
                cmocka_unit_test(test_checkpoints),
                cmocka_unit_test(test_look_refusal),
                cmocka_unit_test(test_backoff),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
