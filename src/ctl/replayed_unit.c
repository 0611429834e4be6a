/* SPDX-License-Identifier: MIT */
/* One unit of a trace under the real policy. Layer: ctl. */
#include "ctl/replayed_unit.h"

#include "core/round.h"

void replayed_unit_init(
                struct replayed_unit *unit,
                const char *name,
                const struct mg_unit_config *config) {
        *unit = (struct replayed_unit){
                .config = *config,
                .checkpoint_at_usec = MG_UNKNOWN,
        };
        memcpy(unit->name, name, MG_MIN(strlen(name) + 1, sizeof(unit->name) - 1));
        policy_init(&unit->state);
}

static uint64_t retained_of(const struct mg_process_sample *process) {
        uint64_t retained = account_process_retained(process);

        return retained == MG_UNKNOWN ? 0 : retained;
}

/* Given-back memory can only be where the trace still has something free and not pinned. */
static void bound_given(struct replayed_unit *unit, const struct trace_line *line) {
        struct mg_account account;
        uint64_t room;

        account_unit(&line->sample, 0, &account);
        room = mg_sub_floor(account.retained_bytes, line->pinned_bytes);
        unit->given_bytes = mg_sub_floor(unit->given_bytes, line->reused_bytes);
        unit->given_bytes = MG_MIN(unit->given_bytes, room);
}

static void take_off(struct trace_line *line, uint64_t bytes) {
        struct mg_memory *memory = &line->sample.memory;

        if (memory->anon_bytes != MG_UNKNOWN)
                memory->anon_bytes = mg_sub_floor(memory->anon_bytes, bytes);
        if (memory->anon_thp_bytes != MG_UNKNOWN)
                memory->anon_thp_bytes = mg_sub_floor(memory->anon_thp_bytes, bytes);
        for (size_t i = 0; i < line->sample.n_processes && bytes > 0; i++) {
                struct mg_process_sample *process = &line->processes[i];
                uint64_t part = MG_MIN(bytes, retained_of(process));

                part = MG_MIN(part, process->rss_anon_bytes);
                process->rss_anon_bytes -= part;
                bytes -= part;
        }
}

static void trim(struct replayed_unit *unit, const struct trace_line *line) {
        struct mg_round_step steps[TRACE_PROCESSES_MAX];
        struct mg_outcome *outcome = &unit->outcome;
        size_t skipped;
        uint64_t gain;

        *outcome = (struct mg_outcome){
                .started_usec = line->at_usec,
                .ended_usec = line->at_usec,
                .expected_bytes = unit->decision.expected_bytes,
                .predicted_pause_usec = unit->decision.predicted_pause_usec,
                .pause_usec = line->pause_usec,
                .anon_thp_before_bytes = line->sample.memory.anon_thp_bytes,
                .reason = unit->decision.reason,
        };
        if (outcome->pause_usec == MG_UNKNOWN)
                outcome->pause_usec = outcome->predicted_pause_usec;
        outcome->n_asked = (uint32_t) round_plan(
                        &unit->state, &unit->config, &line->sample, steps, TRACE_PROCESSES_MAX,
                        &skipped);
        outcome->n_answered = outcome->n_asked;
        for (uint32_t i = 0; i < outcome->n_asked; i++)
                outcome->asked_bytes = mg_add_cap(outcome->asked_bytes, steps[i].retained_bytes);
        gain = MG_MIN(outcome->asked_bytes, unit->decision.account.retained_bytes);
        gain = mg_sub_floor(gain, line->pinned_bytes);
        outcome->before_bytes = account_footprint(&line->sample.memory);
        outcome->after_bytes = mg_sub_floor(outcome->before_bytes, gain);
        unit->given_bytes = mg_add_cap(unit->given_bytes, gain);
        unit->breaker_opened = policy_learn(&unit->state, &unit->config, outcome, line->at_usec);
        unit->trimmed = true;
}

/* What was there since the last line counts for the time until this one, where anybody knows it. */
static void count(struct replayed_unit *unit, const struct trace_line *line, uint64_t traced) {
        uint64_t simulated = line->sample.memory.anon_bytes;
        uint64_t usec = 0;

        if (unit->lines > 0)
                usec = mg_sub_floor(line->at_usec, unit->last_usec);
        if (traced != MG_UNKNOWN) {
                unit->known_lines++;
                unit->known_usec = mg_add_cap(unit->known_usec, usec);
                unit->traced_byte_usec += (unsigned __int128) traced * usec;
                unit->simulated_byte_usec += (unsigned __int128) simulated * usec;
                unit->traced_peak_bytes = MG_MAX(unit->traced_peak_bytes, traced);
                unit->simulated_peak_bytes = MG_MAX(unit->simulated_peak_bytes, simulated);
        }
        unit->lines++;
        unit->last_usec = line->at_usec;
}

uint64_t replayed_unit_mean(const struct replayed_unit *unit, unsigned __int128 byte_usec) {
        return unit->known_usec == 0 ? MG_UNKNOWN : (uint64_t) (byte_usec / unit->known_usec);
}

void replayed_unit_step(struct replayed_unit *unit, struct trace_line *line) {
        uint64_t traced = line->sample.memory.anon_bytes;

        if (line->checkpoint)
                unit->checkpoint_at_usec = line->at_usec;
        line->sample.checkpoint_at_usec = unit->checkpoint_at_usec;
        bound_given(unit, line);
        take_off(line, unit->given_bytes);
        count(unit, line, traced);

        unit->trimmed = unit->breaker_opened = false;
        unit->verdict_changed = policy_step(
                        &unit->state, &unit->config, &line->sample, line->at_usec, &unit->decision);
        unit->held[unit->decision.reason]++;
        if (unit->decision.action == MG_ACTION_TRIM)
                trim(unit, line);
}
