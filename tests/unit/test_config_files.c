/* SPDX-License-Identifier: MIT */
/* The main file and its drop-ins below a root of our own: order, replacing, masking, and what is in the way. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "host/config.h"
#include "host/config_files.h"

#define VENDOR  "/usr/lib/memguard.ini.d/"
#define RUNTIME "/run/memguard.ini.d/"

struct tree {
        char root[64];
        char local[256]; /* the local drop-in directory, below the root, with its "/" */
};

MG_PRINTF(1, 2) static int run(const char *format, ...) {
        char command[1024];
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(command, sizeof(command), format, arguments);
        va_end(arguments);
        return system(command);
}

static void put(const struct tree *tree, const char *path, const char *text) {
        char full[1024];
        FILE *file;

        snprintf(full, sizeof(full), "%s%s", tree->root, path);
        assert_int_equal(run("mkdir -p \"$(dirname '%s')\"", full), 0);
        file = fopen(full, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

static const char *local(const struct tree *tree, const char *name) {
        static char path[512];
        snprintf(path, sizeof(path), "%s%s", tree->local, name);
        return path;
}

static int set_up(void **state) {
        static struct tree tree;

        strcpy(tree.root, "/tmp/memguard-test-XXXXXX");
        if (!mkdtemp(tree.root))
                return -1;
        snprintf(tree.local, sizeof(tree.local), "%s.d/", config_main_file());
        *state = &tree;
        return 0;
}

static int tear_down(void **state) {
        const struct tree *tree = *state;
        return run("rm -rf '%s'", tree->root);
}

/* MinGain= of a.service in MiB; -1 when the configuration is refused. */
static int load(const struct tree *tree,
                struct mg_config **ret_config,
                struct mg_problems *problems) {
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        struct mg_unit_config unit;

        int r = config_load(NULL, tree->root, &config, problems);
        if (r < 0) {
                assert_int_equal(r, -EINVAL);
                return -1;
        }
        config_unit(config, "a.service", NULL, &unit, NULL);
        if (ret_config)
                *ret_config = MG_TAKE(config);
        return (int) (unit.min_gain_bytes / MG_MIB);
}

static void test_nothing_there(void **state) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        const char *const *files;

        assert_int_equal(load(*state, &config, &problems), 32);
        assert_int_equal(problems.n_items, 0);
        assert_int_equal(config_files(config, &files), 0);
}

static void test_order(void **state) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        const struct tree *tree = *state;
        const char *const *files;

        put(tree, config_main_file(), "[a.service]\nMinGain=1M\nTrimPad=1M\n");
        assert_int_equal(load(tree, NULL, &problems), 1);
        put(tree, VENDOR "50-x.conf", "[a.service]\nMinGain=2M\n");
        assert_int_equal(load(tree, NULL, &problems), 2);
        /* Drop-ins of all three directories are sorted by name. */
        put(tree, local(tree, "10-x.conf"), "[a.service]\nMinGain=3M\n");
        assert_int_equal(load(tree, NULL, &problems), 2);
        put(tree, RUNTIME "90-x.conf", "[a.service]\nMinGain=4M\n");
        assert_int_equal(load(tree, NULL, &problems), 4);
        /* The same name in a higher directory replaces. */
        put(tree, local(tree, "90-x.conf"), "[a.service]\nMinGain=5M\n");
        assert_int_equal(load(tree, NULL, &problems), 5);
        put(tree, VENDOR "90-x.conf", "[a.service]\nMinGain=6M\n");
        assert_int_equal(load(tree, &config, &problems), 5);

        assert_int_equal(problems.n_items, 0);
        assert_int_equal(config_files(config, &files), 4);
        assert_string_equal(files[0] + strlen(tree->root), config_main_file());
        assert_string_equal(files[1] + strlen(tree->root), local(tree, "10-x.conf"));
        assert_string_equal(files[2] + strlen(tree->root), VENDOR "50-x.conf");
        assert_string_equal(files[3] + strlen(tree->root), local(tree, "90-x.conf"));

        struct mg_unit_config unit;
        struct mg_origins origins;
        config_unit(config, "a.service", NULL, &unit, &origins);
        assert_string_equal(origins.key[MG_KEY_MIN_GAIN].file, files[3]);
        assert_string_equal(origins.key[MG_KEY_TRIM_PAD].file, files[0]);
        assert_int_equal(origins.key[MG_KEY_TRIM_PAD].line, 3);
}

