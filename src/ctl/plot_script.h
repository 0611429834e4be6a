/* SPDX-License-Identifier: MIT */
/*
 * A unit's history as a script for gnuplot: anon, live, retained and the threshold as lines told apart without colours,
 * trims as marks; where nothing was measured the lines have a gap. Layer: ctl; pure but for the time zone.
 */
#pragma once

#include <jansson.h>

enum plot_form {
        PLOT_TERMINAL,
        PLOT_SVG,
        PLOT_PNG,
        _PLOT_FORM_MAX,
};

struct plot_target {
        enum plot_form form;
        unsigned columns; /* of the terminal */
        unsigned rows;
};

/* By FILE's suffix; -EINVAL for any other than .svg and .png. */
int plot_form_of(const char *file, enum plot_form *ret_form);

/* HISTORY as GetHistory() has it. The caller frees *ret_script. Returns 0, -ENODATA (no sample), -ENOMEM. */
int plot_script(const json_t *history, const struct plot_target *target, char **ret_script);
