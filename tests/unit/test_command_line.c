/* SPDX-License-Identifier: MIT */
/* The walk over a table of options: what is set, what ends it, and what is left over. */
#include <errno.h>
#include <getopt.h>

#include "base/macros.h"
#include "check.h"
#include "host/command_line.h"

struct options {
        const char *file;
        int flags;
};

static int set_file(struct options *options, const char *value) {
        options->file = value;
        return *value ? 0 : -EINVAL;
}

static int set_flag(struct options *options, const char *value) {
        assert_null(value);
        options->flags++;
        return 0;
}

static int set_nothing(struct options *options, const char *value) {
        return -ENOMEM;
}

/* As long as a table can be. */
static const struct mg_command_line command_line = {
        .program = "test",
        .purpose = "Tests.",
        .pages = "test(1)",
        .options = {
                { "file", "FILE", "a file", set_file },
                { "flag", NULL, "a flag", set_flag },
                { "huge", "N", "more than there is", set_nothing },
                { "a1", NULL, "", set_flag },
                { "a2", NULL, "", set_flag },
                { "a3", NULL, "", set_flag },
                { "a4", NULL, "", set_flag },
                { "a5", NULL, "", set_flag },
                { "a6", NULL, "", set_flag },
                { "help", NULL, "show this", NULL },
                { "version", NULL, "show the version", NULL },
                { "last", "FILE", "another file", set_file },
        },
};

static void test_each_command_line(void **state) {
        static const struct {
                const char *argv[5]; /* behind the program's name */
                enum options_verdict verdict;
                const char *file;
                int flags;
                int left;
        } cases[] = {
                { { NULL }, OPTIONS_RUN, NULL, 0, 0 },
                { { "--file=x", "--flag" }, OPTIONS_RUN, "x", 1, 0 },
                { { "--file", "x", "--flag", "--flag" }, OPTIONS_RUN, "x", 2, 0 },
                { { "--file=x", "--file=y" }, OPTIONS_RUN, "y", 0, 0 },
                { { "--last=--flag" }, OPTIONS_RUN, "--flag", 0, 0 },
                { { "--fil=x" }, OPTIONS_RUN, "x", 0, 0 },
                { { "a", "--flag", "b" }, OPTIONS_RUN, NULL, 1, 2 },
                { { "--", "--flag" }, OPTIONS_RUN, NULL, 0, 1 },
                { { "--help", "--nonsense" }, OPTIONS_SHOWN, NULL, 0, 1 },
                { { "--flag", "--version", "--file=" }, OPTIONS_SHOWN, NULL, 1, 1 },
                /* hostile */
                { { "--nonsense", "--help" }, OPTIONS_USAGE, NULL, 0, 1 },
                { { "--file=" }, OPTIONS_USAGE, "", 0, 0 },
                { { "--file" }, OPTIONS_USAGE, NULL, 0, 0 },
                { { "--flag=1" }, OPTIONS_USAGE, NULL, 0, 0 },
                { { "--huge=1", "--flag" }, OPTIONS_USAGE, NULL, 0, 1 },
                { { "--h" }, OPTIONS_USAGE, NULL, 0, 0 },
                { { "--a" }, OPTIONS_USAGE, NULL, 0, 0 },
                { { "-f" }, OPTIONS_USAGE, NULL, 0, 0 },
                { { "--=" }, OPTIONS_USAGE, NULL, 0, 0 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct options options = {};
                const char *argv[MG_ELEMENTS(cases[i].argv) + 2] = { "test" };
                int argc = 1;

                for (const char *const *at = cases[i].argv; *at; at++)
                        argv[argc++] = *at;
                optind = 0; /* glibc's way to begin anew */
                assert_int_equal(
                                command_line_read(&command_line, &options, argc, (char **) argv),
                                cases[i].verdict);
                assert_int_equal(options.flags, cases[i].flags);
                assert_int_equal(argc - optind, cases[i].left);
                if (cases[i].file)
                        assert_string_equal(options.file, cases[i].file);
                else
                        assert_null(options.file);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_command_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
