/* SPDX-License-Identifier: MIT */
/* memguardctl trim: now, by hand; or with --dry-run what it would bring. Layer: ctl. */
#include <stdio.h>

#include "base/macros.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

static void print_prediction(const json_t *outcome) {
        printf("%s: would ask %s of %s processes, expects %s back, worst pause %s (%s)\n",
               member_text(outcome, "unit"), member_text(outcome, "asked"),
               member_text(outcome, "processes"), member_size(outcome, "expected_bytes"),
               member_duration(outcome, "pause_usec"), member_text(outcome, "reason"));
}

static void print_outcome(const json_t *outcome) {
        if (mg_streq(member_text(outcome, "result"), "told")) {
                printf("%s: told of memory pressure: %s client%s; what comes of it is in the unit's journal\n",
                       member_text(outcome, "unit"), member_text(outcome, "asked"),
                       member_integer(outcome, "asked", 0) == 1 ? "" : "s");
                return;
        }
        printf("%s: %s: trimmed %s of %s: anon %s -> %s, took %s, worst pause %s, %s of %s processes asked\n",
               member_text(outcome, "unit"), member_text(outcome, "result"),
               member_size(outcome, "gain_bytes"), member_size(outcome, "expected_bytes"),
               member_size(outcome, "before_bytes"), member_size(outcome, "after_bytes"),
               member_duration(outcome, "duration_usec"), member_duration(outcome, "pause_usec"),
               member_text(outcome, "asked"), member_text(outcome, "processes"));
}

/* Why a hand-made trim could not be made, NULL when it was: one that brought little is no failure. */
static const char *why_not(const json_t *outcome) {
        const char *result = member_text(outcome, "result");

        if (member_integer(outcome, "asked", 0) == 0)
                return member_text(outcome, "text");
        if (mg_streq(result, "failed"))
                return "no process that was asked has answered";
        if (mg_streq(result, "refused"))
                return "every process that was asked has refused";
        return NULL;
}

int verb_trim(int argc, char **argv) {
        json_t *outcome MG_CLEANUP(json_decrefp) = NULL;
        const char *obstacle;

        int exit_code = client_call(&outcome, "TrimUnit", "sb", argv[1], (int) ctl_options.dry_run);
        if (exit_code != CTL_OK)
                return exit_code;
        obstacle = ctl_options.dry_run ? NULL : why_not(outcome);
        if (ctl_options.json != JSON_OFF) {
                exit_code = json_print(outcome);
                if (exit_code != CTL_OK)
                        return exit_code;
        } else if (ctl_options.dry_run) {
                print_prediction(outcome);
        } else if (obstacle) {
                fprintf(stderr, "memguardctl: %s was not trimmed: %s\n", argv[1], obstacle);
        } else {
                print_outcome(outcome);
        }
        return obstacle ? CTL_FAILED : CTL_OK;
}
