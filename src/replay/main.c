/* SPDX-License-Identifier: MIT */
/* memguard-replay: verbs, one table of options for both, help. Layer: replay. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/parse.h"
#include "host/cleanup.h"
#include "replay/campaign.h"
#include "replay/report.h"

static struct run_options run = {
        .sample_usec = 2 * MG_USEC_PER_SEC,
        .floor_usec = MG_USEC_PER_MIN,
        .warmup_usec = MG_UNKNOWN,
        .duration_usec = 15 * MG_USEC_PER_MIN,
        .ready_timeout_usec = MG_USEC_PER_MIN,
        .stop_timeout_usec = 10 * MG_USEC_PER_SEC,
        .memory_max = MG_UNKNOWN,
        .repeat = 1,
};
static struct report_options reporting = {
        .max_slope = DEFAULT_MAX_SLOPE,
        .max_rise_permyriad = DEFAULT_MAX_RISE_PERMYRIAD,
};

static int add_variant(const char *value) {
        MG_CLEANUP(freep) char *message = NULL;
        int r;

        if (run.n_variants == VARIANTS_MAX) {
                fprintf(stderr, "memguard-replay: more than %d variants\n", VARIANTS_MAX);
                return -EINVAL;
        }
        r = variant_parse(value, &run.variants[run.n_variants], &message);
        if (r < 0) {
                fprintf(stderr, "memguard-replay: %s\n", message ?: strerror(-r));
                return r;
        }
        for (size_t i = 0; i < run.n_variants; i++)
                if (mg_streq(run.variants[i].label, run.variants[run.n_variants].label)) {
                        fprintf(stderr, "memguard-replay: variant %s twice\n", value);
                        return -EINVAL;
                }
        run.n_variants++;
        return 0;
}

static int parse_json_mode(const char *value) {
        if (mg_streq(value, "pretty"))
                reporting.format = REPORT_JSON_PRETTY;
        else if (mg_streq(value, "short"))
                reporting.format = REPORT_JSON_SHORT;
        else if (mg_streq(value, "off"))
                reporting.format = REPORT_TABLE;
        else
                return -EINVAL;
        return 0;
}

static int parse_positive(const char *value, uint64_t *ret_usec) {
        uint64_t usec;
        int r = parse_duration(value, &usec);

        if (r < 0 || usec == 0 || usec > 30 * 24 * MG_USEC_PER_HOUR)
                return -EINVAL;
        *ret_usec = usec;
        return 0;
}

static int parse_directory(const char *value) {
        run.directory = value;
        return *value ? 0 : -EINVAL;
}

static int parse_repeat(const char *value) {
        return parse_u64(value, &run.repeat) < 0 || run.repeat == 0 || run.repeat > 1000 ? -EINVAL
                                                                                         : 0;
}

enum kind {
        KIND_TEXT,
        KIND_FLAG,
        KIND_TIME, /* may be 0 */
        KIND_POSITIVE,
        KIND_SIZE,
        KIND_PERCENT,
        KIND_OTHER, /* PARSE reads it, and says what is wrong itself where it returns another error than -EINVAL */
};

#define FOR_RUN    1
#define FOR_REPORT 2

