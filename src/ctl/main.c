/* SPDX-License-Identifier: MIT */
/*
 * memguardctl: options, the table of verbs, help. Each verb lives in a file of its own and talks to the daemon
 * through client.h. Layer: ctl.
 */
#include <getopt.h>
#include <limits.h>
#include <locale.h>
#include <stdio.h>
#include <unistd.h>

#include "base/macros.h"
#include "ctl/check_config.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/simulate.h"

struct ctl_options ctl_options;

enum {
        OPTION_VERSION = 256,
        OPTION_RUNTIME_DIRECTORY,
        OPTION_CONFIG,
        OPTION_JSON,
        OPTION_NO_PAGER,
        OPTION_NO_LEGEND,
        OPTION_DRY_RUN,
        OPTION_ALL,
        OPTION_RESTART,
        OPTION_PRINT,
        OPTION_USER,
        OPTION_ROOT,
        OPTION_SINCE,
        OPTION_OUTPUT,
        OPTION_INTERVAL,
};

/* Sets of options: which a verb has, which were given. */
#define BIT(option)  (1U << ((option) -OPTION_VERSION))
#define OF_ENROLLING (BIT(OPTION_RESTART) | BIT(OPTION_USER) | BIT(OPTION_ROOT))
#define OF_EVERY_VERB                                                             \
        (BIT(OPTION_VERSION) | BIT(OPTION_RUNTIME_DIRECTORY) | BIT(OPTION_JSON) | \
         BIT(OPTION_NO_PAGER) | BIT(OPTION_NO_LEGEND))

struct verb {
        const char *name;
        const char *arguments;
        int min_arguments;
        int max_arguments;
        ctl_verb run;
        const char *help;
        unsigned options; /* besides OF_EVERY_VERB */
};

static const struct verb verbs[] = {
        { "status", "[UNIT...]", 0, INT_MAX, verb_status,
          "The host and a row a unit; with names, each in detail (default)" },
        { "list-processes", "[UNIT]", 0, 1, verb_list_processes,
          "Processes, their allocators and agents" },
        { "top", "", 0, 0, verb_top, "The units or their processes, kept up to date on the screen",
          BIT(OPTION_INTERVAL) },
        { "history", "UNIT", 1, 1, verb_history, "What it looked like, and its trims",
          BIT(OPTION_SINCE) },
        { "plot", "UNIT", 1, 1, verb_plot, "The same drawn, on the terminal or into a file",
          BIT(OPTION_SINCE) | BIT(OPTION_OUTPUT) },
        { "survey", "", 0, 0, verb_survey,
          "Rank the units that an agent would help; needs no daemon" },
        { "enroll", "UNIT", 1, 1, verb_enroll,
          "Give a service an agent, to be observed; says what it writes",
          OF_ENROLLING | BIT(OPTION_PRINT) },
        { "withdraw", "UNIT", 1, 1, verb_withdraw, "Take back what enroll wrote", OF_ENROLLING },
        { "explain", "UNIT", 1, 1, verb_explain,
          "Each condition of the last decision, and which one decided" },
        { "advise", "UNIT", 1, 1, verb_advise,
          "What to change for it, what that should bring, and how sure it is" },
        { "trim", "UNIT", 1, 1, verb_trim,
          "Trim now, whatever Mode= says; never past MaxPause=", BIT(OPTION_DRY_RUN) },
        { "pause", "UNIT|--all", 0, 1, verb_pause, "Stop trimming until resumed, over restarts",
          BIT(OPTION_ALL) },
        { "resume", "UNIT|--all", 0, 1, verb_resume, "End a pause; closes an open breaker too",
          BIT(OPTION_ALL) },
        { "reload", "", 0, 0, verb_reload, "Make memguardd read its configuration again" },
        { "check-config", "[FILE]", 0, 1, verb_check_config,
          "Say what is wrong with the configuration", BIT(OPTION_CONFIG) },
        { "cat-config", "[FILE]", 0, 1, verb_cat_config,
          "Show the configuration files as they apply", BIT(OPTION_CONFIG) },
        { "simulate", "TRACE", 1, 1, verb_simulate, "Run a recorded trace through the policy",
          BIT(OPTION_CONFIG) },
        { "log-level", "[LEVEL]", 0, 1, verb_log_level, "Show or set the daemon's log level" },
};

