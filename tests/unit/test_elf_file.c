/* SPDX-License-Identifier: MIT */
/* ELF files: real programs of each kind, and images that lie. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/macros.h"
#include "child.h"
#include "host/allocator.h"
#include "host/elf_file.h"
#include "skip.h"

#define BIT(allocator) (UINT32_C(1) << MG_ALLOCATOR_##allocator)

static void test_programs(void **state) {
        static const struct {
                const char *program;
                bool is_program, is_static;
                enum mg_libc libc;
                uint32_t allocators;
        } cases[] = {
                { "sleeper", true, false, MG_LIBC_GLIBC, 0 },
                { "sleeper-no-pie", true, false, MG_LIBC_GLIBC, 0 },
                { "sleeper-static", true, true, MG_LIBC_NONE, BIT(GLIBC) },
                { "embedded", true, false, MG_LIBC_GLIBC, BIT(JEMALLOC) },
                { "libmemguard-preload.so", false, false, MG_LIBC_NONE, 0 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                MG_CLEANUP(elf_freep) struct mg_elf *elf = NULL;
                struct mg_elf_allocators allocators;
                struct mg_elf_facts facts;

                assert_int_equal(elf_open(child_path(cases[i].program), &elf), 0);
                assert_int_equal(elf_facts(elf, &facts), 0);
                assert_true(facts.is_native);
                assert_int_equal(facts.is_64bit, sizeof(void *) == 8);
                assert_int_equal(facts.is_program, cases[i].is_program);
                assert_int_equal(facts.is_static, cases[i].is_static);
                assert_int_equal(facts.libc, cases[i].libc);
                assert_int_equal(facts.interpreter[0], cases[i].libc == MG_LIBC_NONE ? 0 : '/');
                assert_int_equal(elf_find_allocators(elf, &allocators), 0);
                assert_int_equal(allocators.mask, cases[i].allocators);
                if (cases[i].allocators & BIT(JEMALLOC))
                        assert_string_equal(allocators.jemalloc_prefix, "_rjem_");
        }
}

static void test_musl(void **state) {
        MG_CLEANUP(elf_freep) struct mg_elf *elf = NULL;
        struct mg_elf_facts facts;

        if (elf_open(child_path("sleeper-musl"), &elf) == -ENOENT)
                skip_because("no musl-gcc on this machine: install the package musl-tools");
        assert_non_null(elf);
        assert_int_equal(elf_facts(elf, &facts), 0);
        assert_int_equal(facts.libc, MG_LIBC_MUSL);
        assert_false(facts.is_static);
}

static int collect(void *userdata, const char *library) {
        char *list = userdata;
        strcat(strcat(list, library), " ");
        return mg_streq(library, "stop") ? 5 : 0;
}

static int stop_at_once(void *userdata, const char *library) {
        return 5;
}

static void test_needed(void **state) {
        MG_CLEANUP(elf_freep) struct mg_elf *elf = NULL, *fixed = NULL;
        char list[256] = "";

        assert_int_equal(elf_open(child_path("sleeper"), &elf), 0);
        assert_int_equal(elf_each_needed(elf, collect, list), 0);
        assert_non_null(strstr(list, "libc.so"));
        assert_int_equal(elf_each_needed(elf, stop_at_once, NULL), 5);
        list[0] = '\0';
        assert_int_equal(elf_open(child_path("sleeper-static"), &fixed), 0);
        assert_int_equal(elf_each_needed(fixed, collect, list), 0);
        assert_string_equal(list, "");
}

static void test_no_elf(void **state) {
        struct mg_elf *elf = NULL;
        char text[] = "#!/bin/sh\n", magic[] = "\177ELF";

        assert_int_equal(elf_open("/nowhere", &elf), -ENOENT);
        assert_int_equal(elf_open("/", &elf), -ENOEXEC);
        assert_int_equal(elf_open("/dev/null", &elf), -ENOEXEC);
        assert_int_equal(elf_open("/proc/self/status", &elf), -ENOEXEC);
        assert_int_equal(elf_open_memory(text, sizeof(text) - 1, &elf), -ENOEXEC);
        assert_int_equal(elf_open_memory(magic, sizeof(magic) - 1, &elf), -ENOEXEC);
        assert_null(elf);
}

/* The whole of this test's embedded program, to be damaged. */
static char *load(size_t *ret_size) {
        FILE *file = fopen(child_path("embedded"), "r");
        assert_non_null(file);
        assert_int_equal(fseek(file, 0, SEEK_END), 0);
        *ret_size = (size_t) ftell(file);
        rewind(file);
        char *image = malloc(*ret_size);
        assert_non_null(image);
        assert_int_equal(fread(image, 1, *ret_size, file), *ret_size);
        fclose(file);
        return image;
}

