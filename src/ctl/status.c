/* SPDX-License-Identifier: MIT */
/* memguardctl status: the host in one line, a row a unit; with names, each unit in detail. Layer: ctl. */
#include <stdio.h>
#include <time.h>

#include "base/macros.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
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

static void keep_promise(json_t *units) {
        size_t i;
        json_t *unit;

        json_array_foreach(units, i, unit) for (size_t n = 0; n < MG_ELEMENTS(promised_names);
                                                n++) if (!json_object_get(unit, promised_names[n]))
                        json_object_set_new(unit, promised_names[n], json_null());
}

/* The two cells that are made of several members. */
static void add_shown_members(json_t *units) {
        size_t i;
        json_t *unit;

        json_array_foreach(units, i, unit) {
                json_int_t agents = member_integer(unit, "agents", 0);
                json_int_t processes = member_integer(unit, "processes", 0);
                char text[48];

                snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
                         agents, processes);
                json_object_set_new(unit, "shown_agents", json_string(text));
                json_object_set_new(
                                unit, "shown_mode",
                                json_string(agents > 0 ? member_text(unit, "mode") : "-"));
        }
}

static void print_host_line(const json_t *host) {
        json_int_t cpu = member_integer(host, "self_cpu_permyriad", 0);

        printf("memguard %s on %s: %s unit%s, trimming %s, observing %s, no agent %s. Self: %s anon, "
               "%" JSON_INTEGER_FORMAT ".%02" JSON_INTEGER_FORMAT "%% CPU. PSI %s.%s\n",
               member_text(host, "version"), member_text(host, "hostname"),
               member_text(host, "units"), member_integer(host, "units", 0) == 1 ? "" : "s",
               member_text(host, "trimming"), member_text(host, "observing"),
               member_text(host, "no_agent"), member_size(host, "self_anon_bytes"), cpu / 100,
               cpu % 100, member_true(host, "psi") ? "on" : "off",
               member_true(host, "paused") ? " PAUSED: memguardctl resume --all." : "");
}

static int print_overview(json_t *units) {
        json_t *host MG_CLEANUP(json_decrefp) = NULL;

        int exit_code = client_call(&host, "GetHost", "");
        if (exit_code != CTL_OK)
                return exit_code;
        pager_open();
        if (!ctl_options.no_legend)
                print_host_line(host);
        add_shown_members(units);
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
                keep_promise(units);
                return json_print(units);
        }
        return named ? print_details(units) : print_overview(units);
}
