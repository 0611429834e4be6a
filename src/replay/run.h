/* SPDX-License-Identifier: MIT */
/*
 * A run while it goes on: what the steps of runner.c and the loop of run_loop.c share. Layer: replay; not for others.
 */
#pragma once

#include "replay/child.h"
#include "replay/csv.h"
#include "replay/private_daemon.h"
#include "replay/runner.h"
#include "replay/scope.h"
#include "replay/told.h"

struct run {
        struct harness *harness;
        struct variant *variant;
        uint64_t round;
        struct csv_writer csv;
        int log_fd;
        char *agent; /* paths of memguard's own parts; owned */
        char *memguardd;
        char *trimmer;
        struct private_daemon daemon;
        struct scope scope;
        struct child program;
        struct child load; /* or --ready's command */
        int load_status;   /* of waitpid, once it is gone */
        bool has_load;     /* its end is the end of the load */
        struct told told;
        struct told_lines program_lines;
        struct told_lines load_lines;
        uint64_t started_usec; /* monotonic; 0: no samples yet */
        uint64_t next_sample_usec;
        uint64_t psi_before_usec;
        enum replay_phase phase;
        bool agent_seen; /* it has counted what is live */
        bool stopping;   /* its end is ours */
        bool ended;
        enum replay_end end;
        uint64_t end_usec; /* since the start */
        char end_text[1024];
};

enum wait_for {
        WAIT_TIME,
        WAIT_LOAD,      /* until the shell of --ready is gone */
        WAIT_LOAD_OVER, /* until the load is over, or the program says that it is */
};

/* The first end counts. FORMAT NULL: nothing to say. */
void run_end(struct run *run, enum replay_end end, const char *format, ...)
                __attribute__((format(printf, 3, 4)));

void run_begin(struct run *run);

/* Samples, reads output, reaps, until UNTIL, until what is waited for has come, or until the run has ended. */
void run_until(struct run *run, uint64_t until, enum wait_for wait);

void run_sample(struct run *run);

/* SIGTERM and, a while later, SIGKILL; reads what it says meanwhile. */
void run_stop_load(struct run *run);
void run_kill_load(struct run *run);

/* Program, load, daemon, whatever is left below the harness, the scope. */
void run_stop(struct run *run);
