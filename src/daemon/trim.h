/* SPDX-License-Identifier: MIT */
/*
 * Driving a trim round: one process after the other, biggest first, the footprint read just before the first
 * request and just after the last reply, then learn, log, tell. A process that hangs or vanishes
 * fails its own step; the round goes on. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy.h"
#include "core/round.h"

struct manager;
struct peer;
struct unit;

enum trim_status {
        TRIM_DONE,    /* outcome says what came of it; it may be little */
        TRIM_DRY_RUN, /* decision says what would be asked and expected */
        TRIM_TOLD, /* nobody could be asked, so the unit's clients of memory pressure were told: n_told */
        TRIM_HELD, /* decision.reason says why nobody was asked */
        TRIM_GONE, /* the unit went away, or the daemon is stopping */
        _TRIM_STATUS_MAX,
};

struct trim_result {
        enum trim_status status;
        const char *unit; /* its name, valid during the call */
        struct mg_decision decision;
        struct mg_outcome outcome;
        struct mg_round_survey survey; /* by hand: of the sample that was decided by */
        size_t n_told;                 /* connections that got a byte */
        size_t n_skipped;              /* processes left out because of MaxPause= */
};

typedef void (*trim_handler)(void *userdata, const struct trim_result *result);

/*
 * By hand: looks at the processes, then decides. HANDLER is called exactly once, perhaps from within the call.
 * Returns 0, -EBUSY (a round of this unit is running) or -ENOMEM; then HANDLER is not called.
 */
int trim_by_hand(struct unit *unit, bool dry_run, trim_handler handler, void *userdata);

/* From the scheduler: DECISION is due now. */
int trim_start(struct unit *unit, const struct mg_decision *decision);

/* Ends the unit's round without learning from it; its handler hears TRIM_GONE. */
void trim_cancel(struct unit *unit);

/* Rounds at work: those that wait for a silent agent do not count against MaxConcurrentTrims=. */
size_t trim_running(const struct manager *manager);

const char *trim_status_to_string(
                enum trim_status status); /* "done", "dry-run", "told", "held", "gone" */
