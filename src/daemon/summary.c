/* SPDX-License-Identifier: MIT */
/* The daily summary: days count from the moment a unit was met, so that a host's units do not all speak at midnight. */
#include "daemon/summary.h"

#include "daemon/journal.h"
#include "daemon/unit.h"

#define DAY_USEC (24 * MG_USEC_PER_HOUR)

static void tell(const struct unit *unit) {
        const struct mg_policy_state *policy = &unit->policy;
        const struct mg_verdict_state *verdict = &policy->verdict;

        journal_summary(&(struct mg_journal_summary){
                        .unit = unit_for_journal(unit),
                        .mode = unit->config.mode,
                        .verdict = verdict->verdict,
                        .trims = policy->trims - unit->summary_trims,
                        .trimmed_bytes = policy->trimmed_bytes - unit->summary_trimmed_bytes,
                        .would_trim = policy->would_trim - unit->summary_would_trim,
                        .pause_usec = unit->summary_pause_usec,
                        .anon_bytes = unit->decision.account.anon_bytes,
                        .live_bytes = unit->decision.account.live_bytes,
                        .slope_bytes_per_hour = verdict->slope.bytes_per_hour,
                        .slope_known = verdict->slope_known,
        });
}

void summary_begin(struct unit *unit) {
        unit->summary_trims = unit->policy.trims;
        unit->summary_trimmed_bytes = unit->policy.trimmed_bytes;
        unit->summary_would_trim = unit->policy.would_trim;
        unit->summary_pause_usec = 0;
}

void summary_tick(struct unit *unit, uint64_t now_usec) {
        uint64_t day = (now_usec - unit->created_usec) / DAY_USEC;

        if (day == unit->summary_day)
                return;
        /* A unit without an agent has nothing to tell that its verdict has not told. */
        if (unit->n_agents > 0)
                tell(unit);
        unit->summary_day = day;
        summary_begin(unit);
}
