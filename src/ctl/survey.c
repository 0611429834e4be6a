/* SPDX-License-Identifier: MIT */
/* memguardctl survey. Layer: ctl. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/survey.h"
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
                if (json_array_append_new(rows, survey_row(&survey.units[i])) < 0) {
                        fputs("memguardctl: out of memory\n", stderr);
                        return CTL_FAILED;
                }
        return ctl_options.json != JSON_OFF ? json_print(rows) : print_table(rows);
}
