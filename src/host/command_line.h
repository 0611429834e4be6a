/* SPDX-License-Identifier: MIT */
/*
 * The command line of a program that takes long options alone, as one table: --help is printed from it, getopt's array is made
 * from it. Layer: host; for main() alone, since it prints.
 */
#pragma once

#define MG_OPTIONS_MAX 12

enum options_verdict {
        OPTIONS_RUN,
        OPTIONS_SHOWN, /* --help or --version: all is said, exit 0 */
        OPTIONS_USAGE, /* a bad command line, told on stderr: exit 2 */
};

struct options; /* what the command line says: each program's own */

struct mg_option {
        const char *name;
        const char *value; /* NULL: takes none */
        const char *text;
        int (*set)(struct options *options, const char *value); /* NULL: shows something */
};

struct mg_command_line {
        const char *program;
        const char *purpose; /* a sentence */
        const char *pages;
        struct mg_option options[MG_OPTIONS_MAX]; /* fewer end with a name of NULL */
};

/* What is no option is left at argv[optind]. */
enum options_verdict command_line_read(
                const struct mg_command_line *line,
                struct options *options,
                int argc,
                char **argv);
