/* SPDX-License-Identifier: MIT */
/* Units and what was decided about them, as dictionaries. Layer: daemon. */
#include "daemon/bus_units.h"

#include "core/account.h"
#include "core/verdict.h"
#include "daemon/bus_heaps.h"
#include "daemon/peer.h"
#include "daemon/process.h"
#include "daemon/tick.h"

static void put_outcome(struct dict *dict, const struct mg_outcome *outcome) {
        dict_u64(dict, "before_bytes", outcome->before_bytes);
        dict_u64(dict, "after_bytes", outcome->after_bytes);
        dict_u64(dict, "gain_bytes", outcome_gain(outcome));
        dict_u64(dict, "expected_bytes", outcome->expected_bytes);
        dict_u64(dict, "duration_usec", outcome->duration_usec);
        dict_u64(dict, "pause_usec", outcome->pause_usec);
}

/* ---- ListUnits ---- */

/* Memory that is only known once an agent has reported is left out before. */
static void put_account(struct dict *dict, const struct mg_account *account) {
        if (!account->known)
                return;
        dict_u64(dict, "live_bytes", account->live_bytes);
        dict_u64(dict, "retained_bytes", account->retained_bytes);
        dict_u64(dict, "freeable_bytes", account->freeable_bytes);
        dict_u64(dict, "pinned_bytes", account->pinned_bytes);
        dict_u64(dict, "other_bytes", account->other_bytes);
}

/*
 * Made anew from the last readings, since a round measures the unit between two decisions. Anon and swap come from the same account
 * as what they are divided into, or the parts would not add up.
 */
static void put_current_account(struct dict *dict, struct unit *unit) {
        struct mg_unit_sample sample;
        struct mg_account account;

        tick_fill_sample(unit, &sample);
        account_unit(&sample,
                     policy_stuck(&unit->policy, &unit->config, manager_now(unit->manager)),
                     &account);
        if (account.anon_known)
                dict_u64(dict, "anon_bytes", account.anon_bytes);
        dict_u64(dict, "swap_bytes", unit->memory.swap_bytes);
        put_account(dict, &account);
}

static void put_decision(struct dict *dict, struct unit *unit) {
        const struct mg_decision *decision = &unit->decision;
        const struct mg_policy_state *policy = &unit->policy;

        if (unit->decided) {
                if (decision->account.known)
                        dict_u64(dict, "trim_above_bytes", decision->trim_above_bytes);
                dict_string(dict, "reason", reason_to_string(decision->reason));
        }
        dict_string(dict, "verdict", verdict_to_string(policy->verdict.verdict));
        if (policy->verdict.slope_known)
                dict_i64(dict, "slope_bytes_per_hour", policy->verdict.slope.bytes_per_hour);
        dict_u64(dict, "trims", policy->trims);
        dict_u64(dict, "trimmed_bytes", policy->trimmed_bytes);
        dict_u64(dict, "would_trim", policy->would_trim);
}

static void put_last_trim(struct dict *dict, const struct unit *unit) {
        if (unit->last_outcome_wall_usec == 0)
                return;
        dict_nested_begin(dict, "last_trim");
        dict_u64(dict, "at_usec", unit->last_outcome_wall_usec);
        put_outcome(dict, &unit->last_outcome);
        dict_string(dict, "result", outcome_result_to_string(outcome_result(&unit->last_outcome)));
        dict_nested_end(dict);
}

/* Counters for those who plot them; a reason that has never held the unit is left out. */
static void put_tally(struct dict *dict, const struct mg_tally *tally) {
        dict_nested_begin(dict, "results");
        for (unsigned i = 0; i < _MG_OUTCOME_MAX; i++)
                dict_u64(dict, outcome_result_to_string((enum mg_outcome_result) i),
                         tally->results[i]);
        dict_nested_end(dict);
        dict_nested_begin(dict, "held_usec");
        for (unsigned i = 0; i < _MG_REASON_MAX; i++)
                if (tally->held_usec[i] > 0)
                        dict_u64(dict, reason_to_string((enum mg_reason) i), tally->held_usec[i]);
        dict_nested_end(dict);
        dict_u64(dict, "pause_sum_usec", tally->pause_sum_usec);
        dict_list_begin(dict, "pauses");
        for (size_t i = 0; i < MG_ELEMENTS(tally->pauses); i++) {
                dict_begin(dict);
                dict_u64(dict, "up_to_usec", tally_pause_bound_usec(i));
                dict_u64(dict, "count", tally->pauses[i]);
                dict_end(dict);
        }
        dict_list_end(dict);
}

static uint64_t count_lost_agents(const struct unit *unit) {
        uint64_t n = 0;

        for (const struct process *p = process_first(unit); p; p = process_next(p))
                n += p->had_agent && !p->peer && !p->gone;
        return n;
}