static void look(char *image, size_t size) {
        MG_CLEANUP(elf_freep) struct mg_elf *elf = NULL;
        struct mg_elf_allocators allocators;
        struct mg_elf_facts facts;
        char list[8192] = "";

        if (elf_open_memory(image, size, &elf) < 0)
                return;
        if (elf_facts(elf, &facts) == 0)
                assert_true(strlen(facts.interpreter) < sizeof(facts.interpreter));
        (void) elf_each_needed(elf, stop_at_once, list);
        (void) elf_find_allocators(elf, &allocators);
}

/* Cut anywhere, and with the headers' claims replaced by the largest numbers: an answer or an error, nothing else. */
static void test_damaged(void **state) {
        size_t size;
        char *image = load(&size);

        for (size_t length = 0; length < size; length += length < 4096 ? 7 : 997) {
                char *copy = malloc(length > 0 ? length : 1);
                assert_non_null(copy);
                memcpy(copy, image, length);
                look(copy, length);
                free(copy);
        }
        for (size_t at = 4; at < 1024; at++) {
                char *copy = malloc(size);
                assert_non_null(copy);
                memcpy(copy, image, size);
                memset(copy + at, 0xff, MG_MIN((size_t) 8, size - at));
                look(copy, size);
                free(copy);
        }
        free(image);
}

static void test_names(void **state) {
        static const struct {
                const char *name;
                int library;
        } libraries[] = {
                { "/lib/x86_64-linux-gnu/libc.so.6", MG_ALLOCATOR_GLIBC },
                { "/lib/libc-2.31.so", MG_ALLOCATOR_GLIBC },
                { "/lib/ld-musl-x86_64.so.1", MG_ALLOCATOR_MUSL },
                { "/lib/libc.musl-x86_64.so.1", MG_ALLOCATOR_MUSL },
                { "libjemalloc.so.2", MG_ALLOCATOR_JEMALLOC },
                { "/usr/lib/libjemalloc.so.2 (deleted)", MG_ALLOCATOR_JEMALLOC },
                { "libtcmalloc_minimal.so.4", MG_ALLOCATOR_TCMALLOC },
                { "libtcmalloc.so.4.5.10", MG_ALLOCATOR_TCMALLOC },
                { "libmimalloc.so.2.0", MG_ALLOCATOR_MIMALLOC },
                { "/opt/java/lib/server/libjvm.so", MG_ALLOCATOR_JVM },
                { "libcap.so.2", -ENOENT },
                { "libcrypto.so.3", -ENOENT },
                { "libc++.so.1", -ENOENT },
                { "/libjemalloc.so.2/other.so", -ENOENT },
                { "libjemalloc_fake.so", -ENOENT },
                { "libc", -ENOENT },
                { "", -ENOENT },
                { "/", -ENOENT },
        };
        static const struct {
                const char *name;
                int allocator;
                size_t prefix;
        } symbols[] = {
                { "mallctl", MG_ALLOCATOR_JEMALLOC, 0 },
                { "je_mallctl", MG_ALLOCATOR_JEMALLOC, 3 },
                { "_rjem_mallctl", MG_ALLOCATOR_JEMALLOC, 6 },
                { "mallctlbymib", -ENOENT, 9 },
                { "xmallctl", -ENOENT, 9 },
                { "mi_collect", MG_ALLOCATOR_MIMALLOC, 0 },
                { "MallocExtension_ReleaseFreeMemory", MG_ALLOCATOR_TCMALLOC, 0 },
                { "runtime.mallocgc", MG_ALLOCATOR_GO, 0 },
                { "malloc", -ENOENT, 9 },
                { "", -ENOENT, 9 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(libraries); i++)
                if (allocator_from_library(libraries[i].name) != libraries[i].library)
                        fail_msg("%s", libraries[i].name);
        for (size_t i = 0; i < MG_ELEMENTS(symbols); i++) {
                size_t prefix = 9;
                if (allocator_from_symbol(symbols[i].name, &prefix) != symbols[i].allocator ||
                    prefix != symbols[i].prefix)
                        fail_msg("%s", symbols[i].name);
        }
        assert_string_equal(allocator_to_string(MG_ALLOCATOR_JVM), "jvm");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_programs), cmocka_unit_test(test_musl),
                cmocka_unit_test(test_needed),   cmocka_unit_test(test_no_elf),
                cmocka_unit_test(test_damaged),  cmocka_unit_test(test_names),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
