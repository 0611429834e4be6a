/* SPDX-License-Identifier: MIT */
/*
 * The command line of memguard-exporter as one table: --help is printed from it, getopt's array is made from it. Layer: exporter.
 */
#include "exporter/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>

#include "base/macros.h"
#include "base/parse.h"

/* Prometheus gives a scrape 10 s; what is left is the network's. */
#define DEFAULT_TIMEOUT_USEC (4 * MG_USEC_PER_SEC)
#define TIMEOUT_MAX_USEC     (10 * MG_USEC_PER_SEC) /* a quarter of WatchdogSec= must be more */

/* Some 45 series a unit and 10 a process: 14,000 at most. */
#define DEFAULT_MAX_UNITS     200
#define DEFAULT_MAX_PROCESSES 500

static int set_runtime_directory(struct options *options, const char *value) {
        options->runtime_directory = value;
        return *value ? 0 : -EINVAL;
}

static int set_listen(struct options *options, const char *value) {
        options->listen = value;
        return *value ? 0 : -EINVAL;
}

static int set_timeout(struct options *options, const char *value) {
        uint64_t usec;

        if (parse_duration(value, &usec) < 0 || usec == 0 || usec > TIMEOUT_MAX_USEC)
                return -EINVAL;
        options->timeout_usec = usec;
        return 0;
}

static int set_max_units(struct options *options, const char *value) {
        return parse_u64(value, &options->max_units);
}

static int set_max_processes(struct options *options, const char *value) {
        return parse_u64(value, &options->max_processes);
}

static const struct {
        const char *name;
        const char *value; /* NULL: takes none */
        const char *text;
        int (*set)(struct options *options, const char *value); /* NULL: shows something */
} table[] = {
        { "listen", "ADDRESS:PORT", "serve there, without a socket from the service manager",
          set_listen },
        { "runtime-directory", "DIR", "ask the daemon that runs there (/run/memguard)",
          set_runtime_directory },
        { "timeout", "TIME", "how long the daemon may take, at most 10s (4s)", set_timeout },
        { "max-units", "N", "show the N largest units (200)", set_max_units },
        { "max-processes", "N", "show the heaps of N processes (500)", set_max_processes },
        { "help", NULL, "show this", NULL },
        { "version", NULL, "show the version", NULL },
};
#define N_OPTIONS MG_ELEMENTS(table)

static enum options_verdict show_help(void) {
        printf("Usage: memguard-exporter [OPTION...]\n\n"
               "Serves what memguardd knows to Prometheus, as /metrics over HTTP.\n\n");
        for (size_t i = 0; i < N_OPTIONS; i++) {
                char left[40];

                snprintf(left, sizeof(left), "--%s%s%s", table[i].name, table[i].value ? "=" : "",
                         table[i].value ?: "");
                printf("  %-26s %s\n", left, table[i].text);
        }
        printf("\nSee memguard-exporter(8).\n");
        return OPTIONS_SHOWN;
}

static enum options_verdict apply_option(struct options *options, int index, const char *value) {
        if (!table[index].set) {
                if (mg_streq(table[index].name, "help"))
                        return show_help();
                printf("memguard-exporter " MG_VERSION "\n");
                return OPTIONS_SHOWN;
        }
        if (table[index].set(options, value) >= 0)
                return OPTIONS_RUN;
        fprintf(stderr, "memguard-exporter: --%s=%s: expected %s: %s\n", table[index].name, value,
                table[index].value, table[index].text);
        return OPTIONS_USAGE;
}

enum options_verdict options_parse(struct options *ret_options, int argc, char **argv) {
        struct option long_options[N_OPTIONS + 1] = {};
        int index;
        int c;

        *ret_options = (struct options){ .timeout_usec = DEFAULT_TIMEOUT_USEC,
                                         .max_units = DEFAULT_MAX_UNITS,
                                         .max_processes = DEFAULT_MAX_PROCESSES };
        for (size_t i = 0; i < N_OPTIONS; i++) {
                long_options[i].name = table[i].name;
                long_options[i].has_arg = table[i].value ? required_argument : no_argument;
        }
        while ((c = getopt_long(argc, argv, "", long_options, &index)) >= 0) {
                enum options_verdict verdict;

                if (c == '?')
                        return OPTIONS_USAGE; /* getopt has said what */
                verdict = apply_option(ret_options, index, optarg);
                if (verdict != OPTIONS_RUN)
                        return verdict;
        }
        if (optind == argc)
                return OPTIONS_RUN;
        fprintf(stderr, "memguard-exporter: unexpected argument: %s (see --help)\n", argv[optind]);
        return OPTIONS_USAGE;
}
