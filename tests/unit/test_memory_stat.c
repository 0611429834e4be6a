/* SPDX-License-Identifier: MIT */
/* memory.stat and its neighbours, as three kernels write them and as no kernel should. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/memory_stat.h"

static void load(const char *kernel, struct mg_memory *memory) {
        char path[512], text[16384];

        snprintf(path, sizeof(path), "%s/cgroup/%s/system.slice/nginx.service/memory.stat",
                 getenv("TEST_DATA"), kernel);
        assert_true(file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0);
        memory_unknown(memory);
        memory_stat_parse(text, memory);
}

static void test_kernels(void **state) {
        static const struct {
                const char *kernel;
                uint64_t kernel_bytes;
        } cases[] = { { "5.10", MG_UNKNOWN }, { "6.1", 5242880 }, { "6.12", 5242880 } };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct mg_memory memory;

                load(cases[i].kernel, &memory);
                assert_int_equal(memory.anon_bytes, 536870912);
                assert_int_equal(memory.file_bytes, 20480000);
                assert_int_equal(memory.shmem_bytes, 1048576);
                assert_int_equal(memory.kernel_bytes, cases[i].kernel_bytes);
                assert_int_equal(memory.slab_reclaimable_bytes, 2473984);
                assert_int_equal(memory.active_anon_bytes, 1290240);
                assert_int_equal(memory.inactive_anon_bytes, 530579456);
                assert_int_equal(memory.unevictable_bytes, 0);
                assert_int_equal(memory.anon_thp_bytes, 33554432);
                assert_int_equal(memory.pgscan, 4096);
                assert_int_equal(memory.pgsteal, 3900);
                /* Not in memory.stat: left as they were. */
                assert_int_equal(memory.swap_bytes, MG_UNKNOWN);
                assert_int_equal(memory.current_bytes, MG_UNKNOWN);
        }
}

static void test_hostile_stat(void **state) {
        static const struct {
                const char *text;
                uint64_t anon, file;
        } cases[] = {
                { "", 7, MG_UNKNOWN },
                { "\n\n\n", 7, MG_UNKNOWN },
                { "anon", 7, MG_UNKNOWN },
                { "anon ", 7, MG_UNKNOWN },
                { "anon 1", 1, MG_UNKNOWN }, /* no final newline */
                { "anon 1\nfile", 1, MG_UNKNOWN },
                { "anon 1\nfile 2", 1, 2 },
                { "anon 1\r\nfile 2\n", 7, 2 },
                { "anon -1\nfile 2\n", 7, 2 },
                { "anon 0x10\nfile 2\n", 7, 2 },
                { "anon  1\nfile 2\n", 7, 2 }, /* two blanks */
                { "anon 1 \nfile 2\n", 7, 2 },
                { " anon 1\nfile 2\n", 7, 2 },
                { "anon\t1\nfile 2\n", 7, 2 },
                { "anon 18446744073709551616\nfile 2\n", 7, 2 }, /* 2^64 */
                { "anon 18446744073709551614\nfile 2\n", UINT64_MAX - 1, 2 },
                { "anonymous 9\nano 8\nanon_thp 5\nfile 2\n", 7, 2 },
                { "anon 1\nanon 3\n", 3, MG_UNKNOWN },
                { "file 2\nanon max\n", 7, 2 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct mg_memory memory;

                memory_unknown(&memory);
                memory.anon_bytes = 7;
                memory_stat_parse(cases[i].text, &memory);
                if (memory.anon_bytes != cases[i].anon || memory.file_bytes != cases[i].file)
                        fail_msg("case %zu: \"%s\"", i, cases[i].text);
        }
}

static void test_value(void **state) {
        static const struct {
                const char *text;
                int result;
                uint64_t value;
        } cases[] = {
                { "0\n", 0, 0 },
                { "4096\n", 0, 4096 },
                { "4096", 0, 4096 },
                { "max\n", 0, MG_UNKNOWN },
                { "max", 0, MG_UNKNOWN },
                { "18446744073709551615\n", 0, UINT64_MAX },
                { "18446744073709551616\n", -EINVAL, 5 },
                { "", -EINVAL, 5 },
                { "\n", -EINVAL, 5 },
                { "maximum\n", -EINVAL, 5 },
                { "ma", -EINVAL, 5 },
                { "4096\r\n", -EINVAL, 5 },
                { "4096\n4097\n", -EINVAL, 5 },
                { "max\n1\n", -EINVAL, 5 },
                { "-1\n", -EINVAL, 5 },
                { "4K\n", -EINVAL, 5 },
                { " 4096\n", -EINVAL, 5 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                uint64_t value = 5;
                int r = memory_value_parse(cases[i].text, &value);
                if (r != cases[i].result || value != cases[i].value)
                        fail_msg("case %zu: \"%s\"", i, cases[i].text);
        }
}

static void test_flat_keyed(void **state) {
        static const char text[] = "low 0\nhigh 17\nhigher 3\nmax x\nbad\noom 4";

        assert_int_equal(flat_keyed_find(text, "low"), 0);
        assert_int_equal(flat_keyed_find(text, "high"), 17);
        assert_int_equal(flat_keyed_find(text, "hig"), MG_UNKNOWN);
        assert_int_equal(flat_keyed_find(text, "higher"), 3);
        assert_int_equal(flat_keyed_find(text, "max"), MG_UNKNOWN);
        assert_int_equal(flat_keyed_find(text, "bad"), MG_UNKNOWN);
        assert_int_equal(flat_keyed_find(text, ""), MG_UNKNOWN);
        assert_int_equal(flat_keyed_find(text, "oom"), 4);
        assert_int_equal(flat_keyed_find("", "oom"), MG_UNKNOWN);
        assert_int_equal(flat_keyed_find("oom 1\nnot the same line\nlow 2", "low"), 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kernels),
                cmocka_unit_test(test_hostile_stat),
                cmocka_unit_test(test_value),
                cmocka_unit_test(test_flat_keyed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
