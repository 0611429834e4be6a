/* SPDX-License-Identifier: MIT */
/*
 * The policy: (state, config, sample, now) -> decision. Section 5 of the design. Layer: core; pure: no clock,
 * no system call, no allocation; the same inputs give the same answer.
 *
 * A decision is a list of conditions in a fixed order, and the first one that fails is the reason to hold.
 * So what `memguardctl explain` prints is what was decided, by construction.
 */
#pragma once

#include "core/account.h"
#include "core/sample.h"
#include "core/unit_config.h"
#include "core/verdict.h"

enum mg_action {
        MG_ACTION_HOLD,
        MG_ACTION_TRIM,
        _MG_ACTION_MAX,
};

/* Why a trim is due, or why not. */
enum mg_reason {
        /* due */
        MG_REASON_THRESHOLD, /* retained above TrimAbove= */
        MG_REASON_MASS_FREE, /* live fell, or the program said checkpoint */
        MG_REASON_PRESSURE,
        MG_REASON_PROBE, /* the one attempt of a back-off that has run out */
        MG_REASON_BY_HAND,
        /* held */
        MG_REASON_OFF,
        MG_REASON_PAUSED,
        MG_REASON_NO_AGENT,
        MG_REASON_NO_STATISTICS, /* no agent has reported yet, or Statistics=no */
        MG_REASON_NOT_ACTIVE,    /* activating, reloading or stopping */
        MG_REASON_BELOW_THRESHOLD,
        MG_REASON_BELOW_MIN_GAIN,
        MG_REASON_CANNOT_TRIM, /* the allocators in use cannot be trimmed from here */
        MG_REASON_SUSPENDED,   /* the program holds trims off */
        MG_REASON_COOLDOWN,
        MG_REASON_PINNED,      /* backing off: the last trims brought nothing */
        MG_REASON_REGROWTH,    /* backing off: what came back was taken again at once */
        MG_REASON_REFILLED,    /* backing off: huge pages filled it up again */
        MG_REASON_UNREACHABLE, /* backing off: the agents did not answer */
        MG_REASON_BREAKER,     /* a pause overran MaxPause=; observed until resumed */
        MG_REASON_MAX_PAUSE,   /* every process's predicted pause is too long */
        MG_REASON_WATCHDOG,    /* WatchdogSec= is under four times the last pause */
        MG_REASON_WHEN,        /* When= does not allow it now */
        MG_REASON_BUSY,        /* a request is in flight */
        MG_REASON_OBSERVED,    /* all conditions hold, but Mode=observe: would have trimmed */
        MG_REASON_CONCURRENCY, /* waiting for its turn under MaxConcurrentTrims= */
        _MG_REASON_MAX,
};

enum mg_condition_state {
        MG_CONDITION_SKIPPED, /* not looked at: an earlier one decided, or it does not apply */
        MG_CONDITION_HOLDS,
        MG_CONDITION_FAILS,
        _MG_CONDITION_STATE_MAX,
};

enum mg_quantity {
        MG_QUANTITY_NONE,
        MG_QUANTITY_BYTES,
        MG_QUANTITY_USEC,
        MG_QUANTITY_COUNT,
        _MG_QUANTITY_MAX,
};

/* One line of `explain`: HAVE against WANT, both of QUANTITY. */
struct mg_condition {
        enum mg_reason reason : 8; /* the reason to hold if it fails */
        enum mg_condition_state state : 8;
        enum mg_quantity quantity : 8;
        uint64_t have;
        uint64_t want;
};

#define MG_CONDITIONS_MAX 20

struct mg_decision {
        enum mg_action action;
        enum mg_reason reason;
        bool would_trim;     /* a trim but for Mode=observe */
        bool pressure_alert; /* under pressure, and the excess is live: no trim can help */
        struct mg_account account;
        uint64_t trim_above_bytes;     /* TrimAbove= resolved against live */
        uint64_t expected_bytes;       /* what a trim should bring */
        uint64_t predicted_pause_usec; /* of the worst process that would be asked */
        uint64_t hold_until_usec;      /* end of the cool-down or back-off; 0: none */
        uint32_t n_conditions;
        struct mg_condition conditions[MG_CONDITIONS_MAX];
};

/* What came of one round over a unit's processes. Bytes are footprints (account_footprint()). */
struct mg_outcome {
        uint64_t started_usec;
        uint64_t ended_usec;
        uint64_t before_bytes;
        uint64_t after_bytes;
        uint64_t live_growth_bytes; /* of live while it ran: comes on top of the fall */
        uint64_t expected_bytes;
        uint64_t pause_usec;    /* the longest of its processes */
        uint64_t duration_usec; /* summed */
        uint64_t minor_faults;
        uint64_t free_chunks; /* of the processes asked, for the learned rates */
        uint64_t asked_bytes; /* their retained bytes, for the same */
        uint32_t n_asked;
        uint32_t n_answered; /* refusals included */
        uint32_t n_refused;
        uint64_t predicted_pause_usec; /* of the worst process asked; 0: no rate is learned */
        bool sliced;                   /* all that were asked trim in slices */
        bool by_hand;
        uint64_t anon_thp_before_bytes;
        uint64_t anon_thp_after_bytes; /* 0 or MG_UNKNOWN: as the next sample has it */
        enum mg_reason reason;         /* why it was due */
};

