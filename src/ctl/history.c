/* SPDX-License-Identifier: MIT */
/* memguardctl history: what a unit looked like, and its trims. Layer: ctl. */
#include "ctl/history.h"

#include <errno.h>
#include <stdio.h>

#include "base/macros.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/since.h"
#include "host/clock.h"

/* Names that scripts may rely on. */
static const char *const sample_names[] = {
        "at_usec", "step_usec", "anon_bytes", "live_bytes", "retained_bytes", "trim_above_bytes",
};
static const char *const trim_names[] = {
        "at_usec",    "result",         "reason",        "before_bytes", "after_bytes",
        "gain_bytes", "expected_bytes", "duration_usec", "pause_usec",
};

static const struct column sample_columns[] = {
        { "TIME", "at_usec", CELL_TIME, false },
        { "STEP", "step_usec", CELL_DURATION, true },
        { "ANON", "anon_bytes", CELL_SIZE, true },
        { "LIVE", "live_bytes", CELL_SIZE, true },
        { "RETAINED", "retained_bytes", CELL_SIZE, true },
        { "TRIMABOVE", "trim_above_bytes", CELL_SIZE, true },
};

static const struct column trim_columns[] = {
        { "TRIMMED AT", "at_usec", CELL_TIME, false },
        { "RESULT", "result", CELL_TEXT, false },
        { "REASON", "reason", CELL_TEXT, false },
        { "GAIN", "gain_bytes", CELL_SIZE, true },
        { "EXPECTED", "expected_bytes", CELL_SIZE, true },
        { "BEFORE", "before_bytes", CELL_SIZE, true },
        { "AFTER", "after_bytes", CELL_SIZE, true },
        { "TOOK", "duration_usec", CELL_DURATION, true },
        { "PAUSE", "pause_usec", CELL_DURATION, true },
};

static int read_since(uint64_t *ret_since_usec) {
        *ret_since_usec = 0;
        if (!ctl_options.since)
                return CTL_OK;
        int r = since_parse(ctl_options.since, clock_wall_usec(), ret_since_usec);
        if (r >= 0)
                return CTL_OK;
        fprintf(stderr, "memguardctl: --since=%s: %s\n", ctl_options.since,
                r == -ERANGE ? "that is still to come"
                             : "expected a time, like 1h, 14:30, yesterday or 2026-11-30 14:30");
        return CTL_USAGE;
}

int history_fetch(const char *unit, json_t **ret_history) {
        uint64_t since_usec;

        int exit_code = read_since(&since_usec);
        if (exit_code != CTL_OK)
                return exit_code;
        return client_call(ret_history, "GetHistory", "st", unit, since_usec);
}

static void print_heading(const json_t *history) {
        const json_t *samples = json_object_get(history, "samples");
        size_t n = json_array_size(samples);

        if (n == 0)
                printf("%s: nothing was measured in this time\n", member_text(history, "unit"));
        else
                printf("%s: %zu sample%s since %s, each the lowest of its step. Memory of its history: %s.\n",
                       member_text(history, "unit"), n, n == 1 ? "" : "s",
                       cell_format(json_object_get(json_array_get(samples, 0), "at_usec"),
                                   CELL_TIME),
                       member_size(history, "history_bytes"));
}

static int print_trims(const json_t *history) {
        const json_t *trims = json_object_get(history, "trims");
        json_int_t forgotten = member_integer(history, "trims_forgotten", 0);

        if (json_array_size(trims) > 0) {
                putchar('\n');
                int exit_code = table_print(trims, trim_columns, MG_ELEMENTS(trim_columns));
                if (exit_code != CTL_OK)
                        return exit_code;
        } else if (!ctl_options.no_legend)
                puts("No trims.");
        if (forgotten > 0 && !ctl_options.no_legend)
                printf("Earlier trims that are not kept: %" JSON_INTEGER_FORMAT ".\n", forgotten);
        return CTL_OK;
}

static int print_history(const json_t *history) {
        const json_t *samples = json_object_get(history, "samples");

        pager_open();
        if (!ctl_options.no_legend)
                print_heading(history);
        if (json_array_size(samples) > 0) {
                int exit_code = table_print(samples, sample_columns, MG_ELEMENTS(sample_columns));
                if (exit_code != CTL_OK)
                        return exit_code;
        }
        return print_trims(history);
}

int verb_history(int argc, char **argv) {
        json_t *history MG_CLEANUP(json_decrefp) = NULL;

        int exit_code = history_fetch(argv[1], &history);
        if (exit_code != CTL_OK)
                return exit_code;
        json_keep_names(json_object_get(history, "samples"), sample_names,
                        MG_ELEMENTS(sample_names));
        json_keep_names(json_object_get(history, "trims"), trim_names, MG_ELEMENTS(trim_names));
        return ctl_options.json != JSON_OFF ? json_print(history) : print_history(history);
}