void bus_unit(struct dict *dict, struct unit *unit) {
        dict_begin(dict);
        dict_string(dict, "unit", unit->name);
        dict_string(dict, "source", source_to_string(unit->source));
        dict_string(dict, "cgroup", unit->path);
        dict_string(dict, "mode", mode_to_string(unit->config.mode));
        dict_string(dict, "activity", activity_to_string(unit->activity));
        dict_bool(dict, "paused", unit->paused || unit->manager->paused);
        dict_bool(dict, "breaker", unit->policy.breaker_open);
        if (unit->sampled) {
                put_current_account(dict, unit);
                dict_u64(dict, "shmem_bytes", unit->memory.shmem_bytes);
                dict_u64(dict, "file_bytes", unit->memory.file_bytes);
        }
        dict_u64(dict, "processes", MG_MAX(unit->n_pids, unit->n_agents));
        dict_u64(dict, "agents", unit->n_agents);
        dict_u64(dict, "agents_lost", count_lost_agents(unit));
        dict_u64(dict, "pressure_clients", unit->clients.n);
        put_decision(dict, unit);
        put_last_trim(dict, unit);
        put_tally(dict, &unit->tally);
        dict_list_begin(dict, "allocators");
        for (const struct process *p = process_first(unit); p; p = process_next(p))
                bus_heaps(dict, p);
        dict_list_end(dict);
        dict_end(dict);
}

/* ---- Explain ---- */

static void put_condition(struct dict *dict, const struct mg_condition *condition) {
        dict_begin(dict);
        dict_string(dict, "name", reason_to_string(condition->reason));
        dict_string(dict, "state", condition_state_to_string(condition->state));
        dict_string(dict, "quantity", quantity_to_string(condition->quantity));
        if (condition->quantity != MG_QUANTITY_NONE) {
                dict_u64(dict, "have", condition->have);
                dict_u64(dict, "want", condition->want);
        }
        dict_end(dict);
}

static void put_setting(struct dict *dict, const struct unit *unit, enum mg_unit_key key) {
        const struct mg_origin *origin = &unit->origins.key[key];
        char value[256];

        dict_begin(dict);
        dict_string(dict, "key", unit_key_to_string(key));
        dict_string(dict, "value", unit_key_format(&unit->config, key, value, sizeof(value)));
        dict_string(dict, "file", origin->file);
        dict_u64(dict, "line", origin->file ? origin->line : MG_UNKNOWN);
        dict_end(dict);
}

static void put_reasoning(struct dict *dict, const struct unit *unit) {
        const struct mg_decision *decision = &unit->decision;

        dict_string(dict, "action", action_to_string(decision->action));
        dict_string(dict, "reason", reason_to_string(decision->reason));
        dict_string(dict, "text", reason_describe(decision->reason));
        dict_bool(dict, "would_trim", decision->would_trim);
        dict_u64(dict, "expected_bytes", decision->expected_bytes);
        dict_u64(dict, "predicted_pause_usec", decision->predicted_pause_usec);
        dict_list_begin(dict, "conditions");
        for (uint32_t i = 0; i < decision->n_conditions; i++)
                put_condition(dict, &decision->conditions[i]);
        dict_list_end(dict);
}

void bus_explanation(struct dict *dict, const struct unit *unit) {
        dict_begin(dict);
        dict_string(dict, "unit", unit->name);
        if (unit->decided)
                put_reasoning(dict, unit);
        else {
                dict_string(dict, "action", action_to_string(MG_ACTION_HOLD));
                dict_string(dict, "reason", reason_to_string(MG_REASON_NO_STATISTICS));
                dict_string(dict, "text", "not measured yet: the next tick decides");
        }
        dict_list_begin(dict, "settings");
        for (unsigned key = 0; key < _MG_UNIT_KEY_MAX; key++)
                put_setting(dict, unit, (enum mg_unit_key) key);
        dict_list_end(dict);
        dict_end(dict);
}

/* ---- TrimUnit ---- */

static void put_done(struct dict *dict, const struct trim_result *result) {
        const struct mg_outcome *outcome = &result->outcome;

        dict_string(dict, "result", outcome_result_to_string(outcome_result(outcome)));
        dict_u64(dict, "processes", outcome->n_asked + result->n_skipped);
        dict_u64(dict, "asked", outcome->n_asked);
        dict_u64(dict, "refused", outcome->n_refused);
        put_outcome(dict, outcome);
}

static void put_not_done(
                struct dict *dict,
                const struct trim_result *result,
                const struct mg_round_survey *survey) {
        bool held = result->status == TRIM_HELD;

        dict_string(dict, "result", trim_status_to_string(result->status));
        dict_u64(dict, "processes", survey->n_fits + survey->n_skipped);
        dict_u64(dict, "asked",
                 held                          ? 0
                 : result->status == TRIM_TOLD ? result->n_told
                                               : survey->n_fits);
        dict_u64(dict, "refused", 0);
        dict_u64(dict, "expected_bytes", result->decision.expected_bytes);
        dict_u64(dict, "pause_usec", result->decision.predicted_pause_usec);
}

void bus_trim_result(
                struct dict *dict,
                const struct trim_result *result,
                const struct mg_round_survey *survey) {
        enum mg_reason reason = result->decision.reason;

        dict_begin(dict);
        dict_string(dict, "unit", result->unit);
        dict_string(dict, "reason", reason_to_string(reason));
        dict_string(dict, "text", reason_describe(reason));
        if (result->status == TRIM_DONE)
                put_done(dict, result);
        else
                put_not_done(dict, result, survey);
        dict_end(dict);
}
