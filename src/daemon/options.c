/* SPDX-License-Identifier: MIT */
/* The command line of memguardd. Layer: daemon. */
#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "daemon/journal_record.h"
#include "host/bus_api.h"

/* Where systemd's StateDirectory=memguard puts it; $STATE_DIRECTORY says so at run time. */
#define DEFAULT_STATE_DIRECTORY "/var/lib/memguard"

static const char *const source_names[] = {
        [SOURCE_AUTO] = "auto",
        [SOURCE_CGROUP] = "cgroup",
        [SOURCE_PROC] = "proc",
};
_Static_assert(MG_ELEMENTS(source_names) == _SOURCE_CHOICE_MAX, "a source has no name");

static int set_config(struct options *options, const char *value) {
        options->config_file = value;
        return *value ? 0 : -EINVAL;
}

static int set_runtime_directory(struct options *options, const char *value) {
        options->runtime_directory = value;
        options->by_hand = true;
        return *value ? 0 : -EINVAL;
}

static int set_state_directory(struct options *options, const char *value) {
        free(options->state_directory);
        options->state_directory = strdup(value);
        return !options->state_directory ? -ENOMEM : *value ? 0 : -EINVAL;
}

static int set_cgroup_root(struct options *options, const char *value) {
        options->cgroup_root = value;
        return value[0] == '/' ? 0 : -EINVAL;
}

static int set_source(struct options *options, const char *value) {
        for (size_t i = 0; i < MG_ELEMENTS(source_names); i++)
                if (mg_streq(source_names[i], value)) {
                        options->source = i;
                        return 0;
                }
        return -EINVAL;
}

static int set_log_level(struct options *options, const char *value) {
        options->log_level = log_level_from_string(value);
        return options->log_level < 0 ? -EINVAL : 0;
}

static const struct mg_command_line command_line = {
        .program = "memguardd",
        .purpose = "Watches what services retain in their allocators and asks for it back.",
        .pages = "memguardd(8) and memguard.ini(5)",
        .options = {
                { "config", "FILE", "read FILE and FILE.d/*.conf instead of /etc/memguard.ini",
                  set_config },
                { "runtime-directory", "DIR", "sockets, lock and state live in DIR (/run/memguard)",
                  set_runtime_directory },
                { "state-directory", "DIR", "what is kept over reboots lives in DIR (/var/lib/memguard)",
                  set_state_directory },
                { "source", "WORD", "auto, cgroup or proc: where the numbers come from (auto)",
                  set_source },
                { "cgroup-root", "DIR", "take DIR for the root of cgroup v2", set_cgroup_root },
                { "log-level", "LEVEL", "err, warning, notice, info or debug (LogLevel=)", set_log_level },
                { "help", NULL, "show this", NULL },
                { "version", NULL, "show the version", NULL },
        },
};

static enum options_verdict usage_error(const char *text, const char *argument) {
        fprintf(stderr, "memguardd: %s%s (see memguardd --help)\n", text, argument);
        return OPTIONS_USAGE;
}

static int choose_state_directory(struct options *options) {
        const char *given = getenv("STATE_DIRECTORY");

        if (options->state_directory)
                return 0;
        if (options->by_hand)
                return asprintf(&options->state_directory, "%s/state", options->runtime_directory) <
                                                       0
                                       ? -ENOMEM
                                       : 0;
        options->state_directory = strdup(given && *given ? given : DEFAULT_STATE_DIRECTORY);
        return options->state_directory ? 0 : -ENOMEM;
}

enum options_verdict options_parse(struct options *options, int argc, char **argv) {
        *options = (struct options){ .runtime_directory = MG_RUNTIME_DIRECTORY, .log_level = -1 };
        enum options_verdict verdict = command_line_read(&command_line, options, argc, argv);
        if (verdict != OPTIONS_RUN)
                return verdict;
        if (optind < argc)
                return usage_error("unexpected argument: ", argv[optind]);
        if (choose_state_directory(options) < 0)
                return usage_error("out of memory", "");
        return OPTIONS_RUN;
}

void options_done(struct options *options) {
        free(options->state_directory);
        options->state_directory = NULL;
}
