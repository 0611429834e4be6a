/* SPDX-License-Identifier: MIT */
/*
 * What a value of the daemon's looks like to a reader: members of JSON objects as short texts. Layer: ctl; needs no terminal.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* How a column's cell is made of the member of a row. */
enum cell {
        CELL_TEXT,
        CELL_SIZE,
        CELL_SIGNED_SIZE, /* +46M */
        CELL_COUNT,
        CELL_DURATION,
        CELL_TIME, /* 2026-11-30 14:03:22, in local time */
};

struct column {
        const char *title;
        const char *member;
        enum cell cell;
        bool right;
};

/* One cell's text, in a buffer that lasts until the next call but seven. */
const char *cell_format(const json_t *value, enum cell cell);

/* Members, for callers that print sentences: "-" or MG_UNKNOWN when missing. */
const char *member_text(const json_t *object, const char *name);
const char *member_size(const json_t *object, const char *name);
const char *member_duration(const json_t *object, const char *name);
json_int_t member_integer(const json_t *object, const char *name, json_int_t otherwise);
bool member_true(const json_t *object, const char *name);

/* What to ask the daemon with for the unit of a row: units of two users may share a name, never a cgroup. */
const char *unit_key(const json_t *row);
