/* SPDX-License-Identifier: MIT */
/*
 * How results reach the terminal: pager, colours, JSON, libsmartcols tables; the manners of systemd's tools. Layer: ctl.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "ctl/cells.h"

/* Sends what is printed from now on through the pager, when standard output is a terminal. */
void pager_open(void);
/*
 * Writes out what is left and waits for the reader to close the pager. Returns CTL_FAILED, with a message, when the output could
 * not be written; a reader who quits early is no failure.
 */
int pager_close(void);

/* SYSTEMD_COLORS over NO_COLOR over "is a terminal that can". */
bool colors_enabled(void);

/* Prints VALUE the way --json= asks; returns an enum ctl_exit. */
int json_print(const json_t *value);

/* A promise to scripts: each of OBJECTS has all of NAMES, null where unknown. */
void json_keep_names(json_t *objects, const char *const *names, size_t n_names);

/* ROWS: an array of objects. A missing or null member is "-". The legend is left out with --no-legend. */
int table_print(const json_t *rows, const struct column *columns, size_t n_columns);
