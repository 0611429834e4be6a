/* SPDX-License-Identifier: MIT */
/* Units and what was decided about them, as dictionaries. Layer: daemon. */
#include "daemon/bus_units.h"

#include "daemon/bus_heaps.h"
#include "daemon/process.h"
#include "daemon/unit_facts.h"

static void put_outcome(struct dict *dict, const struct mg_outcome *outcome) {
        dict_u64(dict, "before_bytes", outcome->before_bytes);
        dict_u64(dict, "after_bytes", outcome->after_bytes);
        dict_u64(dict, "gain_bytes", outcome_gain(outcome));
        dict_u64(dict, "expected_bytes", outcome->expected_bytes);
        dict_u64(dict, "duration_usec", outcome->duration_usec);
        dict_u64(dict, "pause_usec", outcome->pause_usec);
}

/* ---- ListUnits ---- */

/* What is known of how it uses memory. */
static void put_memory(struct dict *dict, const struct unit_facts *facts) {
        dict_u64(dict, "anon_bytes", facts->anon_bytes);
        dict_u64(dict, "swap_bytes", facts->swap_bytes);
        dict_u64(dict, "live_bytes", facts->live_bytes);
        dict_u64(dict, "retained_bytes", facts->retained_bytes);
        dict_u64(dict, "freeable_bytes", facts->freeable_bytes);
        dict_u64(dict, "pinned_bytes", facts->pinned_bytes);
        dict_u64(dict, "other_bytes", facts->other_bytes);
        dict_u64(dict, "shmem_bytes", facts->shmem_bytes);
        dict_u64(dict, "file_bytes", facts->file_bytes);
}

static void put_decision(struct dict *dict, const struct unit_facts *facts) {
        dict_u64(dict, "trim_above_bytes", facts->trim_above_bytes);
        dict_string(dict, "reason", facts->reason);
        dict_string(dict, "verdict", facts->verdict);
        if (facts->slope_bytes_per_hour != SLOPE_UNKNOWN)
                dict_i64(dict, "slope_bytes_per_hour", facts->slope_bytes_per_hour);
        dict_u64(dict, "trims", facts->trims);
        dict_u64(dict, "trimmed_bytes", facts->trimmed_bytes);
        dict_u64(dict, "would_trim", facts->would_trim);
}

void bus_last_trim(struct dict *dict, const struct unit *unit) {
        dict_u64(dict, "at_usec", unit->last_round_wall_usec);
        put_outcome(dict, &unit->policy.last);
        dict_string(dict, "result", outcome_result_to_string(outcome_result(&unit->policy.last)));
}

void bus_allocators(struct dict *dict, const struct unit *unit) {
        for (const struct process *p = process_first(unit); p; p = process_next(p))
                bus_heaps(dict, p);
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
        struct unit_facts facts;

        unit_facts_take(unit, &facts);
        dict_begin(dict);
        dict_string(dict, "unit", facts.name);
        dict_string(dict, "source", facts.source);
        dict_string(dict, "cgroup", facts.cgroup);
        dict_string(dict, "mode", facts.mode);
        dict_string(dict, "activity", facts.activity);
        dict_bool(dict, "paused", facts.paused);
        dict_bool(dict, "breaker", facts.breaker);
        put_memory(dict, &facts);
        dict_u64(dict, "processes", facts.processes);
        dict_u64(dict, "agents", facts.agents);
        dict_u64(dict, "agents_lost", count_lost_agents(unit));
        dict_u64(dict, "pressure_clients", unit->clients.n);
        put_decision(dict, &facts);
        if (unit->last_round_wall_usec > 0) {
                dict_nested_begin(dict, "last_trim");
                bus_last_trim(dict, unit);
                dict_nested_end(dict);
        }
        put_tally(dict, &unit->tally);
        dict_list_begin(dict, "allocators");
        bus_allocators(dict, unit);
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
