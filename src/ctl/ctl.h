/* SPDX-License-Identifier: MIT */
/*
 * What every verb of memguardctl shares: the options, the exit codes, the shape of a verb. Layer: ctl.
 */
#pragma once

#include <stdbool.h>

/* A promise to scripts: memguardctl(1). */
enum ctl_exit {
        CTL_OK = 0,
        CTL_FAILED = 1,
        CTL_USAGE = 2,
        CTL_NO_DAEMON = 3,
        CTL_NO_SUCH_UNIT = 4,
        CTL_DENIED = 5,
};

enum json_mode {
        JSON_OFF,
        JSON_SHORT,
        JSON_PRETTY,
};

struct ctl_options {
        const char *runtime_directory; /* NULL: the system's daemon */
        const char *config_file; /* check-config, cat-config, simulate: NULL is the system's */
        enum json_mode json;
        bool no_pager;
        bool no_legend;
        bool dry_run;
        bool all;
        bool restart;
        bool print;
        bool user;
        const char *since;    /* history, plot: NULL is all there is */
        const char *output;   /* plot: a file; NULL is the terminal */
        const char *interval; /* top: NULL is the default */
        const char *root; /* enroll, withdraw: files go below it, and nothing is put into force */
};

extern struct ctl_options ctl_options;

/* ARGV[0] is the verb. Returns an enum ctl_exit. */
typedef int (*ctl_verb)(int argc, char **argv);

int verb_status(int argc, char **argv);
int verb_enroll(int argc, char **argv);
int verb_withdraw(int argc, char **argv);
int verb_history(int argc, char **argv);
int verb_plot(int argc, char **argv);
int verb_top(int argc, char **argv);
int verb_survey(int argc, char **argv);
int verb_list_processes(int argc, char **argv);
int verb_trim(int argc, char **argv);
int verb_explain(int argc, char **argv);
int verb_advise(int argc, char **argv);
int verb_reload(int argc, char **argv);
int verb_log_level(int argc, char **argv);
int verb_pause(int argc, char **argv);
int verb_resume(int argc, char **argv);
