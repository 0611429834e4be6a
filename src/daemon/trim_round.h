/* SPDX-License-Identifier: MIT */
/*
 * A trim round under way, for the two modules that drive it: trim.c begins and ends it, trim_step.c takes one process
 * after the other. Layer: daemon.
 */
#pragma once

#include "base/list.h"
#include "daemon/trim.h"

/* More processes than this are left to the next round. */
#define TRIM_STEPS_MAX 1024

struct trim_round {
        struct mg_list all; /* manager->rounds */
        struct unit *unit;
        struct peer *peer; /* whose turn it is */
        struct mg_decision decision;
        struct mg_outcome outcome;
        bool measured; /* outcome.before_bytes is in */
        uint64_t asked_usec;
        uint64_t step_began_usec;
        uint64_t live_before; /* of the process at hand, looked at just now; MG_UNKNOWN: could not be */
        int64_t live_growth;
        uint64_t backoff_before_usec;
        uint64_t best_bytes;
        pid_t best_pid;
        pid_t worst_pid;
        unsigned n_timeouts;
        unsigned n_looking; /* statistics asked for before a decision by hand; the round begins when all are in */
        bool dry_run;
        struct mg_round_survey survey;
        trim_handler handler;
        void *handler_userdata;
        size_t n_told;
        size_t n_skipped;
        size_t next;
        size_t n_steps;
        struct mg_round_step *steps; /* owned; NULL while the processes are looked at first */
};

/* Goes on with the next process until one is being waited for, or none is left: then the round ends, and is freed. */
void trim_advance(struct trim_round *round);

/* The end: learns, tells journal and handler, frees. */
void trim_finish(struct trim_round *round);

/* Reads the unit's footprint now; from the first request on, each process's share is kept too. */
void trim_measure(struct trim_round *round, uint64_t *ret_footprint);
void trim_begin_measuring(struct trim_round *round);
