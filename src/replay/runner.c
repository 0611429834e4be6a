/* SPDX-License-Identifier: MIT */
/* One run of one variant, step by step. What happens meanwhile is run_loop.c's. Layer: replay. */
#include "replay/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/text.h"
#include "host/cleanup.h"
#include "host/clock.h"
#include "replay/effect.h"
#include "replay/places.h"
#include "replay/run.h"

/* Between two tries of --ready. */
#define READY_INTERVAL_USEC (200 * MG_USEC_PER_MSEC)

/* The loader needs a moment; what is not there after this will not come. */
#define EFFECT_USEC          (5 * MG_USEC_PER_SEC)
#define EFFECT_INTERVAL_USEC (20 * MG_USEC_PER_MSEC)

int harness_init(struct harness *harness, const struct run_options *options) {
        sigset_t signals;

        *harness = (struct harness){ .options = options, .signal_fd = -EBADF };
        sigemptyset(&signals);
        sigaddset(&signals, SIGINT);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGHUP);
        sigaddset(&signals, SIGCHLD);
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
            sigprocmask(SIG_BLOCK, &signals, &harness->signals_before) < 0)
                return -errno;
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN); /* a limit on files is a full disk like any other */
        harness->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
        if (harness->signal_fd < 0)
                return -errno;
        harness->progress.shown = !options->quiet && isatty(STDERR_FILENO);
        harness->progress.floor_usec = options->floor_usec;
        return 0;
}

void harness_done(struct harness *harness) {
        file_closep(&harness->signal_fd);
        sigprocmask(SIG_SETMASK, &harness->signals_before, NULL);
}

uint64_t run_expected_usec(const struct run_options *options) {
        return options->settle_usec + options->warmup_usec + options->duration_usec +
               options->idle_usec;
}

/* ---- Beginning ---- */

static int open_files(struct run *run) {
        const char *directory = run->harness->options->directory;
        MG_CLEANUP(freep) char *csv = NULL;
        MG_CLEANUP(freep) char *log = NULL;

        if (asprintf(&csv, "%s/%s.%" PRIu64 ".csv", directory, run->variant->label, run->round) <
                            0 ||
            asprintf(&log, "%s/%s.%" PRIu64 ".log", directory, run->variant->label, run->round) < 0)
                return -ENOMEM;
        int r = csv_create(&run->csv, csv);
        if (r < 0)
                return r;
        run->log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
        return run->log_fd < 0 ? -errno : 0;
}

static void put_command(struct csv_writer *csv, char **argv) {
        char text[1024];
        struct mg_text command;

        text_init(&command, text, sizeof(text));
        for (size_t i = 0; argv[i]; i++) {
                if (i > 0)
                        text_put_char(&command, ' ');
                text_put(&command, argv[i]);
        }
        csv_put_value(csv, "program", text);
}

/* What the caller's environment sets already holds for every variant alike, and is worth a word. */
static void put_inherited(struct run *run) {
        static const char *const prefixes[] = { "MALLOC_",
                                                "GLIBC_TUNABLES=", "LD_PRELOAD=", "MIMALLOC_",
                                                "TCMALLOC_" };
        char note[512];

        for (char **setting = environ; *setting; setting++)
                for (size_t i = 0; i < MG_ELEMENTS(prefixes); i++)
                        if (strncmp(*setting, prefixes[i], strlen(prefixes[i])) == 0) {
                                snprintf(note, sizeof(note), "the environment had %.400s",
                                         *setting);
                                csv_put_value(&run->csv, "note", note);
                        }
}

