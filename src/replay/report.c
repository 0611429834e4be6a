/* SPDX-License-Identifier: MIT */
/* The verb report: load, show, judge. Layer: replay. */
#include "replay/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "host/cleanup.h"
#include "host/printable.h"
#include "replay/chart.h"
#include "replay/show.h"

static int fail(const char *what, int error) {
        fprintf(stderr, "memguard-replay: %s: %s\n", what, strerror(-error));
        return EXIT_NOT_MEASURED;
}

static int show(const struct report_options *options, const json_t *model) {
        size_t flags = options->format == REPORT_JSON_PRETTY ? JSON_INDENT(8) : JSON_COMPACT;
        int r = 0;

        switch (options->format) {
        case REPORT_TABLE:
                r = show_table(model);
                if (r == 0 && options->floors) {
                        putchar('\n');
                        r = show_floors(model);
                }
                break;
        case REPORT_JSON_PRETTY:
        case REPORT_JSON_SHORT:
                r = json_dumpf(model, stdout, flags | JSON_REAL_PRECISION(6));
                putchar('\n');
                break;
        case REPORT_CSV:
                r = show_csv(model);
                break;
        case REPORT_NONE:
                break;
        }
        if (fflush(stdout) != 0 || ferror(stdout))
                return -EIO;
        return r;
}

static void draw(const struct results *results, const char *file) {
        int r = chart_write(results, file);

        if (r == -ENOPKG)
                fputs("memguard-replay: no chart: gnuplot is not installed\n", stderr);
        else if (r == -EINVAL)
                fprintf(stderr, "memguard-replay: %s: a chart's name ends in .svg or .png\n", file);
        else if (r < 0)
                fprintf(stderr, "memguard-replay: no chart in %s: %s\n", file, strerror(-r));
}

/* ---- The exit code ---- */

static enum replay_exit exit_of(enum replay_verdict verdict) {
        switch (verdict) {
        case VERDICT_FLAT:
                return EXIT_FLAT;
        case VERDICT_GROWING:
        case VERDICT_OOM:
                return EXIT_GROWING;
        case VERDICT_UNCLEAR:
        case VERDICT_FAILED:
        case _VERDICT_MAX:
                break;
        }
        return EXIT_NOT_MEASURED;
}

/* More than the baseline by so much that it is no chance. */
static bool has_risen(const struct group *now, const struct group *before, uint32_t permyriad) {
        if (now->mean_bytes == MG_UNKNOWN)
                return false;
        if (now->mean_bytes <=
            mg_add_cap(before->mean_bytes, mg_scale(before->mean_bytes, permyriad, 10000)))
                return false;
        fprintf(stderr,
                "memguard-replay: %s: its mean is more than %u.%02u %% above the baseline's\n",
                now->variant, permyriad / 100, permyriad % 100);
        return true;
}

struct weighed {
        bool grows;
        bool unknown;
        bool any;
};

static void weigh(
                const struct report_options *options,
                const struct results *baseline,
                const struct group *group,
                struct weighed *weighed) {
        const struct group *before = results_find(baseline, group->variant);

        weighed->any = true;
        weighed->grows |= exit_of(group->verdict) == EXIT_GROWING;
        weighed->unknown |= exit_of(group->verdict) == EXIT_NOT_MEASURED;
        if (!options->baseline)
                return;
        if (!before || before->mean_bytes == MG_UNKNOWN) {
                fprintf(stderr, "memguard-replay: %s: the baseline has no run of that name\n",
                        group->variant);
                weighed->unknown = true;
        } else
                weighed->grows |= has_risen(group, before, options->max_rise_permyriad);
}

/* The group that LIST begins with the name of, or NULL. Names have commas of their own: the longest one is meant. */
static const struct group *named_first(const struct results *results, const char *list) {
        const struct group *longest = NULL;

        for (size_t i = 0; i < results->n_groups; i++) {
                const struct group *group = &results->groups[i];
                size_t length = strlen(group->variant);

                if (strncmp(list, group->variant, length) != 0 ||
                    (list[length] != '\0' && list[length] != ','))
                        continue;
                if (!longest || length > strlen(longest->variant))
                        longest = group;
        }
        return longest;
}

/* A name that is nobody's must not pass for one that is flat. */
static void weigh_listed(
                const struct report_options *options,
                const struct results *results,
                const struct results *baseline,
                struct weighed *weighed) {
        MG_CLEANUP(freep) char *list = printable_copy(options->judged);
        const char *at = list;

        if (!list) {
                fail("cannot judge", -ENOMEM);
                weighed->unknown = true;
                return;
        }
        while (*at != '\0') {
                const struct group *group = named_first(results, at);
                size_t length = group ? strlen(group->variant) : strcspn(at, ",");

                if (group)
                        weigh(options, baseline, group, weighed);
                else if (length > 0) {
                        fprintf(stderr, "memguard-replay: none of the runs is called %.*s\n",
                                (int) length, at);
                        weighed->unknown = true;
                }
                at += length;
                at += *at == ',';
        }
        if (!weighed->any && !weighed->unknown)
                fputs("memguard-replay: --judge= names no run\n", stderr);
}

/* What grew is worth more than what could not be measured. */
static enum replay_exit judge(
                const struct report_options *options,
                const struct results *results,
                const struct results *baseline) {
        struct weighed weighed = { .unknown = results->n_unread > 0 || baseline->n_unread > 0 };

        if (options->judged)
                weigh_listed(options, results, baseline, &weighed);
        else
                for (size_t i = 0; i < results->n_groups; i++)
                        weigh(options, baseline, &results->groups[i], &weighed);
        if (weighed.grows)
                return EXIT_GROWING;
        return weighed.unknown || !weighed.any ? EXIT_NOT_MEASURED : EXIT_FLAT;
}

static int load(const char *directory, uint64_t max_slope, struct results *results) {
        int r = results_load(directory, max_slope, results);

        if (r == -ENOENT)
                fprintf(stderr, "memguard-replay: %s: no runs in there\n", directory);
        else if (r < 0)
                fail(directory, r);
        return r;
}

int report(const struct report_options *options) {
        MG_CLEANUP(results_done) struct results results = {};
        MG_CLEANUP(results_done) struct results baseline = {};
        MG_CLEANUP(json_decrefp) json_t *model = NULL;
        int r;

        if (load(options->directory, options->max_slope, &results) < 0 ||
            (options->baseline && load(options->baseline, options->max_slope, &baseline) < 0))
                return EXIT_NOT_MEASURED;
        model = results_to_json(&results);
        r = model ? json_add_baseline(model, &baseline) : -ENOMEM;
        if (r >= 0)
                r = show(options, model);
        if (r < 0)
                return fail("cannot show the results", r);
        if (options->chart)
                draw(&results, options->chart);
        return judge(options, &results, &baseline);
}
