/* SPDX-License-Identifier: MIT */
/* See command_line.h. Layer: host. */
#include "host/command_line.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "base/macros.h"

static enum options_verdict show_help(const struct mg_command_line *line) {
        printf("Usage: %s [OPTION...]\n\n%s\n\n", line->program, line->purpose);
        for (size_t i = 0; i < MG_OPTIONS_MAX && line->options[i].name; i++) {
                const struct mg_option *option = &line->options[i];
                char left[40];

                snprintf(left, sizeof(left), "--%s%s%s", option->name, option->value ? "=" : "",
                         option->value ?: "");
                printf("  %-26s %s\n", left, option->text);
        }
        printf("\nSee %s.\n", line->pages);
        return OPTIONS_SHOWN;
}

static enum options_verdict apply(
                const struct mg_command_line *line,
                const struct mg_option *option,
                struct options *options,
                const char *value) {
        if (!option->set) {
                if (mg_streq(option->name, "help"))
                        return show_help(line);
                printf("%s " MG_VERSION "\n", line->program);
                return OPTIONS_SHOWN;
        }
        int r = option->set(options, value);
        if (r >= 0)
                return OPTIONS_RUN;
        fprintf(stderr, "%s: --%s=%s: expected %s: %s\n", line->program, option->name, value,
                option->value, r == -ENOMEM ? "out of memory" : option->text);
        return OPTIONS_USAGE;
}

enum options_verdict command_line_read(
                const struct mg_command_line *line,
                struct options *options,
                int argc,
                char **argv) {
        struct option long_options[MG_OPTIONS_MAX + 1] = {};
        int index;
        int c;

        for (size_t i = 0; i < MG_OPTIONS_MAX && line->options[i].name; i++) {
                long_options[i].name = line->options[i].name;
                long_options[i].has_arg = line->options[i].value ? required_argument : no_argument;
                long_options[i].val =
                                256 + (int) i; /* no two alike: an abbreviation of two is none */
        }
        while ((c = getopt_long(argc, argv, "", long_options, &index)) >= 0) {
                if (c == '?')
                        return OPTIONS_USAGE; /* getopt has said what */
                enum options_verdict verdict = apply(line, &line->options[index], options, optarg);
                if (verdict != OPTIONS_RUN)
                        return verdict;
        }
        return OPTIONS_RUN;
}
