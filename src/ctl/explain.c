/* SPDX-License-Identifier: MIT */
/*
 * memguardctl explain UNIT: every condition of the last decision with its numbers, the one that decided, and where each
 * setting came from. Layer: ctl.
 */
#include <stdio.h>

#include "base/macros.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

static const struct column condition_columns[] = {
        { "CONDITION", "name", CELL_TEXT, false }, { "STATE", "shown_state", CELL_TEXT, false },
        { "HAVE", "shown_have", CELL_TEXT, true }, { "WANT", "shown_want", CELL_TEXT, true },
        { "", "shown_decided", CELL_TEXT, false },
};

static const struct column setting_columns[] = {
        { "SETTING", "key", CELL_TEXT, false },
        { "VALUE", "value", CELL_TEXT, false },
        { "SET IN", "shown_origin", CELL_TEXT, false },
};

static enum cell cell_of_quantity(const char *quantity) {
        if (mg_streq(quantity, "bytes"))
                return CELL_SIZE;
        if (mg_streq(quantity, "usec"))
                return CELL_DURATION;
        return CELL_COUNT;
}

static void add_shown_conditions(json_t *conditions) {
        bool decided = false;
        size_t i;
        json_t *condition;

        json_array_foreach(conditions, i, condition) {
                enum cell cell = cell_of_quantity(member_text(condition, "quantity"));
                bool fails = mg_streq(member_text(condition, "state"), "fails");

                json_object_set_new(
                                condition, "shown_state",
                                json_string(member_text(condition, "state")));
                json_object_set_new(
                                condition, "shown_have",
                                json_string(cell_format(json_object_get(condition, "have"), cell)));
                json_object_set_new(
                                condition, "shown_want",
                                json_string(cell_format(json_object_get(condition, "want"), cell)));
                json_object_set_new(
                                condition, "shown_decided",
                                json_string(fails && !decided ? "<- decided" : ""));
                decided = decided || fails;
        }
}

static void add_shown_origins(json_t *settings) {
        size_t i;
        json_t *setting;

        json_array_foreach(settings, i, setting) {
                char origin[512] = "built-in default";

                if (json_is_string(json_object_get(setting, "file")))
                        snprintf(origin, sizeof(origin), "%s:%s", member_text(setting, "file"),
                                 member_text(setting, "line"));
                json_object_set_new(setting, "shown_origin", json_string(origin));
        }
}

static int print_explanation(const json_t *explanation) {
        json_t *conditions = json_object_get(explanation, "conditions");
        json_t *settings = json_object_get(explanation, "settings");

        add_shown_conditions(conditions);
        add_shown_origins(settings);
        printf("%s: %s (%s): %s\n", member_text(explanation, "unit"),
               member_text(explanation, "action"), member_text(explanation, "reason"),
               member_text(explanation, "text"));
        printf("A trim now: %s expected, worst pause %s\n\n",
               member_size(explanation, "expected_bytes"),
               member_duration(explanation, "predicted_pause_usec"));
        int exit_code = table_print(conditions, condition_columns, MG_ELEMENTS(condition_columns));
        if (exit_code != CTL_OK)
                return exit_code;
        putchar('\n');
        return table_print(settings, setting_columns, MG_ELEMENTS(setting_columns));
}

int verb_explain(int argc, char **argv) {
        json_t *explanation MG_CLEANUP(json_decrefp) = NULL;

        int exit_code = client_call(&explanation, "Explain", "s", argv[1]);
        if (exit_code != CTL_OK)
                return exit_code;
        if (ctl_options.json != JSON_OFF)
                return json_print(explanation);
        pager_open();
        return print_explanation(explanation);
}
