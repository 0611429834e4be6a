/* SPDX-License-Identifier: MIT */
/* What is read out of an allocator's options for advice. */
#include "check.h"

#include "daemon/advice.h"

static void is_tuned(void **state) {
        static const struct {
                enum mg_advice_allocator allocator;
                const char *options;
                bool tuned;
        } rows[] = {
                { MG_ALLOCATOR_GLIBC, NULL, false },
                { MG_ALLOCATOR_GLIBC, "", false },
                { MG_ALLOCATOR_GLIBC, "arena_max:2", true },
                { MG_ALLOCATOR_GLIBC, "mmap_threshold:131072 top_pad:0", true },
                { MG_ALLOCATOR_GLIBC, "tunables:glibc.malloc.arena_max=2", true },
                { MG_ALLOCATOR_GLIBC, "tunables:glibc.cpu.hwcaps=-AVX2_Usable", false },
                { MG_ALLOCATOR_GLIBC,
                  "tunables:glibc.cpu.hwcaps=-AVX2_Usable:glibc.malloc.trim_threshold=1", true },
                { MG_ALLOCATOR_GLIBC, "trim_threshold:1 tunables:glibc.cpu.x=1", true },
                /* Hostile. */
                { MG_ALLOCATOR_GLIBC, "tunables:", false },
                { MG_ALLOCATOR_GLIBC, "tunables", true },
                /* jemalloc's are what is in effect, not what was asked for. */
                { MG_ALLOCATOR_JEMALLOC, "arenas:8 background_thread:false", false },
                { MG_ALLOCATOR_OTHER, "arena_max:2", false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++)
                assert_int_equal(
                                advice_is_tuned(rows[i].allocator, rows[i].options), rows[i].tuned);
}

static void has_background_thread(void **state) {
        static const struct {
                const char *options;
                bool on;
        } rows[] = {
                { NULL, false },
                { "", false },
                { "background_thread:true", true },
                { "arenas:8 background_thread:true dirty_decay_ms:10000", true },
                { "arenas:8,background_thread:true,narenas:4", true },
                { "arenas:8 background_thread:false", false },
                /* Hostile. */
                { "background_thread:", false },
                { "background_thread:true1", false },
                { "no_background_thread:true", false },
                { "no_background_thread:true background_thread:true", true },
                { "background_thread:truebackground_thread:true", false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++)
                assert_int_equal(advice_has_background_thread(rows[i].options), rows[i].on);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(is_tuned),
                cmocka_unit_test(has_background_thread),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