static void put_head(struct run *run) {
        const struct run_options *options = run->harness->options;
        char when[32] = "";
        time_t now = time(NULL);
        struct tm utc;

        if (gmtime_r(&now, &utc))
                strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
        csv_put_value(&run->csv, "variant", run->variant->text);
        csv_put_value(&run->csv, "settings", run->variant->settings);
        csv_put_number(&run->csv, "round", run->round);
        csv_put_number(&run->csv, "sequence", run->harness->sequence++);
        csv_put_value(&run->csv, "started", when);
        put_command(&run->csv, options->program);
        if (options->load)
                csv_put_value(&run->csv, "load", options->load);
        csv_put_number(&run->csv, "floor_usec", options->floor_usec);
        csv_put_number(&run->csv, "sample_usec", options->sample_usec);
        put_inherited(run);
}

/* The library that a variant needs, by its name in messages. */
static bool find_parts(struct run *run) {
        struct variant *variant = run->variant;
        const struct run_options *options = run->harness->options;
        enum place missing = _PLACE_MAX;

        if (variant_find_library(variant) < 0) {
                if (variant->package)
                        run_end(run, END_NOT_STARTED, "no %s here: install the Debian package %s",
                                variant->wants, variant->package);
                else
                        run_end(run, END_NOT_STARTED, "%s cannot be read", variant->library);
                return false;
        }
        if (variant->has_agent && place_find(PLACE_AGENT, options->agent, &run->agent) < 0)
                missing = PLACE_AGENT;
        else if (variant->has_agent &&
                 place_find(PLACE_MEMGUARDD, options->memguardd, &run->memguardd) < 0)
                missing = PLACE_MEMGUARDD;
        else if (variant->trim_every_usec > 0 &&
                 place_find(PLACE_TRIM_EVERY, NULL, &run->trimmer) < 0)
                missing = PLACE_TRIM_EVERY;
        if (missing != _PLACE_MAX)
                run_end(run, END_NOT_STARTED, "%s is not found", place_name(missing));
        return missing == _PLACE_MAX;
}

static bool start_daemon(struct run *run) {
        if (!run->variant->has_agent)
                return true;
        int r = private_daemon_start(&run->daemon, run->memguardd, run->variant, run->log_fd);
        if (r >= 0)
                return true;
        run_end(run, END_NOT_STARTED, "its memguardd did not start (%s): see the log",
                strerror(-r));
        return false;
}

/* ---- The program ---- */

static int make_preload(const struct run *run, char **ret_preload) {
        const char *parts[] = { run->agent, run->trimmer, run->variant->library };
        char text[4096];
        struct mg_text preload;

        text_init(&preload, text, sizeof(text));
        for (size_t i = 0; i < MG_ELEMENTS(parts); i++) {
                if (!parts[i])
                        continue;
                if (preload.length > 0)
                        text_put_char(&preload, ':');
                text_put(&preload, parts[i]);
        }
        *ret_preload = NULL;
        if (preload.overflow)
                return -ENAMETOOLONG;
        if (preload.length > 0 && !(*ret_preload = strdup(text)))
                return -ENOMEM;
        return 0;
}

static int prepare_program(struct run *run) {
        MG_CLEANUP(freep) char *preload = NULL;
        MG_CLEANUP(freep) char *socket = NULL;
        MG_CLEANUP(freep) char *interval = NULL;
        char *environment[VARIANT_SETTINGS_MAX + 3];
        size_t n = 0;

        for (; n < run->variant->n_environment; n++)
                environment[n] = run->variant->environment[n];
        environment[n++] = (char *) REPLAY_PROGRAM_MARK;
        if (run->daemon.socket) {
                if (asprintf(&socket, "MEMGUARD_SOCKET=%s", run->daemon.socket) < 0)
                        return -ENOMEM;
                environment[n++] = socket;
        }
        if (run->trimmer) {
                if (asprintf(&interval, "MEMGUARD_TRIM_EVERY_USEC=%" PRIu64,
                             run->variant->trim_every_usec) < 0)
                        return -ENOMEM;
                environment[n++] = interval;
        }
        int r = make_preload(run, &preload);
        if (r < 0)
                return r;
        struct child_request request = {
                .argv = run->harness->options->program,
                .environment = environment,
                .n_environment = n,
                .preload = preload,
                .output_fd = -EBADF,
                .signals = run->harness->signals_before,
        };
        return child_prepare(&request, &run->program);
}

