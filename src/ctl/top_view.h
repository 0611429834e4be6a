/* SPDX-License-Identifier: MIT */
/*
 * What top shows: which table, in which order, which row is chosen, and what a key does to that. Rows are JSON objects as
 * ListUnits() and ListProcesses() have them. Layer: ctl; needs no terminal.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "ctl/cells.h"
#include "host/cgroup.h"

enum top_table {
        TOP_UNITS,
        TOP_PROCESSES,
        _TOP_TABLE_MAX,
};

struct top_column {
        struct column column;
        unsigned width; /* of its cells and title; the first column takes what the others leave */
        unsigned priority; /* the larger, the earlier it goes when the terminal is narrow */
        char key;          /* sorts by it */
};

#define TOP_NAME_MAX    512
#define TOP_COLUMNS_MAX 16

struct top_order {
        size_t column;
        bool reverse; /* numbers are shown largest first, texts by the alphabet */
};

struct top_view {
        enum top_table table;
        struct top_order order[_TOP_TABLE_MAX];
        bool frozen;
        bool help;
        char unit[TOP_NAME_MAX];           /* whose processes are shown; "": of all */
        char unit_key[MG_CGROUP_PATH_MAX]; /* the same for the daemon */
        char selected[TOP_NAME_MAX];       /* the chosen row's identity; "": none */
        size_t selected_at;                /* where it was seen last */
        size_t first;                      /* row at the top of the table */
        char notice[TOP_NAME_MAX];         /* shown until the next key */
};

enum top_action {
        TOP_NOTHING,
        TOP_REDRAW,  /* the view has changed */
        TOP_REPAINT, /* every character is to be sent again */
        TOP_REFRESH, /* newer rows are needed */
        TOP_CHANGE,  /* those of another table */
        TOP_QUIT,
};

void top_view_init(struct top_view *view);

/* The table's columns, the name first. */
const struct top_column *top_columns(enum top_table table, size_t *ret_n);

/* KEY was pressed while ROWS were shown, PAGE of them at a time. */
enum top_action top_view_key(struct top_view *view, int key, const json_t *rows, size_t page);

/* ROWS in the view's order, unknown ones last; a new reference, NULL for want of memory. */
json_t *top_view_sort(const struct top_view *view, const json_t *rows);

/* After ROWS or PAGE have changed: finds the chosen row again and keeps it in sight. */
void top_view_follow(struct top_view *view, const json_t *rows, size_t page);

/* Whether row I is the chosen one. */
bool top_view_is_selected(const struct top_view *view, size_t i);

/* From a unit's processes to all units, with a NOTICE that says why. */
void top_view_leave_unit(struct top_view *view, const char *notice);
