/* SPDX-License-Identifier: MIT */
/* jemalloc in the symbol table of an executable: this one's, which has the functions; and what is left of it when cut or bent. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/executable.h"
#include "base/macros.h"

int odd_prefix_mallctl(void);
int odd_prefix_mallctlnametomib(void);
int odd_prefix_mallctlbymib(void);
int half_mallctl(void);
extern const char *malloc_conf;
const char *malloc_conf = "narenas:1";

int odd_prefix_mallctl(void) {
        return 1;
}

int odd_prefix_mallctlnametomib(void) {
        return 2;
}

int odd_prefix_mallctlbymib(void) {
        return 3;
}

/* Without its two companions it is no jemalloc. */
int half_mallctl(void) {
        return 4;
}

static int call(uint64_t address, const struct mg_symbols *symbols) {
        uintptr_t base = symbols->is_relocatable ? executable_load_base() : 0;
        return ((int (*)(void))(base + address))();
}

static void test_own_executable(void **state) {
        struct mg_symbols symbols;

        executable_init();
        assert_int_equal(executable_find_jemalloc(&symbols), 0);
        assert_true(symbols.has_table);
        assert_true(symbols.has_malloc_conf);
        assert_int_equal(symbols.n_sets, 1);
        assert_string_equal(symbols.set[0].prefix, "odd_prefix_");
        assert_int_equal(call(symbols.set[0].mallctl, &symbols), 1);
        assert_int_equal(call(symbols.set[0].mallctlnametomib, &symbols), 2);
        assert_int_equal(call(symbols.set[0].mallctlbymib, &symbols), 3);
}

static char *read_own(size_t *ret_size) {
        struct stat info;
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &info), 0);
        char *image = malloc((size_t) info.st_size);
        assert_int_equal(read(fd, image, (size_t) info.st_size), info.st_size);
        close(fd);
        *ret_size = (size_t) info.st_size;
        return image;
}

/* A copy of its own size, so that a sanitizer sees any byte read behind it. */
static void look_at(const char *image, size_t size) {
        struct mg_symbols symbols;
        char *copy = malloc(size > 0 ? size : 1);

        memcpy(copy, image, size);
        int r = symtab_find_jemalloc(copy, size, &symbols);
        assert_true(r == 0 || r == -ENOEXEC);
        free(copy);
}

static void test_cut(void **state) {
        size_t size;
        char *image = read_own(&size);

        for (size_t length = 0; length < 4096; length++)
                look_at(image, length);
        for (size_t length = 4096; length < size; length += 997)
                look_at(image, length);
        free(image);
}

static void test_bent(void **state) {
        struct check_random random = check_seed(7);
        size_t size;
        char *image = read_own(&size);

        for (int i = 0; i < 300; i++) {
                char *bent = malloc(size);
                memcpy(bent, image, size);
                /* Mostly where the header and the section table are. */
                for (int j = 0; j < 20; j++) {
                        size_t at = (size_t) check_below(&random, size);
                        if (j % 3 == 0)
                                at %= 64;
                        else if (j % 3 == 1)
                                at = size - 1 - at % 2500;
                        bent[at] = (char) check_next(&random);
                }
                memcpy(bent, image, 6);
                look_at(bent, size);
                free(bent);
        }
        free(image);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_own_executable),
                cmocka_unit_test(test_cut),
                cmocka_unit_test(test_bent),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
