/* SPDX-License-Identifier: MIT */
/* Results as JSON: the model of everything that is shown. Layer: replay. */
#include <errno.h>

#include "base/macros.h"
#include "replay/show.h"

static json_t *number(uint64_t value) {
        return value > INT64_MAX ? json_null() : json_integer((json_int_t) value);
}

static json_t *thousandths(uint64_t value) {
        return value == MG_UNKNOWN ? json_null() : json_real((double) value / 1000);
}

static json_t *text(const char *value) {
        return value ? json_string(value) : json_null();
}

/* Every json_*_set_new() takes NULL for an error, so that one check at the end is enough. */
static int set(json_t *object, const char *name, json_t *value) {
        return json_object_set_new(object, name, value) < 0 ? -ENOMEM : 0;
}

static json_t *floors_to_json(const struct measures *measures) {
        json_t *list = json_array();

        for (size_t i = 0; list && i < measures->n_floors; i++)
                json_array_append_new(list, number(measures->floors_bytes[i]));
        return list;
}

static json_t *run_to_json(const struct run_file *run, const struct measures *measures) {
        json_t *object = json_object();
        int r = 0;

        if (!object)
                return NULL;
        r |= set(object, "round", number(run->round));
        r |= set(object, "end", json_string(end_to_string(run->end)));
        r |= set(object, "end_text", text(run->end_text));
        r |= set(object, "oom_usec", number(run->oom_usec));
        r |= set(object, "source", text(run->source));
        r |= set(object, "notes", text(run->notes));
        r |= set(object, "samples", number(run->n_samples));
        r |= set(object, "load_usec", number(measures->load_usec));
        r |= set(object, "floor_usec", number(measures->floor_usec));
        r |= set(object, "floors_bytes", floors_to_json(measures));
        r |= set(object, "slope_bytes_per_hour",
                 measures->has_slope ? json_integer(measures->slope_bytes_per_hour) : json_null());
        if (r == 0)
                return object;
        json_decref(object);
        return NULL;
}

static json_t *runs_to_json(const struct group *group) {
        json_t *list = json_array();

        for (size_t i = 0; list && i < group->n_runs; i++)
                if (json_array_append_new(list, run_to_json(group->runs[i], &group->measures[i])) <
                    0) {
                        json_decref(list);
                        return NULL;
                }
        return list;
}

static int set_numbers(json_t *object, const struct group *group) {
        const struct {
                const char *name;
                uint64_t value;
        } numbers[] = {
                { "floors", group->floors },
                { "peak_bytes", group->peak_bytes },
                { "mean_bytes", group->mean_bytes },
                { "end_bytes", group->end_bytes },
                { "live_bytes", group->live_bytes },
                { "operations", group->operations },
                { "operations_per_second", group->operations_per_second },
                { "p99_usec", group->p99_usec },
                { "worst_usec", group->worst_usec },
                { "trims", group->trims },
                { "pause_usec", group->pause_usec },
                { "minor_faults", group->minor_faults },
                { "cpu_usec", group->cpu_usec },
                { "psi_usec", group->psi_usec },
        };
        int r = 0;

        for (size_t i = 0; i < MG_ELEMENTS(numbers); i++)
                r |= set(object, numbers[i].name, number(numbers[i].value));
        return r;
}

/* The run that made the verdict what it is, where one run did. */
static const struct run_file *find_culprit(const struct group *group) {
        for (size_t i = 0; i < group->n_runs; i++)
                if (group->runs[i]->end != END_FINISHED && group->runs[i]->end != END_PROGRAM_ENDED)
                        return group->runs[i];
        return NULL;
}

static json_t *group_to_json(const struct group *group) {
        const struct run_file *culprit = find_culprit(group);
        json_t *object = json_object();
        int r = 0;

        if (!object)
                return NULL;
        r |= set(object, "variant", json_string(group->variant));
        r |= set(object, "rounds", number(group->n_runs));
        r |= set(object, "slope_bytes_per_hour",
                 group->has_slope ? json_integer(group->slope_bytes_per_hour) : json_null());
        r |= set(object, "confidence_bytes_per_hour",
                 group->has_slope ? number(group->confidence_bytes_per_hour) : json_null());
        r |= set(object, "rss_per_live",
                 thousandths(measure_ratio(group->end_bytes, group->live_bytes)));
        r |= set(object, "mean_per_live",
                 thousandths(measure_ratio(group->mean_bytes, group->mean_live_bytes)));
        r |= set_numbers(object, group);
        r |= set(object, "verdict", json_string(replay_verdict_to_string(group->verdict)));
        r |= set(object, "end", json_string(end_to_string(culprit ? culprit->end : END_FINISHED)));
        r |= set(object, "end_text", text(culprit ? culprit->end_text : NULL));
        r |= set(object, "oom_usec", culprit ? number(culprit->oom_usec) : json_null());
        r |= set(object, "runs", runs_to_json(group));
        if (r == 0)
                return object;
        json_decref(object);
        return NULL;
}

json_t *results_to_json(const struct results *results) {
        json_t *model = json_object();
        json_t *variants = json_array();
        int r = model && variants ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < results->n_groups; i++)
                r = json_array_append_new(variants, group_to_json(&results->groups[i]));
        if (r == 0)
                r = set(model, "comparison",
                        json_string(comparison_to_string(results->comparison)));
        if (r == 0)
                r = set(model, "text", json_string(comparison_describe(results->comparison)));
        if (r == 0)
                r = json_object_set(model, "variants", variants);
        json_decref(variants);
        if (r == 0)
                return model;
        json_decref(model);
        return NULL;
}

/* ---- An earlier run ---- */

static double change(uint64_t now, uint64_t before) {
        return before == 0 ? 0 : 100.0 * ((double) now - (double) before) / (double) before;
}

static int set_change(json_t *object, const char *name, uint64_t now, uint64_t before) {
        bool known = now != MG_UNKNOWN && before != MG_UNKNOWN && before > 0;

        return set(object, name, known ? json_real(change(now, before)) : json_null());
}

static uint64_t integer(const json_t *object, const char *name) {
        const json_t *value = json_object_get(object, name);

        return json_is_integer(value) ? (uint64_t) json_integer_value(value) : MG_UNKNOWN;
}

static json_t *make_change(const json_t *variant, const struct group *before) {
        json_t *object = json_object();
        int r = 0;

        if (!object)
                return NULL;
        r |= set(object, "slope_bytes_per_hour",
                 before->has_slope ? json_integer(before->slope_bytes_per_hour) : json_null());
        r |= set(object, "mean_bytes", number(before->mean_bytes));
        r |= set(object, "verdict", json_string(replay_verdict_to_string(before->verdict)));
        r |= set_change(object, "mean_percent", integer(variant, "mean_bytes"), before->mean_bytes);
        r |= set_change(object, "peak_percent", integer(variant, "peak_bytes"), before->peak_bytes);
        r |= set_change(object, "throughput_percent", integer(variant, "operations_per_second"),
                        before->operations_per_second);
        if (r == 0)
                return object;
        json_decref(object);
        return NULL;
}

int json_add_baseline(json_t *model, const struct results *baseline) {
        json_t *variant;
        size_t i;

        json_array_foreach(json_object_get(model, "variants"), i, variant) {
                const char *name = json_string_value(json_object_get(variant, "variant"));
                const struct group *before = results_find(baseline, name);

                if (before && set(variant, "baseline", make_change(variant, before)) < 0)
                        return -ENOMEM;
        }
        return 0;
}
