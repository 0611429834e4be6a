/* SPDX-License-Identifier: MIT */
/*
 * Who is asked in one round, and in which order. Layer: core; pure.
 */
#include "core/round.h"

static bool is_willing(const struct mg_process_sample *process) {
        return process->has_agent && process->can_trim && !process->suspended &&
               account_process_retained(process) != MG_UNKNOWN;
}

static void survey_willing(
                const struct mg_process_sample *process,
                uint64_t pause_usec,
                uint64_t max_pause_usec,
                struct mg_round_survey *survey) {
        uint64_t reach = account_process_reach(process);

        if (reach == 0)
                return;
        survey->willing_bytes = mg_add_cap(survey->willing_bytes, reach);
        survey->shortest_usec = MG_MIN(survey->shortest_usec, pause_usec);
        if (pause_usec > max_pause_usec) {
                survey->n_skipped++;
                return;
        }
        survey->n_fits++;
        survey->fits_bytes = mg_add_cap(survey->fits_bytes, reach);
        survey->fits_retained_bytes =
                        mg_add_cap(survey->fits_retained_bytes, account_process_retained(process));
        survey->longest_fitting_usec = MG_MAX(survey->longest_fitting_usec, pause_usec);
}

void round_survey(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                struct mg_round_survey *ret_survey) {
        struct mg_round_survey survey = { .shortest_usec = MG_UNKNOWN };

        for (size_t i = 0; i < sample->n_processes; i++) {
                const struct mg_process_sample *process = &sample->processes[i];
                bool known = account_process_retained(process) != MG_UNKNOWN;

                survey.n_agents += process->has_agent;
                survey.n_statistics += process->has_agent && known;
                survey.n_can_trim += process->has_agent && known && process->can_trim;
                survey.n_busy += process->busy;
                if (!is_willing(process))
                        continue;
                survey.n_willing++;
                survey_willing(process, policy_predict_pause(state, process),
                               config->max_pause_usec, &survey);
        }
        *ret_survey = survey;
}

static bool is_bigger(const struct mg_round_step *a, const struct mg_round_step *b) {
        if (a->retained_bytes != b->retained_bytes)
                return a->retained_bytes > b->retained_bytes;
        return a->pid < b->pid;
}

/* Keeps STEPS sorted, and the biggest of them where there is no room for all. */
static size_t insert_step(
                struct mg_round_step *steps,
                size_t n_steps,
                size_t max,
                const struct mg_round_step *step) {
        size_t at = n_steps;

        while (at > 0 && is_bigger(step, &steps[at - 1]))
                at--;
        if (at == max)
                return n_steps;
        n_steps = MG_MIN(n_steps + 1, max);
        memmove(steps + at + 1, steps + at, (n_steps - at - 1) * sizeof(*steps));
        steps[at] = *step;
        return n_steps;
}

size_t round_plan(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                struct mg_round_step *steps,
                size_t max,
                size_t *ret_skipped) {
        size_t n_steps = 0;
        size_t skipped = 0;

        for (size_t i = 0; i < sample->n_processes; i++) {
                const struct mg_process_sample *process = &sample->processes[i];
                struct mg_round_step step;

                if (!is_willing(process) || process->busy || account_process_reach(process) == 0)
                        continue;
                step = (struct mg_round_step){
                        .pid = process->pid,
                        .start_time = process->start_time,
                        .retained_bytes = account_process_retained(process),
                        .predicted_pause_usec = policy_predict_pause(state, process),
                };
                if (step.predicted_pause_usec > config->max_pause_usec)
                        skipped++;
                else
                        n_steps = insert_step(steps, n_steps, max, &step);
        }
        *ret_skipped = skipped;
        return n_steps;
}