static const struct option long_options[] = {
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, OPTION_VERSION },
        { "runtime-directory", required_argument, NULL, OPTION_RUNTIME_DIRECTORY },
        { "config", required_argument, NULL, OPTION_CONFIG },
        { "json", required_argument, NULL, OPTION_JSON },
        { "no-pager", no_argument, NULL, OPTION_NO_PAGER },
        { "no-legend", no_argument, NULL, OPTION_NO_LEGEND },
        { "dry-run", no_argument, NULL, OPTION_DRY_RUN },
        { "all", no_argument, NULL, OPTION_ALL },
        { "restart", no_argument, NULL, OPTION_RESTART },
        { "print", no_argument, NULL, OPTION_PRINT },
        { "user", no_argument, NULL, OPTION_USER },
        { "root", required_argument, NULL, OPTION_ROOT },
        { "since", required_argument, NULL, OPTION_SINCE },
        { "output", required_argument, NULL, OPTION_OUTPUT },
        { "interval", required_argument, NULL, OPTION_INTERVAL },
        {},
};

static void print_help(void) {
        puts("memguardctl [OPTIONS...] COMMAND ...\n"
             "\n"
             "Look at and steer memguardd, which gives back the memory that allocators keep.\n"
             "\n"
             "Commands:");
        for (size_t i = 0; i < MG_ELEMENTS(verbs); i++)
                printf("  %-15s %-11s %s\n", verbs[i].name, verbs[i].arguments, verbs[i].help);
        puts("\n"
             "Options:\n"
             "  -h --help                  Show this help\n"
             "     --version               Show the version\n"
             "     --runtime-directory=DIR Talk to the daemon that runs there\n"
             "     --config=FILE           check-config, cat-config, simulate: not the system's\n"
             "     --json=MODE             Print JSON: pretty, short, or off\n"
             "  -j                         Like --json=pretty on a terminal, else --json=short\n"
             "     --no-pager              Do not pipe output into a pager\n"
             "     --no-legend             Leave out headers and the host line\n"
             "     --dry-run               trim: only say what it would bring\n"
             "     --all                   pause, resume: every unit\n"
             "     --restart               enroll, withdraw: restart the service at once\n"
             "     --print                 enroll: only say what would be written, and why\n"
             "     --since=TIME            history, plot: leave out what is older\n"
             "  -o --output=FILE           plot: draw into FILE, .svg or .png\n"
             "     --interval=TIME         top: refresh so often\n"
             "     --user                  enroll, withdraw: a unit of the calling user\n"
             "     --root=DIR              enroll, withdraw: write below DIR alone\n"
             "\n"
             "See memguardctl(1).");
}

static int parse_json_mode(const char *name) {
        static const char *const names[] = {
                [JSON_OFF] = "off",
                [JSON_SHORT] = "short",
                [JSON_PRETTY] = "pretty",
        };

        for (size_t mode = 0; mode < MG_ELEMENTS(names); mode++) {
                if (!mg_streq(names[mode], name))
                        continue;
                ctl_options.json = (enum json_mode) mode;
                return 0;
        }
        fprintf(stderr, "memguardctl: --json=%s: expected pretty, short or off\n", name);
        return -1;
}

