/* SPDX-License-Identifier: MIT */
/* memguardctl survey. Layer: ctl. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/survey.h"
#include "host/allocator.h"
#include "host/cgroup.h"

static const struct column columns[] = {
        { "UNIT", "unit", CELL_TEXT, false },
        { "ANON", "anon_bytes", CELL_SIZE, true },
        { "PROCESSES", "processes", CELL_COUNT, true },
        { "THREADS", "threads", CELL_COUNT, true },
        { "ARENAS", "arena_heaps", CELL_COUNT, true },
        { "ALLOCATORS", "shown_allocators", CELL_TEXT, false },
        { "PROFIT", "profit", CELL_TEXT, false },
        { "REASON", "reason", CELL_TEXT, false },
};

static json_t *list_allocators(uint32_t mask) {
        json_t *list = json_array();

        for (int i = 0; i < _MG_ALLOCATOR_MAX; i++)
                if (mask & UINT32_C(1) << i)
                        json_array_append_new(
                                        list,
                                        json_string(allocator_to_string((enum mg_allocator) i)));
        return list;
}

static json_t *text_of_list(const json_t *list) {
        char buffer[128];
        struct mg_text text;
        size_t i;
        json_t *item;

        text_init(&text, buffer, sizeof(buffer));
        json_array_foreach(list, i, item) {
                text_put(&text, i > 0 ? " " : "");
                text_put(&text, json_string_value(item));
        }
        return text.length > 0 ? json_string(buffer) : json_null();
}

static json_t *row_of(const struct survey_unit *unit) {
        bool readable = unit->unreadable < unit->processes;
        const char *reason;
        enum survey_profit profit = survey_judge(unit, &reason);
        json_t *row = json_pack(
                        "{s:s, s:s?, s:b, s:I, s:I, s:I, s:I, s:I, s:s, s:s}", "unit", unit->name,
                        "cgroup", unit->path, "user", (int) unit->user, "anon_bytes",
                        (json_int_t) unit->anon_bytes, "processes", (json_int_t) unit->processes,
                        "unreadable", (json_int_t) unit->unreadable, "agents",
                        (json_int_t) unit->agents, "threads", (json_int_t) unit->threads, "profit",
                        survey_profit_to_string(profit), "reason", reason);

        /* What nobody may look at is unknown, not none. */
        json_object_set_new(
                        row, "allocators",
                        readable ? list_allocators(unit->allocators) : json_null());
        json_object_set_new(
                        row, "arena_heaps",
                        readable ? json_integer(unit->arena_heaps) : json_null());
        return row;
}

static int print_table(json_t *rows) {
        size_t i;
        json_t *row;

        json_array_foreach(rows, i, row) {
                json_object_set_new(
                                row, "shown_allocators",
                                text_of_list(json_object_get(row, "allocators")));
        }
        pager_open();
        int exit_code = table_print(rows, columns, MG_ELEMENTS(columns));
        if (exit_code == CTL_OK && !ctl_options.no_legend)
                printf("\n%zu units. PROFIT is what their looks say: memguardctl enroll UNIT observes one and "
                       "measures it.\n",
                       json_array_size(rows));
        return exit_code;
}

int verb_survey(int argc, char **argv) {
        MG_CLEANUP(survey_done) struct survey survey = {};
        MG_CLEANUP(json_decrefp) json_t *rows = json_array();
        char root[MG_CGROUP_PATH_MAX];
        enum mg_hierarchy hierarchy;

        bool unified = cgroup_find_root(NULL, root, sizeof(root), &hierarchy) >= 0 &&
                       hierarchy == MG_HIERARCHY_UNIFIED;
        int r = survey_gather("/proc", unified ? root : NULL, &survey);
        if (r < 0) {
                fprintf(stderr, "memguardctl: cannot look at the host's processes: %s\n",
                        strerror(-r));
                return CTL_FAILED;
        }
        survey_rank(&survey);
        for (size_t i = 0; i < survey.n; i++)
                json_array_append_new(rows, row_of(&survey.units[i]));
        return ctl_options.json != JSON_OFF ? json_print(rows) : print_table(rows);
}
