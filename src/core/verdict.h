/* SPDX-License-Identifier: MIT */
/*
 * Why a unit's memory grows, in one word: section 5 of the design. Layer: core; pure.
 */
#pragma once

#include "core/account.h"
#include "core/trend.h"

enum mg_verdict {
        MG_VERDICT_LEARNING,
        MG_VERDICT_FLAT,
        MG_VERDICT_RETENTION,
        MG_VERDICT_LIVE_GROWTH,
        MG_VERDICT_LEAK_SUSPECTED,
        MG_VERDICT_PINNED,
        MG_VERDICT_REFILLED,
        MG_VERDICT_NOT_MALLOC,
        MG_VERDICT_HELD,
        MG_VERDICT_NO_AGENT,
        MG_VERDICT_NO_STATISTICS,
        _MG_VERDICT_MAX,
};

struct mg_verdict_state {
        struct mg_trend anon;
        struct mg_trend live;
        struct mg_trend other;
        struct mg_slope slope; /* of anon, as of the last finished minute */
        bool slope_known;
        enum mg_verdict verdict;
        enum mg_verdict candidate;   /* seen once, not yet believed */
        uint32_t live_growth_floors; /* minutes of live-growth without a plateau */
        uint64_t answered_usec;      /* the NOW of the last answer: one sample is one answer */
};

/* What only the policy knows. */
struct mg_verdict_hints {
        bool has_agent;
        bool has_statistics; /* an agent has reported its heap */
        bool pinned;
        bool refilled;
        bool trimmed; /* within the floors: anon fell by our own doing */
};

void verdict_init(struct mg_verdict_state *state);

/* Returns true when the verdict changed: the same answer twice in a row. */
bool verdict_update(
                struct mg_verdict_state *state,
                const struct mg_account *account,
                const struct mg_verdict_hints *hints,
                uint64_t now_usec);

/* That the unit cannot be judged, or not yet. */
bool verdict_says_nothing(enum mg_verdict verdict);

const char *verdict_to_string(enum mg_verdict verdict); /* "leak-suspected" */