static void choose_source(struct run *run) {
        const struct run_options *options = run->harness->options;

        scope_init(&run->scope);
        int r = options->no_scope ? -EOPNOTSUPP
                                  : scope_open(&run->scope, run->program.pid, options->memory_max);

        if (r < 0 && r != -EOPNOTSUPP) {
                char note[256];
                snprintf(note, sizeof(note), "no scope of its own (%s): numbers are from /proc",
                         strerror(-r));
                csv_put_value(&run->csv, "note", note);
        }
        csv_put_value(&run->csv, "source", run->scope.has_cgroup ? "cgroup" : "proc");
}

static bool start_program(struct run *run) {
        int r = prepare_program(run);

        if (r < 0) {
                run_end(run, END_NOT_STARTED, "cannot start a process: %s", strerror(-r));
                return false;
        }
        choose_source(run);
        run_begin(run); /* the clock and the samples start here */
        r = child_go(&run->program);
        if (r < 0)
                run_end(run, END_NOT_STARTED, "cannot execute %s: %s",
                        run->harness->options->program[0], strerror(-r));
        return r >= 0;
}

/* ---- Ready ---- */

static bool start_shell(struct run *run, const char *command, struct child *ret_child) {
        char pid[64];
        char *argv[] = { (char *) "sh", (char *) "-c", (char *) command, NULL };
        char *environment[] = { (char *) REPLAY_LOAD_MARK, pid };
        struct child_request request = {
                .argv = argv,
                .environment = environment,
                .n_environment = MG_ELEMENTS(environment),
                .output_fd = -EBADF,
                .signals = run->harness->signals_before,
        };

        snprintf(pid, sizeof(pid), "MEMGUARD_REPLAY_PID=%d", (int) run->program.pid);
        int r = child_prepare(&request, ret_child);
        if (r >= 0)
                r = child_go(ret_child);
        if (r < 0)
                run_end(run, END_LOAD_FAILED, "cannot run \"%s\": %s", command, strerror(-r));
        return r >= 0;
}

/* True when --ready said yes. */
static bool ask_ready(struct run *run) {
        if (!start_shell(run, run->harness->options->ready, &run->load))
                return false;
        uint64_t until = run->started_usec + run->harness->options->ready_timeout_usec;
        run_until(run, until, WAIT_LOAD);
        if (run->load.pid == 0)
                return run->load_status == 0;
        run_kill_load(run);
        return false;
}

static bool wait_ready(struct run *run) {
        const struct run_options *options = run->harness->options;
        uint64_t until = run->started_usec + options->ready_timeout_usec;

        while (options->ready && !run->ended && !ask_ready(run)) {
                if (!run->ended && clock_now_usec() >= until)
                        run_end(run, END_NOT_STARTED, "\"%s\" never succeeded", options->ready);
                run_until(run, clock_now_usec() + READY_INTERVAL_USEC, WAIT_TIME);
        }
        run_until(run, clock_now_usec() + options->settle_usec, WAIT_TIME);
        return !run->ended;
}

/* The first thing that is asked for and not there; NULL: all of it is. */
static const char *find_lacking(const struct run *run) {
        const char *libraries[] = { run->variant->library, run->agent, run->trimmer };
        pid_t pid = run->program.pid;

        for (size_t i = 0; i < MG_ELEMENTS(libraries); i++)
                if (libraries[i] && effect_library(pid, libraries[i]) == EFFECT_NO)
                        return libraries[i];
        for (size_t i = 0; i < run->variant->n_environment; i++)
                if (effect_setting(pid, run->variant->environment[i]) == EFFECT_NO)
                        return run->variant->environment[i];
        return NULL;
}

