/* SPDX-License-Identifier: MIT */
/* Results for people and programs: one JSON model, printed as a table, as CSV or as it is. Layer: replay. */
#pragma once

#include <jansson.h>

#include "replay/results.h"

/* {"variants": [...], "comparison", "text"}; the names are those of memguard-replay(1). NULL: out of memory. */
json_t *results_to_json(const struct results *results);

/* Adds what was before, and how it changed, to each variant of MODEL. */
int json_add_baseline(json_t *model, const struct results *baseline);

int show_table(const json_t *model); /* with the sentence below it */
int show_floors(const json_t *model);
int show_csv(const json_t *model);
