/* SPDX-License-Identifier: MIT */
/* maps: arenas by their shape, allocators by their libraries. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "child.h"
#include "host/allocator.h"
#include "host/maps.h"

#define BIT(allocator) (UINT32_C(1) << MG_ALLOCATOR_##allocator)
#define HEAP           "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 "
#define REST           "7f0000021000-7f0004000000 ---p 00000000 00:00 0 "

static void test_lines(void **state) {
        static const struct {
                const char *lines[4];
                uint32_t heaps;
                uint32_t allocators;
                bool preload, agent;
        } cases[] = {
                { { HEAP, REST }, 1, 0, false, false },
                { { HEAP, REST, "7f0004000000-7f0004021000 rw-p 00000000 00:00 0",
                    "7f0004021000-7f0008000000 ---p 00000000 00:00 0" },
                  2,
                  0,
                  false,
                  false },
                /* the reserved rest may have grown together with a stack's guard */
                { { HEAP, "7f0000021000-7f0004001000 ---p 00000000 00:00 0" }, 1, 0, false, false },
                { { HEAP, "7f0000021000-7f0003fff000 ---p 00000000 00:00 0" }, 0, 0, false, false },
                { { HEAP, "7f0000022000-7f0004000000 ---p 00000000 00:00 0" }, 0, 0, false, false },
                { { HEAP }, 0, 0, false, false },
                { { REST }, 0, 0, false, false },
                { { HEAP, "7f0000021000-7f0004000000 ---p 00000000 08:01 77 /x" },
                  0,
                  0,
                  false,
                  false },
                { { HEAP, "nonsense", REST }, 0, 0, false, false },
                { { "7f0000001000-7f0000021000 rw-p 00000000 00:00 0", REST }, 0, 0, false, false },
                { { "7f0000000000-7f0000021000 rw-p 00000000 00:00 0 [heap]", REST },
                  0,
                  0,
                  false,
                  false },
                { { "1000-2000 r-xp 00000000 08:01 77   /usr/lib/x86_64-linux-gnu/libc.so.6",
                    "2000-3000 r--p 00000000 08:01 78   /usr/lib/libjemalloc.so.2 (deleted)" },
                  0,
                  BIT(GLIBC) | BIT(JEMALLOC),
                  false,
                  false },
                { { "1000-2000 r-xp 00000000 08:01 77   /usr/lib/memguard/libmemguard-preload.so" },
                  0,
                  0,
                  true,
                  true },
                { { "1000-2000 r-xp 00000000 08:01 77   /a b/libmemguard.so.0.1.0" },
                  0,
                  0,
                  false,
                  true },
                { { "1000-2000 r-xp 00000000 08:01 77   /libmemguard-preload.so.d/x" },
                  0,
                  0,
                  false,
                  false },
                { { "1000-2000 rw-p 00000000 00:00 0    [anon:libmemguard-preload.so]" },
                  0,
                  0,
                  false,
                  false },
                /* nothing that the kernel writes */
                { { "", "-", "1000-", "1000-2000" }, 0, 0, false, false },
                { { "2000-1000 rw-p 00000000 00:00 0", "1000-2000 rw", "x-y rw-p 0 0 0",
                    "1000-2000 rw-p" },
                  0,
                  0,
                  false,
                  false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct mg_maps_parser parser = {};

                for (size_t line = 0; line < 4 && cases[i].lines[line]; line++)
                        maps_parse_line(&parser, cases[i].lines[line]);
                if (parser.maps.arena_heaps != cases[i].heaps ||
                    parser.maps.allocators != cases[i].allocators ||
                    parser.maps.has_preload != cases[i].preload ||
                    parser.maps.has_agent != cases[i].agent)
                        fail_msg("case %zu", i);
        }
}

static void test_processes(void **state) {
        static const char *const four[] = { "4", NULL };
        const char *const environment[] = { "MALLOC_ARENA_MAX=64", NULL };
        struct mg_maps maps;

        struct child child = child_start("arenas", four, environment);
        assert_int_equal(maps_read("/proc", child.pid, &maps), 0);
        assert_int_equal(maps.allocators, BIT(GLIBC));
        assert_int_equal(maps.arena_heaps, sizeof(void *) == 8 ? 4 : 0);
        assert_false(maps.has_agent);
        pid_t pid = child.pid;
        child_stop(&child);
        assert_int_equal(maps_read("/proc", pid, &maps), -ESRCH);

        child = child_start("sleeper", NULL, NULL);
        assert_int_equal(maps_read("/proc", child.pid, &maps), 0);
        assert_int_equal(maps.arena_heaps, 0);
        child_stop(&child);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_processes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
