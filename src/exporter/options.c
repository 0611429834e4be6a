/* SPDX-License-Identifier: MIT */
/* See options.h. Layer: exporter. */
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

static const struct mg_command_line command_line = {
        .program = "memguard-exporter",
        .purpose = "Serves what memguardd knows to Prometheus, as /metrics over HTTP.",
        .pages = "memguard-exporter(8)",
        .options = {
                { "listen", "ADDRESS:PORT", "serve there, without a socket from the service manager",
                  set_listen },
                { "runtime-directory", "DIR", "ask the daemon that runs there (/run/memguard)",
                  set_runtime_directory },
                { "timeout", "TIME", "how long the daemon may take, at most 10s (4s)", set_timeout },
                { "max-units", "N", "show the N largest units (200)", set_max_units },
                { "max-processes", "N", "show the heaps of N processes (500)", set_max_processes },
                { "help", NULL, "show this", NULL },
                { "version", NULL, "show the version", NULL },
        },
};

enum options_verdict options_parse(struct options *ret_options, int argc, char **argv) {
        *ret_options = (struct options){ .timeout_usec = DEFAULT_TIMEOUT_USEC,
                                         .max_units = DEFAULT_MAX_UNITS,
                                         .max_processes = DEFAULT_MAX_PROCESSES };
        enum options_verdict verdict = command_line_read(&command_line, ret_options, argc, argv);
        if (verdict != OPTIONS_RUN || optind == argc)
                return verdict;
        fprintf(stderr, "memguard-exporter: unexpected argument: %s (see --help)\n", argv[optind]);
        return OPTIONS_USAGE;
}
