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
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/memory_stat.h"

#define TEXT_MAX 16384

static size_t load(const char *kernel, char text[static TEXT_MAX]) {
        char path[512];

        snprintf(path, sizeof(path), "%s/cgroup/%s/system.slice/nginx.service/memory.stat",
                 getenv("TEST_DATA"), kernel);
        ssize_t length = file_read_at(AT_FDCWD, path, text, TEXT_MAX);
        assert_true(length > 0);
        return (size_t) length;
}

static void parse(const char *text, struct memory_stat_layout *layout, struct mg_memory *memory) {
        memory_unknown(memory);
        memory_stat_parse(text, strlen(text), layout, memory);
}

/* One layout for all kernels: each text has to be noticed as another one, and the second time as the same. */
static void test_kernels(void **state) {
        struct memory_stat_layout layout = {};
        char text[TEXT_MAX];
        static const struct {
                const char *kernel;
                uint64_t kernel_bytes;
        } cases[] = { { "5.10", MG_UNKNOWN }, { "6.1", 5242880 }, { "6.12", 5242880 } };

        for (size_t i = 0; i < 3 * MG_ELEMENTS(cases); i++) {
                size_t kernel = i / 2 % MG_ELEMENTS(cases);
                struct mg_memory memory;

                load(cases[kernel].kernel, text);
                parse(text, &layout, &memory);
                assert_true(layout.n_lines > 0);
                assert_int_equal(memory.anon_bytes, 536870912);
                assert_int_equal(memory.file_bytes, 20480000);
                assert_int_equal(memory.shmem_bytes, 1048576);
                assert_int_equal(memory.kernel_bytes, cases[kernel].kernel_bytes);
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

/* What a layout has to notice: a text that ends anywhere, or has any byte changed. */
static void test_layout_does_not_fit(void **state) {
        static const char bytes[] = { '\0', '\n', ' ', '0', 'x' };
        char text[TEXT_MAX];
        size_t length = load("6.12", text);

        for (size_t at = 0; at < length; at++)
                for (size_t i = 0; i < MG_ELEMENTS(bytes); i++) {
                        struct memory_stat_layout fresh = {}, learned = {};
                        struct mg_memory expected, memory;
                        char was = text[at];

                        parse(text, &learned, &memory);
                        text[at] = bytes[i];
                        parse(text, &fresh, &expected);
                        parse(text, &learned, &memory);
                        if (memcmp(&memory, &expected, sizeof(memory)) != 0)
                                fail_msg("byte %zu as 0x%02x", at, bytes[i]);
                        text[at] = was;
                }
}

static void test_line_numbers_change(void **state) {
        struct memory_stat_layout layout = {};
        struct mg_memory memory;

        parse("anon 1\nfile 2\n", &layout, &memory);
        assert_int_equal(layout.n_lines, 2);
        parse("anon 3\nfile 4\nkernel 5\n", &layout, &memory);
        assert_int_equal(memory.kernel_bytes, 5);
        parse("zero 0\nanon 6\nfile 7\nkernel 8\n", &layout, &memory);
        assert_int_equal(memory.anon_bytes, 6);
        assert_int_equal(memory.kernel_bytes, 8);
        parse("zero 0\nanon 9\n", &layout, &memory);
        assert_int_equal(memory.anon_bytes, 9);
        assert_int_equal(memory.file_bytes, MG_UNKNOWN);
}

/* More lines than a layout can hold, and keys longer than it can: read all the same, each time. */
static void test_layout_too_large(void **state) {
        char text[TEXT_MAX] = "", *at = text;
        struct memory_stat_layout layout = {};
        struct mg_memory memory;

        for (int i = 0; i < 2 * MG_STAT_LINES_MAX; i++)
                at += sprintf(at, "line_%d %d\n", i, i);
        sprintf(at, "%0300d 1\nanon 5\n", 0);
        for (int i = 0; i < 2; i++) {
                parse(text, &layout, &memory);
                assert_int_equal(memory.anon_bytes, 5);
                assert_int_equal(layout.n_lines, 0);
        }
}

static void test_hostile_stat(void **state) {
        struct memory_stat_layout layout = {};
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
                { "anon 1\nanon 3\n", 1, MG_UNKNOWN },
                { "file 2\nanon max\n", 7, 2 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct mg_memory memory;

                memory_unknown(&memory);
                memory.anon_bytes = 7;
                memory_stat_parse(cases[i].text, strlen(cases[i].text), &layout, &memory);
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
                cmocka_unit_test(test_layout_does_not_fit),
                cmocka_unit_test(test_line_numbers_change),
                cmocka_unit_test(test_layout_too_large),
                cmocka_unit_test(test_hostile_stat),
                cmocka_unit_test(test_value),
                cmocka_unit_test(test_flat_keyed),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