static const struct option_entry {
        const char *name;
        const char *value; /* how it is called in the help; NULL: takes none */
        int verbs;
        enum kind kind;
        void *target;
        int (*parse)(const char *value);
        const char *help;
} entries[] = {
        { "variant", "NAME[:KEY=VALUE,...]", FOR_RUN, KIND_OTHER, NULL, add_variant,
          "one more variant; may be given several times (glibc)" },
        { "output", "DIR", FOR_RUN, KIND_OTHER, NULL, parse_directory,
          "-o: where CSVs, logs and the chart go; new, or without runs" },
        { "load", "COMMAND", FOR_RUN, KIND_TEXT, &run.load, NULL,
          "the load, for sh -c; without, the program is its own" },
        { "ready", "COMMAND", FOR_RUN, KIND_TEXT, &run.ready, NULL,
          "tried until it succeeds, before the load starts" },
        { "ready-timeout", "TIME", FOR_RUN, KIND_POSITIVE, &run.ready_timeout_usec, NULL,
          "how long that may take (1min)" },
        { "settle", "TIME", FOR_RUN, KIND_TIME, &run.settle_usec, NULL,
          "a pause before the load starts (0)" },
        { "warmup", "TIME", FOR_RUN, KIND_TIME, &run.warmup_usec, NULL,
          "load that is left out of floors and means (one floor)" },
        { "duration", "TIME", FOR_RUN, KIND_POSITIVE, &run.duration_usec, NULL,
          "load that is measured (15min)" },
        { "idle", "TIME", FOR_RUN, KIND_TIME, &run.idle_usec, NULL,
          "watch the program so long after the load (0)" },
        { "sample", "TIME", FOR_RUN, KIND_POSITIVE, &run.sample_usec, NULL,
          "between two samples (2s)" },
        { "floor", "TIME", FOR_RUN, KIND_POSITIVE, &run.floor_usec, NULL,
          "of so long the lowest sample counts (1min)" },
        { "repeat", "N", FOR_RUN, KIND_OTHER, NULL, parse_repeat,
          "rounds, each with every variant (1)" },
        { "memory-max", "SIZE", FOR_RUN, KIND_SIZE, &run.memory_max, NULL,
          "more than this is out of memory (no limit)" },
        { "stop-timeout", "TIME", FOR_RUN, KIND_TIME, &run.stop_timeout_usec, NULL,
          "between SIGTERM and SIGKILL (10s)" },
        { "memguardd", "FILE", FOR_RUN, KIND_TEXT, &run.memguardd, NULL,
          "the daemon of variant memguard" },
        { "agent", "FILE", FOR_RUN, KIND_TEXT, &run.agent, NULL, "the agent of variant memguard" },
        { "no-scope", NULL, FOR_RUN, KIND_FLAG, &run.no_scope, NULL,
          "measure through /proc even where systemd is there" },
        { "quiet", NULL, FOR_RUN, KIND_FLAG, &run.quiet, NULL,
          "-q: no progress and no report, problems alone" },
        { "max-slope", "SIZE", FOR_RUN | FOR_REPORT, KIND_SIZE, &reporting.max_slope, NULL,
          "an hour; what is steeper grows (512M)" },
        { "judge", "NAMES", FOR_RUN | FOR_REPORT, KIND_TEXT, &reporting.judged, NULL,
          "the variants that make the exit code, with commas (all)" },
        { "baseline", "DIR", FOR_RUN | FOR_REPORT, KIND_TEXT, &reporting.baseline, NULL,
          "compare with the runs in there" },
        { "max-rise", "PERCENT", FOR_RUN | FOR_REPORT, KIND_PERCENT, &reporting.max_rise_permyriad,
          NULL, "how much above the baseline a mean may be (10%)" },
        { "chart", "FILE", FOR_RUN | FOR_REPORT, KIND_TEXT, &reporting.chart, NULL,
          "draw a chart, .svg or .png, by gnuplot (run: DIR/chart.svg)" },
        { "floors", NULL, FOR_RUN | FOR_REPORT, KIND_FLAG, &reporting.floors, NULL,
          "show each floor too" },
        { "json", "MODE", FOR_RUN | FOR_REPORT, KIND_OTHER, NULL, parse_json_mode,
          "print JSON: pretty, short, or off; -j is pretty" },
        { "csv", NULL, FOR_RUN | FOR_REPORT, KIND_OTHER, NULL, NULL, "print CSV" },
        { "help", NULL, FOR_RUN | FOR_REPORT, KIND_OTHER, NULL, NULL, "-h: show this" },
        { "version", NULL, FOR_RUN | FOR_REPORT, KIND_OTHER, NULL, NULL, "show the version" },
};
#define N_ENTRIES MG_ELEMENTS(entries)

static void print_options(int verbs) {
        for (size_t i = 0; i < N_ENTRIES; i++) {
                char left[64];

                if (entries[i].verbs != verbs)
                        continue;
                snprintf(left, sizeof(left), "--%s%s%s", entries[i].name,
                         entries[i].value ? "=" : "", entries[i].value ?: "");
                printf("     %-31s %s\n", left, entries[i].help);
        }
}

static void print_help(void) {
        puts("memguard-replay run [OPTIONS...] -o DIR -- PROGRAM [ARGUMENTS...]\n"
             "memguard-replay report [OPTIONS...] DIR\n"
             "\n"
             "Run a program under the same load with several allocators, and tell retention from a leak.\n"
             "\n"
             "Commands:\n"
             "  run     Measure each variant, then report\n"
             "  report  Floors, slopes, a verdict for each variant\n"
             "\n"
             "Variants:");
        for (size_t i = 0; variant_name(i); i++)
                printf("     %-31s %s\n", variant_name(i), variant_help(i));
        puts("\nOptions of run:");
        print_options(FOR_RUN);
        puts("\nOptions of both:");
        print_options(FOR_RUN | FOR_REPORT);
        puts("\nExit code: 0 flat, 1 growing or out of memory, 2 could not measure.\n"
             "See memguard-replay(1).");
}

static int read_value(const struct option_entry *entry, const char *value) {
        switch (entry->kind) {
        case KIND_TEXT:
                *(const char **) entry->target = value;
                return *value ? 0 : -EINVAL;
        case KIND_FLAG:
                *(bool *) entry->target = true;
                return 0;
        case KIND_TIME:
                return parse_duration(value, entry->target) < 0 ? -EINVAL : 0;
        case KIND_POSITIVE:
                return parse_positive(value, entry->target);
        case KIND_SIZE:
                return parse_size(value, entry->target) < 0 ? -EINVAL : 0;
        case KIND_PERCENT:
                return parse_percent(value, entry->target) < 0 ? -EINVAL : 0;
        case KIND_OTHER:
                break;
        }
        return entry->parse(value);
}

