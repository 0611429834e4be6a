/* SPDX-License-Identifier: MIT */
/*
 * The names of the core's enums: a promise of the command line, the journal and the metrics. Layer: core; pure.
 */
#include "core/policy.h"

static const char *const source_names[] = {
        [MG_SOURCE_CGROUP] = "cgroup",
        [MG_SOURCE_PROC] = "proc",
};
_Static_assert(MG_ELEMENTS(source_names) == _MG_SOURCE_MAX, "a source has no name");

static const char *const activity_names[] = {
        [MG_ACTIVITY_ACTIVE] = "active",
        [MG_ACTIVITY_ACTIVATING] = "activating",
        [MG_ACTIVITY_RELOADING] = "reloading",
        [MG_ACTIVITY_DEACTIVATING] = "deactivating",
};
_Static_assert(MG_ELEMENTS(activity_names) == _MG_ACTIVITY_MAX, "an activity has no name");

static const char *const action_names[] = {
        [MG_ACTION_HOLD] = "hold",
        [MG_ACTION_TRIM] = "trim",
};
_Static_assert(MG_ELEMENTS(action_names) == _MG_ACTION_MAX, "an action has no name");

static const char *const condition_state_names[] = {
        [MG_CONDITION_SKIPPED] = "skipped",
        [MG_CONDITION_HOLDS] = "holds",
        [MG_CONDITION_FAILS] = "fails",
};
_Static_assert(MG_ELEMENTS(condition_state_names) == _MG_CONDITION_STATE_MAX,
               "a condition's state has no name");

static const char *const quantity_names[] = {
        [MG_QUANTITY_NONE] = "none",
        [MG_QUANTITY_BYTES] = "bytes",
        [MG_QUANTITY_USEC] = "usec",
        [MG_QUANTITY_COUNT] = "count",
};
_Static_assert(MG_ELEMENTS(quantity_names) == _MG_QUANTITY_MAX, "a quantity has no name");

static const char *const verdict_names[] = {
        [MG_VERDICT_LEARNING] = "learning",
        [MG_VERDICT_FLAT] = "flat",
        [MG_VERDICT_RETENTION] = "retention",
        [MG_VERDICT_LIVE_GROWTH] = "live-growth",
        [MG_VERDICT_LEAK_SUSPECTED] = "leak-suspected",
        [MG_VERDICT_PINNED] = "pinned",
        [MG_VERDICT_REFILLED] = "refilled",
        [MG_VERDICT_NOT_MALLOC] = "not-malloc",
        [MG_VERDICT_HELD] = "held",
        [MG_VERDICT_NO_AGENT] = "no-agent",
        [MG_VERDICT_NO_STATISTICS] = "no-statistics",
};
_Static_assert(MG_ELEMENTS(verdict_names) == _MG_VERDICT_MAX, "a verdict has no name");

static const char *const outcome_result_names[] = {
        [MG_OUTCOME_DONE] = "done",
        [MG_OUTCOME_PARTIAL] = "partial",
        [MG_OUTCOME_REFUSED] = "refused",
        [MG_OUTCOME_FAILED] = "failed",
};
_Static_assert(MG_ELEMENTS(outcome_result_names) == _MG_OUTCOME_MAX, "a result has no name");

struct reason_text {
        const char *name;
        const char *sentence;
};

static const struct reason_text reason_texts[] = {
        [MG_REASON_THRESHOLD] = { "threshold", "retained memory is above TrimAbove=" },
        [MG_REASON_MASS_FREE] = { "mass-free", "the program has just freed a lot, or said so" },
        [MG_REASON_PRESSURE] = { "pressure", "memory is short" },
        [MG_REASON_PROBE] = { "probe", "a back-off has run out: one more attempt" },
        [MG_REASON_BY_HAND] = { "by-hand", "an operator asked for it" },
        [MG_REASON_OFF] = { "off", "Mode=off" },
        [MG_REASON_PAUSED] = { "paused", "trimming is paused" },
        [MG_REASON_NO_AGENT] = { "no-agent", "no process of the unit has an agent that answers" },
        [MG_REASON_NO_STATISTICS] = { "no-statistics", "no agent has reported its heap yet" },
        [MG_REASON_NOT_ACTIVE] = { "not-active", "the unit is starting, reloading or stopping" },
        [MG_REASON_BELOW_THRESHOLD] = { "below-threshold",
                                        "retained memory is not above TrimAbove=" },
        [MG_REASON_BELOW_MIN_GAIN] = { "below-min-gain", "a trim would bring less than MinGain=" },
        [MG_REASON_CANNOT_TRIM] = { "cannot-trim",
                                    "the allocators in use cannot be trimmed from here" },
        [MG_REASON_SUSPENDED] = { "suspended", "the program holds trims off" },
        [MG_REASON_COOLDOWN] = { "cooldown", "the last trim is less than CooldownSec= ago" },
        [MG_REASON_PINNED] = { "pinned", "backing off: the last trim brought next to nothing" },
        [MG_REASON_REGROWTH] = { "regrowth",
                                 "backing off: what the last trim brought was taken again at once" },
        [MG_REASON_REFILLED] = { "refilled",
                                 "backing off: huge pages filled up what the last trim emptied" },
        [MG_REASON_UNREACHABLE] = { "unreachable",
                                    "backing off: no agent carried the last trim out" },
        [MG_REASON_BREAKER] = { "breaker", "a pause overran MaxPause=: observed until resumed" },
        [MG_REASON_MAX_PAUSE] = { "max-pause",
                                  "a trim is predicted to pause longer than MaxPause=" },
        [MG_REASON_WATCHDOG] = { "watchdog", "WatchdogSec= is under four times the pause" },
        [MG_REASON_WHEN] = { "when", "When= does not allow it now" },
        [MG_REASON_BUSY] = { "busy", "a request is in flight" },
        [MG_REASON_OBSERVED] = { "observed", "Mode=observe: it would have been trimmed" },
        [MG_REASON_CONCURRENCY] = { "concurrency", "waiting for its turn: MaxConcurrentTrims=" },
};
_Static_assert(MG_ELEMENTS(reason_texts) == _MG_REASON_MAX, "a reason has no text");

const char *source_to_string(enum mg_source source) {
        return source_names[source];
}

const char *activity_to_string(enum mg_activity activity) {
        return activity_names[activity];
}

const char *action_to_string(enum mg_action action) {
        return action_names[action];
}

const char *condition_state_to_string(enum mg_condition_state state) {
        return condition_state_names[state];
}

const char *quantity_to_string(enum mg_quantity quantity) {
        return quantity_names[quantity];
}

const char *verdict_to_string(enum mg_verdict verdict) {
        return verdict_names[verdict];
}

const char *outcome_result_to_string(enum mg_outcome_result result) {
        return outcome_result_names[result];
}

const char *reason_to_string(enum mg_reason reason) {
        return reason_texts[reason].name;
}

const char *reason_describe(enum mg_reason reason) {
        return reason_texts[reason].sentence;
}
