/* SPDX-License-Identifier: MIT */
/* memguardctl status UNIT. Layer: ctl. */
#include "ctl/unit_detail.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/processes.h"

static const char *verdict_color(const char *verdict) {
        if (!colors_enabled())
                return "";
        if (mg_streq(verdict, "leak-suspected"))
                return "\x1b[0;1;31m";
        if (mg_streq(verdict, "retention") || mg_streq(verdict, "live-growth") ||
            mg_streq(verdict, "not-malloc"))
                return "\x1b[0;1;33m";
        return "\x1b[0;1m";
}

static void print_memory(const json_t *unit) {
        printf("    Memory: %s anon = %s live + %s freeable + %s pinned + %s other\n",
               member_size(unit, "anon_bytes"), member_size(unit, "live_bytes"),
               member_size(unit, "freeable_bytes"), member_size(unit, "pinned_bytes"),
               member_size(unit, "other_bytes"));
        printf("            swap %s, shmem %s, file %s (never trimmed)\n",
               member_size(unit, "swap_bytes"), member_size(unit, "shmem_bytes"),
               member_size(unit, "file_bytes"));
}

static void print_verdict(const json_t *unit) {
        const char *verdict = member_text(unit, "verdict");

        printf("   Verdict: %s%s%s, slope %s per hour\n", verdict_color(verdict), verdict,
               colors_enabled() ? "\x1b[0m" : "",
               cell_format(json_object_get(unit, "slope_bytes_per_hour"), CELL_SIGNED_SIZE));
}

/* " (97%)": how much of what was predicted came back; "" where nothing was. Over 100 % where it was better. */
static const char *share_of_expected(const json_t *last, char *buffer, size_t size) {
        json_int_t gain = member_integer(last, "gain_bytes", -1);
        json_int_t expected = member_integer(last, "expected_bytes", 0);

        buffer[0] = '\0';
        if (gain >= 0 && expected > 0)
                snprintf(buffer, size, " (%.0f%%)", 100.0 * (double) gain / (double) expected);
        return buffer;
}

static void print_last_trim(const json_t *unit) {
        const json_t *last = json_object_get(unit, "last_trim");
        time_t at = (time_t) (member_integer(last, "at_usec", 0) / (json_int_t) MG_USEC_PER_SEC);
        char when[64] = "-";
        char share[32];
        struct tm local;

        printf("     Trims: %s, %s given back; would have trimmed %s times\n",
               member_text(unit, "trims"), member_size(unit, "trimmed_bytes"),
               member_text(unit, "would_trim"));
        if (!json_is_object(last))
                return;
        if (localtime_r(&at, &local))
                strftime(when, sizeof(when), "%a %Y-%m-%d %H:%M:%S %Z", &local);
        printf(" Last trim: %s: %s, %s of %s expected%s: anon %s -> %s, took %s, worst pause %s\n",
               when, member_text(last, "result"), member_size(last, "gain_bytes"),
               member_size(last, "expected_bytes"), share_of_expected(last, share, sizeof(share)),
               member_size(last, "before_bytes"), member_size(last, "after_bytes"),
               member_duration(last, "duration_usec"), member_duration(last, "pause_usec"));
}

static int print_decision(const json_t *unit) {
        json_t *explanation MG_CLEANUP(json_decrefp) = NULL;

        int exit_code = client_call(&explanation, "Explain", "s", unit_key(unit));
        if (exit_code != CTL_OK)
                return exit_code;
        printf("  Decision: %s (%s): %s\n", member_text(explanation, "action"),
               member_text(explanation, "reason"), member_text(explanation, "text"));
        return CTL_OK;
}

static int print_processes(const json_t *unit) {
        json_t *processes MG_CLEANUP(json_decrefp) = NULL;

        int exit_code = client_call(&processes, "ListProcesses", "s", unit_key(unit));
        if (exit_code != CTL_OK)
                return exit_code;
        if (json_array_size(processes) == 0)
                return CTL_OK;
        putchar('\n');
        return processes_print(processes, false);
}

int unit_detail_print(const json_t *unit) {
        printf("%s%s%s\n", colors_enabled() ? "\x1b[0;1m" : "", member_text(unit, "unit"),
               colors_enabled() ? "\x1b[0m" : "");
        printf("      Mode: %s\n", member_text(unit, "mode"));
        printf("    Source: %s %s\n", member_text(unit, "source"),
               json_is_string(json_object_get(unit, "cgroup")) ? member_text(unit, "cgroup") : "");
        print_memory(unit);
        printf(" TrimAbove: %s retained (now %s)\n", member_size(unit, "trim_above_bytes"),
               member_size(unit, "retained_bytes"));
        print_verdict(unit);
        print_last_trim(unit);
        int exit_code = print_decision(unit);
        if (exit_code != CTL_OK)
                return exit_code;
        return print_processes(unit);
}
