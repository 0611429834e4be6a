/* SPDX-License-Identifier: MIT */
/* Counters of a unit's life; see tally.h. Layer: core; pure. */
#include "core/tally.h"

static const uint64_t pause_bounds_usec[] = {
        100, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000,
};
_Static_assert(MG_ELEMENTS(pause_bounds_usec) == MG_PAUSE_BOUNDS, "a bound for each bucket");

uint64_t tally_pause_bound_usec(size_t bucket) {
        return bucket < MG_PAUSE_BOUNDS ? pause_bounds_usec[bucket] : MG_UNKNOWN;
}

void tally_round(struct mg_tally *tally, const struct mg_outcome *outcome) {
        enum mg_outcome_result result = outcome_result(outcome);
        size_t bucket = 0;

        tally->results[result]++;
        if (result == MG_OUTCOME_FAILED || result == MG_OUTCOME_REFUSED)
                return;
        while (bucket < MG_PAUSE_BOUNDS && outcome->pause_usec > pause_bounds_usec[bucket])
                bucket++;
        tally->pauses[bucket]++;
        tally->pause_sum_usec = mg_add_cap(tally->pause_sum_usec, outcome->pause_usec);
}

void tally_decision(struct mg_tally *tally, const struct mg_decision *decision, uint64_t now_usec) {
        uint64_t *held_usec = &tally->held_usec[tally->reason];

        if (tally->held && tally->decided_usec != 0)
                *held_usec = mg_add_cap(*held_usec, mg_sub_floor(now_usec, tally->decided_usec));
        tally->held = decision->action == MG_ACTION_HOLD;
        tally->reason = decision->reason;
        tally->decided_usec = now_usec;
}