static void test_masks_and_names(void **state) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        const struct tree *tree = *state;

        put(tree, VENDOR "50-x.conf", "[a.service]\nMinGain=2M\n");
        put(tree, VENDOR "60-y.conf", "[a.service]\nMinGain=3M\n");
        put(tree, local(tree, "README"), "not ours\n");
        put(tree, local(tree, ".60-z.conf"), "not ours\n");
        put(tree, local(tree, "60-z.conf~"), "not ours\n");
        put(tree, local(tree, ".conf"), "not ours\n");
        assert_int_equal(load(tree, NULL, &problems), 3);
        assert_int_equal(run("ln -s /dev/null '%s%s'", tree->root, local(tree, "60-y.conf")), 0);
        assert_int_equal(load(tree, NULL, &problems), 2);
        /* An empty file replaces as well: it says nothing. */
        put(tree, RUNTIME "50-x.conf", "");
        assert_int_equal(load(tree, NULL, &problems), 32);
        assert_int_equal(problems.n_items, 0);
}

static void test_in_the_way(void **state) {
        static const struct {
                const char *command; /* with the drop-in's path behind it */
                const char *problem;
        } cases[] = {
                { "mkdir -p", "cannot be read: not a regular file" },
                { "mkfifo", "cannot be read: not a regular file" },
                { "ln -s /nowhere/at/all", "cannot be read: No such file or directory" },
                { "truncate -s 5M", "cannot be read: larger than 4M" },
                { "printf x >", "expected KEY=VALUE, a [SECTION] or a comment" },
                { "ln -s 50-x.conf", "cannot be read: Too many levels of symbolic links" },
        };
        const struct tree *tree = *state;

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                MG_CLEANUP(problems_done) struct mg_problems problems = {};
                char path[1024];

                assert_int_equal(run("mkdir -p '%s%s'", tree->root, tree->local), 0);
                snprintf(path, sizeof(path), "%s%s", tree->root, local(tree, "50-x.conf"));
                assert_int_equal(run("rm -rf '%s'", path), 0);
                assert_int_equal(run("%s '%s'", cases[i].command, path), 0);
                assert_int_equal(load(tree, NULL, &problems), -1);
                assert_int_equal(problems.n_items, 1);
                assert_string_equal(problems.items[0].file, path);
                assert_string_equal(problems.items[0].text, cases[i].problem);
        }
}

static void test_named_file(void **state) {
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        const struct tree *tree = *state;
        struct mg_unit_config unit;
        const char *const *files;
        char path[128];

        snprintf(path, sizeof(path), "%s/my.ini", tree->root);
        MG_CLEANUP(problems_done) struct mg_problems missing = {};
        assert_int_equal(config_load(path, NULL, &config, &missing), -EINVAL);
        assert_null(config);
        assert_string_equal(missing.items[0].text, "cannot be read: No such file or directory");

        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        put(tree, VENDOR "50-x.conf", "[a.service]\nMinGain=9M\n");
        put(tree, "/my.ini", "[a.service]\nMinGain=1M\n");
        put(tree, "/my.ini.d/1.conf", "[a.service]\nMinGain=2M\n");
        assert_int_equal(config_load(path, NULL, &config, &problems), 0);
        config_unit(config, "a.service", NULL, &unit, NULL);
        assert_int_equal(unit.min_gain_bytes, 2 * MG_MIB);
        assert_int_equal(config_files(config, &files), 2);
        assert_string_equal(files[0], path);
}

/* A failed load leaves what is in force alone. */
static void test_bad_reload(void **state) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        const struct tree *tree = *state;

        put(tree, config_main_file(), "[a.service]\nMinGain=1M\n");
        assert_int_equal(load(tree, &config, &problems), 1);
        struct mg_config *before = config;
        put(tree, config_main_file(), "[a.service]\nMinGain=x\n");
        assert_int_equal(load(tree, &config, &problems), -1);
        assert_ptr_equal(config, before);
        assert_int_equal(problems.n_errors, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_nothing_there, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_masks_and_names, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_in_the_way, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_named_file, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_bad_reload, set_up, tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
