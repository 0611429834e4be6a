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