/* Returns -1 to go on, else the exit code. */
static int apply_option(const struct option_entry *entry, const char *value, int verb) {
        if (mg_streq(entry->name, "help")) {
                print_help();
                return 0;
        }
        if (mg_streq(entry->name, "version")) {
                puts("memguard " MG_VERSION);
                return 0;
        }
        if (verb == 0) {
                fprintf(stderr, "memguard-replay: --%s stands behind \"run\" or \"report\"\n",
                        entry->name);
                return EXIT_NOT_MEASURED;
        }
        if (!(entry->verbs & verb)) {
                fprintf(stderr, "memguard-replay: report has no --%s\n", entry->name);
                return EXIT_NOT_MEASURED;
        }
        if (mg_streq(entry->name, "csv")) {
                reporting.format = REPORT_CSV;
                return -1;
        }
        int r = read_value(entry, value);
        if (r == -EINVAL && entry->parse != add_variant)
                fprintf(stderr, "memguard-replay: --%s=%s: expected %s: %s\n", entry->name, value,
                        entry->value, entry->help);
        return r < 0 ? EXIT_NOT_MEASURED : -1;
}

static const struct option_entry *find_entry(const char *name) {
        for (size_t i = 0; i < N_ENTRIES; i++)
                if (mg_streq(entries[i].name, name))
                        return &entries[i];
        return NULL;
}

static const struct option_entry *find_short(int letter, const char **value) {
        switch (letter) {
        case 'o':
                return find_entry("output");
        case 'q':
                return find_entry("quiet");
        case 'j':
                *value = "pretty";
                return find_entry("json");
        case 'h':
                return find_entry("help");
        default:
                return NULL; /* getopt has said what it does not know */
        }
}

static int read_options(int argc, char **argv, int verb) {
        struct option long_options[N_ENTRIES + 1] = {};
        int index;
        int c;

        for (size_t i = 0; i < N_ENTRIES; i++)
                long_options[i] = (struct option){
                        .name = entries[i].name,
                        .has_arg = entries[i].value ? required_argument : no_argument,
                        .val = 256,
                };
        while ((c = getopt_long(argc, argv, verb == FOR_RUN ? "+o:qjh" : "qjh", long_options,
                                &index)) >= 0) {
                const char *value = optarg;
                const struct option_entry *entry =
                                c == 256 ? &entries[index] : find_short(c, &value);
                int exit_code = entry ? apply_option(entry, value, verb) : EXIT_NOT_MEASURED;

                if (exit_code >= 0)
                        return exit_code;
        }
        return -1;
}

static int usage(const char *text) {
        fprintf(stderr, "memguard-replay: %s (see memguard-replay --help)\n", text);
        return EXIT_NOT_MEASURED;
}

static int verb_report(char **arguments) {
        if (!arguments[0] || arguments[1])
                return usage("report takes one directory");
        reporting.directory = arguments[0];
        return report(&reporting);
}

/* The last word: also after Ctrl-C, for what there is. */
static int finish_run(int r) {
        char chart[PATH_MAX];

        if (!reporting.chart &&
            snprintf(chart, sizeof(chart), "%s/chart.svg", run.directory) < (int) sizeof(chart))
                reporting.chart = chart;
        if (run.quiet)
                reporting.format = REPORT_NONE;
        reporting.directory = run.directory;
        int exit_code = report(&reporting);
        return r == 0 ? exit_code : EXIT_NOT_MEASURED;
}

static int verb_run(char **arguments) {
        if (!run.directory)
                return usage("run needs -o DIR");
        if (!arguments[0])
                return usage("run needs a program");
        if (run.floor_usec < run.sample_usec)
                return usage("--floor is shorter than --sample");
        if (run.warmup_usec == MG_UNKNOWN)
                run.warmup_usec = run.floor_usec;
        if (run.n_variants == 0 && add_variant("glibc") < 0)
                return EXIT_NOT_MEASURED;
        run.program = arguments;
        int r = campaign_run(&run);
        if (r == -EEXIST || r == -EINVAL)
                return EXIT_NOT_MEASURED;
        return finish_run(r);
}

int main(int argc, char **argv) {
        int verb;

        setlocale(LC_CTYPE, ""); /* libsmartcols counts columns of UTF-8 */
        if (argc < 2)
                return usage("run or report?");
        if (mg_streq(argv[1], "run"))
                verb = FOR_RUN;
        else if (mg_streq(argv[1], "report"))
                verb = FOR_REPORT;
        else if (argv[1][0] != '-')
                return usage("there are two commands: run and report");
        else
                verb = 0;
        if (verb > 0) {
                argc--;
                argv++;
        }
        int exit_code = read_options(argc, argv, verb);
        if (exit_code < 0)
                exit_code = verb == FOR_RUN      ? verb_run(argv + optind)
                            : verb == FOR_REPORT ? verb_report(argv + optind)
                                                 : usage("run or report?");
        for (size_t i = 0; i < run.n_variants; i++)
                variant_done(&run.variants[i]);
        return exit_code;
}
