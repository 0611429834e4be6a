/* SPDX-License-Identifier: MIT */
/* memguardctl list-processes. Layer: ctl. */
#include "ctl/processes.h"

#include <stdio.h>

#include "base/macros.h"
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

static const struct column columns[] = {
        { "UNIT", "unit", CELL_TEXT, false },
        { "PID", "pid", CELL_COUNT, true },
        { "COMMAND", "command", CELL_TEXT, false },
        { "ANON", "rss_anon_bytes", CELL_SIZE, true },
        { "LIVE", "live_bytes", CELL_SIZE, true },
        { "RETAINED", "retained_bytes", CELL_SIZE, true },
        { "FREEABLE", "freeable_bytes", CELL_SIZE, true },
        { "ALLOCATORS", "shown_allocators", CELL_TEXT, false },
        { "AGENT", "agent", CELL_TEXT, false },
};

/* "glibc 2.36, jemalloc 5.3.0" */
static json_t *allocators_text(const json_t *allocators) {
        char buffer[256];
        struct mg_text text;
        size_t i;
        json_t *allocator;

        text_init(&text, buffer, sizeof(buffer));
        json_array_foreach(allocators, i, allocator) {
                text_put(&text, i > 0 ? ", " : "");
                text_put(&text, member_text(allocator, "name"));
                text_put_char(&text, ' ');
                text_put(&text, member_text(allocator, "version"));
        }
        return text.length > 0 ? json_string(buffer) : json_null();
}

/* Once for each state but the healthy one, below the table: the column has room for a word only. */
static void print_reasons(const json_t *processes) {
        MG_CLEANUP(json_decrefp) json_t *told = json_object();
        size_t i;
        json_t *process;

        json_array_foreach(processes, i, process) {
                const char *agent = member_text(process, "agent");
                json_t *reason = json_object_get(process, "agent_reason");
                if (!json_is_string(reason) || mg_streq(agent, "loaded") ||
                    json_object_get(told, agent) || json_object_set(told, agent, reason) < 0)
                        continue;
                printf("%s%s: %s\n", json_object_size(told) == 1 ? "\n" : "", agent,
                       json_string_value(reason));
        }
}

int processes_print(json_t *processes, bool with_unit) {
        size_t skip = with_unit ? 0 : 1;
        size_t i;
        json_t *process;

        json_array_foreach(processes, i, process) json_object_set_new(
                        process, "shown_allocators",
                        allocators_text(json_object_get(process, "allocators")));
        int exit_code = table_print(processes, columns + skip, MG_ELEMENTS(columns) - skip);
        if (exit_code == CTL_OK && !ctl_options.no_legend)
                print_reasons(processes);
        return exit_code;
}

int verb_list_processes(int argc, char **argv) {
        json_t *processes MG_CLEANUP(json_decrefp) = NULL;

        int exit_code = client_call(&processes, "ListProcesses", "s", argc > 1 ? argv[1] : "");
        if (exit_code != CTL_OK)
                return exit_code;
        if (ctl_options.json != JSON_OFF)
                return json_print(processes);
        pager_open();
        return processes_print(processes, argc < 2);
}
