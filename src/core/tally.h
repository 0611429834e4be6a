/* SPDX-License-Identifier: MIT */
/*
 * What a unit's life so far adds up to, for those who plot it: rounds by result, their pauses as a histogram, and the time
 * held for each reason. Counters only ever grow; nothing is decided by them. Layer: core; pure; fixed memory.
 */
#pragma once

#include "core/policy.h"

/* Upper bounds of the pauses, inclusive: MaxPause= is 50 ms unless set, and a huge heap's walk takes seconds. */
#define MG_PAUSE_BOUNDS 11

struct mg_tally {
        uint64_t results[_MG_OUTCOME_MAX];
        uint64_t pauses[MG_PAUSE_BOUNDS +
                        1]; /* each counted in its own bucket; the last: above all bounds */
        uint64_t pause_sum_usec;
        uint64_t held_usec[_MG_REASON_MAX];
        uint64_t decided_usec; /* of the last decision; 0: none yet */
        enum mg_reason reason; /* of the last decision, if it was to hold */
        bool held;
};

/* A round has ended. One that nobody answered has no pause. */
void tally_round(struct mg_tally *tally, const struct mg_outcome *outcome);

/* A decision at NOW; the time since the last one goes to that one's reason. A clock that steps back adds nothing. */
void tally_decision(struct mg_tally *tally, const struct mg_decision *decision, uint64_t now_usec);

/* MG_UNKNOWN for the last bucket, which has no bound. */
uint64_t tally_pause_bound_usec(size_t bucket);
