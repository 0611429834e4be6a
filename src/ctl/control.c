/* SPDX-License-Identifier: MIT */
/* The verbs that steer the daemon: reload, log-level, pause, resume. Layer: ctl. */
#include <stdio.h>

#include "base/macros.h"
#include "ctl/cells.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

int verb_reload(int argc, char **argv) {
        json_t *warnings MG_CLEANUP(json_decrefp) = NULL;
        size_t i;
        json_t *warning;

        int exit_code = client_call(&warnings, "Reload", "");
        if (exit_code != CTL_OK)
                return exit_code;
        json_array_foreach(warnings, i, warning)
                        fprintf(stderr, "%s\n", json_string_value(warning));
        return CTL_OK;
}

int verb_log_level(int argc, char **argv) {
        json_t *level MG_CLEANUP(json_decrefp) = NULL;

        if (argc > 1)
                return client_call(&level, "SetLogLevel", "s", argv[1]);
        int exit_code = client_call(&level, "GetLogLevel", "");
        if (exit_code != CTL_OK)
                return exit_code;
        if (ctl_options.json != JSON_OFF)
                return json_print(level);
        puts(json_string_value(level));
        return CTL_OK;
}

/* Without a unit and without --all nothing is meant: stopping everything is never a slip. */
static int call_for_unit(const char *method, int argc, char **argv) {
        json_t *nothing MG_CLEANUP(json_decrefp) = NULL;

        if ((argc > 1) == ctl_options.all) {
                fprintf(stderr, "memguardctl: %s needs a unit, or --all\n", argv[0]);
                return CTL_USAGE;
        }
        return client_call(&nothing, method, "s", ctl_options.all ? "" : argv[1]);
}

int verb_pause(int argc, char **argv) {
        return call_for_unit("Pause", argc, argv);
}

/* One unit is resumed, and nothing is trimmed all the same: who resumed it wants to know. */
static void tell_if_all_paused(void) {
        json_t *host MG_CLEANUP(json_decrefp) = NULL;

        if (client_call(&host, "GetHost", "") == CTL_OK && member_true(host, "paused"))
                fprintf(stderr,
                        "memguardctl: everything is still paused: memguardctl resume --all\n");
}

int verb_resume(int argc, char **argv) {
        int exit_code = call_for_unit("Resume", argc, argv);

        if (exit_code == CTL_OK && !ctl_options.all)
                tell_if_all_paused();
        return exit_code;
}
