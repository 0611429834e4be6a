/* SPDX-License-Identifier: MIT */
/*
 * One unit of a trace under the real policy. What simulated trims gave back is taken off the trace's later numbers for as
 * long as the program leaves it free there: memory that live grows into has to be taken again. Layer: ctl; no I/O.
 */
#pragma once

#include "core/policy.h"
#include "ctl/trace.h"

struct replayed_unit {
        char name[256];
        struct mg_unit_config config;
        struct mg_policy_state state;
        struct mg_decision decision; /* on the last line */
        struct mg_outcome outcome;   /* of the last trim */
        bool trimmed;                /* by the last line */
        bool verdict_changed;        /* with the last line */
        bool breaker_opened;         /* by the last line */
        uint64_t given_bytes;        /* by trims, and not taken again yet */
        uint64_t checkpoint_at_usec;
        uint64_t last_usec;

        /* For the summary, of the trace and of the simulation, over the lines whose anonymous memory is known. */
        unsigned __int128 traced_byte_usec;
        unsigned __int128 simulated_byte_usec;
        uint64_t known_usec; /* the time that they cover */
        uint64_t known_lines;
        uint64_t traced_peak_bytes;
        uint64_t simulated_peak_bytes;
        uint64_t held[_MG_REASON_MAX]; /* lines on which each was the reason */
        uint64_t lines;
};

void replayed_unit_init(
                struct replayed_unit *unit,
                const char *name,
                const struct mg_unit_config *config);

/* Takes in LINE, whose numbers become the simulated ones. */
void replayed_unit_step(struct replayed_unit *unit, struct trace_line *line);

/* The mean of BYTE_USEC, one of the two sums; MG_UNKNOWN where they cover no time. */
uint64_t replayed_unit_mean(const struct replayed_unit *unit, unsigned __int128 byte_usec);