static bool check_effect(struct run *run) {
        uint64_t until = clock_now_usec() + EFFECT_USEC;
        const char *lacking = NULL;

        while (!run->ended && (lacking = find_lacking(run)) && clock_now_usec() < until)
                run_until(run, clock_now_usec() + EFFECT_INTERVAL_USEC, WAIT_TIME);
        if (lacking)
                run_end(run, END_NOT_IN_EFFECT,
                        "%s is not in effect: the program is static, set-uid, of another libc, or sets its own environment",
                        lacking);
        return !run->ended;
}

/* ---- Load and end ---- */

static void run_load(struct run *run) {
        const struct run_options *options = run->harness->options;

        if (options->load && !start_shell(run, options->load, &run->load))
                return;
        run->has_load = options->load != NULL;
        uint64_t began = clock_now_usec();
        run->phase = PHASE_WARMUP;
        run_until(run, began + options->warmup_usec, WAIT_LOAD_OVER);
        if (!check_effect(run)) /* again: a wrapper may have executed the real program meanwhile */
                return;
        run->phase = PHASE_LOAD;
        run_until(run, began + options->warmup_usec + options->duration_usec, WAIT_LOAD_OVER);
        if (!run->ended && !options->load && options->idle_usec > 0 && !run->told.load_over)
                csv_put_value(&run->csv, "note",
                              "the load did not end: what follows is no idle time");
        run->has_load = false;
        run_stop_load(run);
        run->phase = PHASE_IDLE;
        if (options->idle_usec > 0)
                run_until(run, clock_now_usec() + options->idle_usec, WAIT_TIME);
        if (!run->ended)
                run_sample(run);
}

static void run_steps(struct run *run) {
        if (find_parts(run) && start_daemon(run) && start_program(run) && wait_ready(run) &&
            check_effect(run))
                run_load(run);
        if (run->variant->has_agent && !run->agent_seen)
                run_end(run, END_NOT_IN_EFFECT,
                        "the agent never reported: a program with one thread wants thread=always");
        run_end(run, END_FINISHED, NULL);
}

static void put_end(struct run *run) {
        char text[TOLD_TEXT_MAX];

        told_format(&run->told, text);
        if (text[0] != '\0')
                csv_put_value(&run->csv, "told", text);
        if (run->end == END_OOM)
                csv_put_number(&run->csv, "oom_usec", run->end_usec);
        csv_put_value(&run->csv, "end", end_to_string(run->end));
        if (run->end_text[0] != '\0')
                csv_put_value(&run->csv, "end_text", run->end_text);
        int r = csv_close(&run->csv);
        if (r < 0 && run->end != END_NOT_WRITTEN) {
                run->end = END_NOT_WRITTEN;
                snprintf(run->end_text, sizeof(run->end_text), "cannot write the samples: %s",
                         strerror(-r));
        }
}

static void report_end(const struct run *run) {
        progress_clear(&run->harness->progress);
        if (run->end != END_FINISHED && run->end_text[0] != '\0')
                fprintf(stderr, "memguard-replay: %s, round %" PRIu64 ": %s\n", run->variant->text,
                        run->round, run->end_text);
}

int run_variant(struct harness *harness,
                struct variant *variant,
                uint64_t round,
                enum replay_end *ret_end) {
        struct run run = {
                .harness = harness,
                .variant = variant,
                .round = round,
                .log_fd = -EBADF,
                .program = CHILD_NONE,
                .load = CHILD_NONE,
                .daemon = PRIVATE_DAEMON_NONE,
        };

        told_init(&run.told);
        int r = open_files(&run);
        if (r >= 0) {
                put_head(&run);
                run_steps(&run);
                run_stop(&run);
                put_end(&run);
                report_end(&run);
                *ret_end = run.end;
        }
        csv_close(&run.csv);
        file_closep(&run.log_fd);
        free(run.agent);
        free(run.memguardd);
        free(run.trimmer);
        return r;
}
