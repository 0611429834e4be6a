/* SPDX-License-Identifier: MIT */
/* The host in a line, and the cells of a unit's row. Layer: ctl. */
#include "ctl/overview.h"

#include <stdio.h>

#include "ctl/cells.h"

const char *host_line(const json_t *host, char *buffer, size_t size) {
        json_int_t cpu = member_integer(host, "self_cpu_permyriad", 0);

        snprintf(buffer, size,
                 "memguard %s on %s: %s unit%s, trimming %s, observing %s, no agent %s. Self: %s anon, "
                 "%s of it history, %" JSON_INTEGER_FORMAT ".%02" JSON_INTEGER_FORMAT
                 "%% CPU. PSI %s.%s",
                 member_text(host, "version"), member_text(host, "hostname"),
                 member_text(host, "units"), member_integer(host, "units", 0) == 1 ? "" : "s",
                 member_text(host, "trimming"), member_text(host, "observing"),
                 member_text(host, "no_agent"), member_size(host, "self_anon_bytes"),
                 member_size(host, "history_bytes"), cpu / 100, cpu % 100,
                 member_true(host, "psi") ? "on" : "off",
                 member_true(host, "paused") ? " PAUSED: memguardctl resume --all." : "");
        return buffer;
}

void units_add_shown(json_t *units) {
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
