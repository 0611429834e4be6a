/* SPDX-License-Identifier: MIT */
/*
 * How results reach the terminal: pager, colours, JSON, libsmartcols tables; the manners of systemd's tools. Layer: ctl.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

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

/* How a column's cell is made of the member of a row. */
enum cell {
        CELL_TEXT,
        CELL_SIZE,
        CELL_SIGNED_SIZE, /* +46M */
        CELL_COUNT,
        CELL_DURATION,
};

struct column {
        const char *title;
        const char *member;
        enum cell cell;
        bool right;
};

/* ROWS: an array of objects. A missing or null member is "-". The legend is left out with --no-legend. */
int table_print(const json_t *rows, const struct column *columns, size_t n_columns);

/* One cell's text, in a buffer that lasts until the next call but seven. */
const char *cell_format(const json_t *value, enum cell cell);

/* Members, for callers that print sentences: "-" or MG_UNKNOWN when missing. */
const char *member_text(const json_t *object, const char *name);
const char *member_size(const json_t *object, const char *name);
const char *member_duration(const json_t *object, const char *name);
json_int_t member_integer(const json_t *object, const char *name, json_int_t otherwise);
bool member_true(const json_t *object, const char *name);
