/* SPDX-License-Identifier: MIT */
/*
 * One trim of a unit is a round over its processes, one after the other, biggest first; a process
 * whose predicted pause does not fit is left out without holding up its siblings. Layer: core; pure.
 */
#pragma once

#include "core/policy.h"

struct mg_round_step {
        pid_t pid;
        uint64_t start_time;
        uint64_t retained_bytes;
        uint64_t predicted_pause_usec;
};

/* What a unit's processes have to offer, counted once for a decision. */
struct mg_round_survey {
        size_t n_agents;
        size_t n_statistics;
        size_t n_can_trim; /* of those with statistics */
        size_t n_willing;  /* of those: not suspended by the program */
        size_t n_fits;     /* of those with something to give: within MaxPause= */
        size_t n_skipped;  /* ... and not */
        size_t n_busy;
        uint64_t willing_bytes;        /* what all willing could give back */
        uint64_t fits_bytes;           /* ... and those that fit */
        uint64_t fits_retained_bytes;  /* what those retain, whatever can be given back of it */
        uint64_t longest_fitting_usec; /* predicted */
        uint64_t shortest_usec;        /* predicted, of all willing; MG_UNKNOWN: none */
};

void round_survey(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                struct mg_round_survey *ret_survey);

/*
 * Fills STEPS (room for MAX) in the order in which to ask. Returns how many. *ret_skipped counts processes left out because
 * of MaxPause=.
 */
size_t round_plan(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                struct mg_round_step *steps,
                size_t max,
                size_t *ret_skipped);