/* gain = fall of the footprint + growth of live in between. */
uint64_t outcome_gain(const struct mg_outcome *outcome);

enum mg_outcome_result {
        MG_OUTCOME_DONE,
        MG_OUTCOME_PARTIAL, /* some refused or were silent */
        MG_OUTCOME_REFUSED, /* all that answered refused */
        MG_OUTCOME_FAILED,  /* nobody answered */
        _MG_OUTCOME_MAX,
};
enum mg_outcome_result outcome_result(const struct mg_outcome *outcome);

struct mg_policy_state {
        uint64_t cooldown_until_usec; /* after every round; nothing but an operator's hand ignores it */
        uint64_t backoff_until_usec; /* a mass free and pressure ignore it */
        uint64_t backoff_usec;       /* the current length; 0: none */
        enum mg_reason backoff_reason;
        uint64_t stuck_bytes;
        uint64_t stuck_at_usec;
        bool stuck_pending;      /* a round has ended: the next sample says what it left */
        uint64_t last_trim_usec; /* end of the last round; MG_UNKNOWN: never */
        uint64_t last_gain_bytes;
        uint64_t last_live_bytes;   /* at the last statistics, to see a mass free */
        uint64_t last_live_at_usec; /* when those were taken, the oldest of them */
        uint32_t last_live_who; /* a hash; 0: nobody. A process that ends takes its live bytes along: no mass free */
        uint64_t mass_free_at_usec;   /* when one was seen; MG_UNKNOWN: never, or served */
        uint64_t mass_free_bytes;     /* by how much live fell; 0 for a checkpoint */
        uint64_t mass_free_bar_bytes; /* the next one has to be larger */
        uint64_t checkpoint_seen_usec;
        uint64_t after_trim_footprint_bytes;
        uint64_t after_trim_thp_bytes;
        uint64_t pause_usec_per_gib; /* learned; MG_UNKNOWN: the generic rate */
        uint64_t pause_usec_per_million_chunks;
        uint64_t rates_at_usec; /* when a round last taught them, or they were last relaxed */
        uint64_t last_pause_usec;
        uint64_t statistics_usec;  /* the dearest statistics call seen; MG_UNKNOWN: none yet */
        uint64_t statistics_bytes; /* resident bytes of that process then */
        bool regrowth_checked;     /* the window after the last round is over, or has shown it */
        bool refill_checked;
        bool breaker_open;
        bool pinned;
        bool refilled;
        uint64_t idle_since_usec;
        uint64_t last_cpu_usage_usec;
        uint64_t last_cpu_at_usec;
        uint64_t last_sample_usec;
        uint64_t trims;
        uint64_t trimmed_bytes;
        uint64_t would_trim;
        uint64_t would_trim_bytes; /* what those would have brought */
        uint64_t would_trim_at_usec;
        bool would_trim_counted;
        struct mg_outcome last; /* valid when trims > 0 or last.n_asked > 0 */
        struct mg_verdict_state verdict;
};

void policy_init(struct mg_policy_state *state);

/*
 * Looks at one sample. NOW is monotonic microseconds. Returns true when something worth a journal line changed (the verdict); the
 * decision is complete either way. Idempotent for a repeated sample at the same NOW.
 */
bool policy_step(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                uint64_t now_usec,
                struct mg_decision *ret_decision);

/* The same question asked by an operator: Mode=, thresholds, cool-down and back-off do not count, MaxPause= does. */
void policy_by_hand(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                uint64_t now_usec,
                struct mg_decision *ret_decision);

/* Learns from a finished round. Returns true when it opened the breaker. */
bool policy_learn(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_outcome *outcome,
                uint64_t now_usec);

/* memguardctl resume: closes the breaker and ends a back-off. */
void policy_resume(struct mg_policy_state *state);

/* Whether samples are worth a look at the unit's CPU time: something hangs on its being idle. */
bool policy_wants_cpu(const struct mg_policy_state *state, const struct mg_unit_config *config);

/* The predicted longest wait of another thread while this process is trimmed. */
uint64_t policy_predict_pause(
                const struct mg_policy_state *state,
                const struct mg_process_sample *process);

/* A statistics call has taken COST_USEC in a process of RSS_BYTES. */
void policy_learn_statistics(struct mg_policy_state *state, uint64_t cost_usec, uint64_t rss_bytes);

/* What the next one would take there; MG_UNKNOWN while none of the unit's was ever measured. */
uint64_t policy_predict_statistics(const struct mg_policy_state *state, uint64_t rss_bytes);

/* stuck_bytes after its halving each CooldownMaxSec=. */
uint64_t policy_stuck(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config,
                uint64_t now_usec);

const char *condition_state_to_string(
                enum mg_condition_state state);            /* "skipped", "holds", "fails" */
const char *quantity_to_string(enum mg_quantity quantity); /* "none", "bytes", "usec", "count" */
const char *reason_to_string(enum mg_reason reason);       /* "below-threshold" */
const char *action_to_string(enum mg_action action);       /* "hold", "trim" */
const char *outcome_result_to_string(enum mg_outcome_result result); /* "done", "partial" */

/* One sentence for an operator, without numbers: "retained memory is under TrimAbove=". */
const char *reason_describe(enum mg_reason reason);