/* Returns -1 to go on, else the exit code. */
static int apply_option(int option) {
        switch (option) {
        case 'h':
                print_help();
                return CTL_OK;
        case 'j':
                ctl_options.json = isatty(STDOUT_FILENO) ? JSON_PRETTY : JSON_SHORT;
                return -1;
        case OPTION_VERSION:
                puts("memguard " MG_VERSION);
                return CTL_OK;
        case OPTION_RUNTIME_DIRECTORY:
                ctl_options.runtime_directory = optarg;
                return -1;
        case OPTION_CONFIG:
                ctl_options.config_file = optarg;
                return -1;
        case OPTION_JSON:
                return parse_json_mode(optarg) < 0 ? CTL_USAGE : -1;
        case OPTION_NO_PAGER:
                ctl_options.no_pager = true;
                return -1;
        case OPTION_NO_LEGEND:
                ctl_options.no_legend = true;
                return -1;
        case OPTION_DRY_RUN:
                ctl_options.dry_run = true;
                return -1;
        case OPTION_ALL:
                ctl_options.all = true;
                return -1;
        case OPTION_RESTART:
                ctl_options.restart = true;
                return -1;
        case OPTION_PRINT:
                ctl_options.print = true;
                return -1;
        case OPTION_USER:
                ctl_options.user = true;
                return -1;
        case OPTION_SINCE:
                ctl_options.since = optarg;
                return -1;
        case OPTION_OUTPUT:
                ctl_options.output = optarg;
                return -1;
        case OPTION_INTERVAL:
                ctl_options.interval = optarg;
                return -1;
        case OPTION_ROOT:
                ctl_options.root = optarg;
                return -1;
        default:
                return CTL_USAGE; /* getopt has said why */
        }
}

static const struct verb *find_verb(const char *name) {
        for (size_t i = 0; i < MG_ELEMENTS(verbs); i++)
                if (mg_streq(verbs[i].name, name))
                        return &verbs[i];
        return NULL;
}

/* An option that would be ignored may be what its user relies on: --dry-run. */
static int check_options(const struct verb *verb, unsigned given) {
        unsigned strange = given & ~(verb->options | OF_EVERY_VERB);

        if (strange == 0)
                return CTL_OK;
        for (const struct option *option = long_options; option->name; option++)
                if (option->val >= OPTION_VERSION && (strange & BIT(option->val)))
                        fprintf(stderr, "memguardctl: %s has no --%s\n", verb->name, option->name);
        return CTL_USAGE;
}

/* On the bus an empty name is every unit: an unset variable of a script's must never be. */
static int check_arguments(const struct verb *verb, int argc, char **argv) {
        bool empty = false;

        for (int i = 1; i < argc; i++)
                empty = empty || argv[i][0] == '\0';
        if (argc - 1 >= verb->min_arguments && argc - 1 <= verb->max_arguments && !empty)
                return CTL_OK;
        fprintf(stderr, "memguardctl: %s takes: %s %s%s\n", verb->name, verb->name, verb->arguments,
                empty ? ", and no empty argument" : "");
        return CTL_USAGE;
}

static int run_verb(unsigned given, int argc, char **argv) {
        const struct verb *verb = find_verb(argv[0]);

        if (!verb) {
                fprintf(stderr, "memguardctl: unknown command \"%s\"; --help lists them\n",
                        argv[0]);
                return CTL_USAGE;
        }
        int exit_code = check_options(verb, given);
        if (exit_code == CTL_OK)
                exit_code = check_arguments(verb, argc, argv);
        if (exit_code != CTL_OK)
                return exit_code;
        exit_code = verb->run(argc, argv);
        int output_code = pager_close();
        return exit_code != CTL_OK ? exit_code : output_code;
}

int main(int argc, char **argv) {
        unsigned given = 0;
        int option;

        setlocale(LC_CTYPE, ""); /* libsmartcols counts columns of UTF-8 */
        while ((option = getopt_long(argc, argv, "hjo:", long_options, NULL)) >= 0) {
                if (option == 'o')
                        option = OPTION_OUTPUT;
                int exit_code = apply_option(option);
                if (exit_code >= 0)
                        return exit_code;
                given |= option >= OPTION_VERSION ? BIT(option) : 0;
        }
        if (optind == argc) {
                char *only_status[] = { (char *) "status", NULL };
                return run_verb(given, 1, only_status);
        }
        return run_verb(given, argc - optind, argv + optind);
}
