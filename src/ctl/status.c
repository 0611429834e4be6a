/* SPDX-License-Identifier: MIT */
/* memguardctl status: the host in one line, a row a unit; with names, each unit in detail. Layer: ctl. */
#include <stdio.h>

#include "base/macros.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/overview.h"
#include "ctl/unit_detail.h"

/* Names that scripts may rely on: every row has them all, null where unknown. */
static const char *const promised_names[] = {
        "unit",           "source",       "cgroup",           "mode",
        "anon_bytes",     "swap_bytes",   "live_bytes",       "retained_bytes",
        "freeable_bytes", "pinned_bytes", "other_bytes",      "shmem_bytes",
        "file_bytes",     "verdict",      "trim_above_bytes", "slope_bytes_per_hour",
        "reason",         "processes",    "agents",           "trims",
        "trimmed_bytes",  "would_trim",   "last_trim",        "allocators",
};

static const struct column columns[] = {
        { "UNIT", "unit", CELL_TEXT, false },
        { "MODE", "shown_mode", CELL_TEXT, false },
        { "AGENTS", "shown_agents", CELL_TEXT, true },
        { "ANON", "anon_bytes", CELL_SIZE, true },
        { "LIVE", "live_bytes", CELL_SIZE, true },
        { "FREEABLE", "freeable_bytes", CELL_SIZE, true },
        { "PINNED", "pinned_bytes", CELL_SIZE, true },
        { "OTHER", "other_bytes", CELL_SIZE, true },
        { "SLOPE/H", "slope_bytes_per_hour", CELL_SIGNED_SIZE, true },
        { "VERDICT", "verdict", CELL_TEXT, false },
};

static int print_overview(json_t *units) {
        json_t *host MG_CLEANUP(json_decrefp) = NULL;
        char line[HOST_LINE_MAX];

        int exit_code = client_call(&host, "GetHost", "");
        if (exit_code != CTL_OK)
                return exit_code;
        pager_open();
        if (!ctl_options.no_legend)
                puts(host_line(host, line, sizeof(line)));
        units_add_shown(units);
        return table_print(units, columns, MG_ELEMENTS(columns));
}

static int print_details(const json_t *units) {
        size_t i;
        json_t *unit;

        pager_open();
        json_array_foreach(units, i, unit) {
                if (i > 0)
                        putchar('\n');
                int exit_code = unit_detail_print(unit);
                if (exit_code != CTL_OK)
                        return exit_code;
        }
        return CTL_OK;
}

int verb_status(int argc, char **argv) {
        json_t *units MG_CLEANUP(json_decrefp) = NULL;
        bool named = argc > 1;

        int exit_code = client_call_names(&units, "ListUnits", argv + 1);
        if (exit_code != CTL_OK)
                return exit_code;
        if (ctl_options.json != JSON_OFF) {
                json_keep_names(units, promised_names, MG_ELEMENTS(promised_names));
                return json_print(units);
        }
        return named ? print_details(units) : print_overview(units);
}
