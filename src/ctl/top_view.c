/* SPDX-License-Identifier: MIT */
/* Keys, order and choice. Layer: ctl. */
#include "ctl/top_view.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "ctl/top_keys.h"

static const struct top_column unit_columns[] = {
        { { "UNIT", "unit", CELL_TEXT, false }, 0, 0, 'n' },
        { { "MODE", "shown_mode", CELL_TEXT, false }, 7, 5, 'm' },
        { { "AGENTS", "shown_agents", CELL_TEXT, true }, 7, 9, 'g' },
        { { "ANON", "anon_bytes", CELL_SIZE, true }, 5, 1, 'a' },
        { { "SWAP", "swap_bytes", CELL_SIZE, true }, 5, 12, 'w' },
        { { "LIVE", "live_bytes", CELL_SIZE, true }, 5, 4, 'l' },
        { { "FREEABLE", "freeable_bytes", CELL_SIZE, true }, 8, 2, 'f' },
        { { "PINNED", "pinned_bytes", CELL_SIZE, true }, 6, 6, 'i' },
        { { "OTHER", "other_bytes", CELL_SIZE, true }, 5, 8, 'o' },
        { { "SLOPE/H", "slope_bytes_per_hour", CELL_SIGNED_SIZE, true }, 7, 7, 's' },
        { { "TRIMS", "trims", CELL_COUNT, true }, 5, 10, 't' },
        { { "TRIMMED", "trimmed_bytes", CELL_SIZE, true }, 7, 11, 'b' },
        { { "VERDICT", "verdict", CELL_TEXT, false }, 14, 3, 'v' },
        { { "REASON", "reason", CELL_TEXT, false }, 15, 13, 'e' },
};

static const struct top_column process_columns[] = {
        { { "UNIT", "unit", CELL_TEXT, false }, 0, 0, 'n' },
        { { "PID", "pid", CELL_COUNT, true }, 7, 2, 'd' },
        { { "COMMAND", "command", CELL_TEXT, false }, 15, 4, 'c' },
        { { "ANON", "rss_anon_bytes", CELL_SIZE, true }, 5, 1, 'a' },
        { { "SWAP", "swap_bytes", CELL_SIZE, true }, 5, 9, 'w' },
        { { "LIVE", "live_bytes", CELL_SIZE, true }, 5, 6, 'l' },
        { { "RETAINED", "retained_bytes", CELL_SIZE, true }, 8, 7, 'e' },
        { { "FREEABLE", "freeable_bytes", CELL_SIZE, true }, 8, 3, 'f' },
        { { "CACHES", "cache_bytes", CELL_SIZE, true }, 6, 10, 'i' },
        { { "AGENT", "agent", CELL_TEXT, false }, 18, 5, 'g' },
        { { "STATS AGE", "stats_age_usec", CELL_DURATION, true }, 9, 8, 's' },
};

_Static_assert(MG_ELEMENTS(unit_columns) <= TOP_COLUMNS_MAX,
               "more columns than a table has room for");
_Static_assert(MG_ELEMENTS(process_columns) <= TOP_COLUMNS_MAX,
               "more columns than a table has room for");

const struct top_column *top_columns(enum top_table table, size_t *ret_n) {
        *ret_n = table == TOP_UNITS ? MG_ELEMENTS(unit_columns) : MG_ELEMENTS(process_columns);
        return table == TOP_UNITS ? unit_columns : process_columns;
}

static size_t column_of_key(enum top_table table, int key) {
        size_t n;
        const struct top_column *columns = top_columns(table, &n);
        size_t i = 0;

        while (i < n && columns[i].key != key)
                i++;
        return i;
}

void top_view_init(struct top_view *view) {
        *view = (struct top_view){};
        for (enum top_table table = 0; table < _TOP_TABLE_MAX; table++)
                view->order[table].column = column_of_key(table, 'f');
}

/* ---- order ---- */

struct sorting {
        const struct column *column;
        bool reverse;
};

static int compare_numbers(json_int_t a, json_int_t b) {
        return a > b ? -1 : a < b; /* the largest first */
}

/* Where unknown ones stand does not depend on the direction. */
static int compare_known(const json_t *a, const json_t *b, bool *ret_known) {
        bool a_known = json_is_string(a) || json_is_integer(a);
        bool b_known = json_is_string(b) || json_is_integer(b);

        *ret_known = a_known && b_known;
        return b_known - a_known;
}

static int compare_cells(const json_t *a, const json_t *b, const struct sorting *sorting) {
        bool known;
        int unknown_last = compare_known(a, b, &known);
        int r;

        if (!known)
                return unknown_last;
        if (json_is_integer(a) && json_is_integer(b))
                r = compare_numbers(json_integer_value(a), json_integer_value(b));
        else
                r = strcmp(json_is_string(a) ? json_string_value(a) : "",
                           json_is_string(b) ? json_string_value(b) : "");
        return sorting->reverse ? -r : r;
}

/* Rows that are alike keep an order of their own, or they would jump about. */
static int compare_rows(const void *a, const void *b, void *userdata) {
        const json_t *row_a = *(const json_t *const *) a, *row_b = *(const json_t *const *) b;
        const struct sorting *sorting = userdata;
        int r =
                        compare_cells(json_object_get(row_a, sorting->column->member),
                                      json_object_get(row_b, sorting->column->member), sorting);

        if (r == 0)
                r = strcmp(member_text(row_a, "unit"), member_text(row_b, "unit"));
        if (r == 0)
                r = -compare_numbers(
                                member_integer(row_a, "pid", 0), member_integer(row_b, "pid", 0));
        return r;
}

json_t *top_view_sort(const struct top_view *view, const json_t *rows) {
        const struct top_order *order = &view->order[view->table];
        size_t n = json_array_size(rows), n_columns;
        struct sorting sorting = {
                .column = &top_columns(view->table, &n_columns)[order->column].column,
                .reverse = order->reverse,
        };
        json_t *sorted = json_array();
        json_t **pointers = calloc(n + 1, sizeof(*pointers));

        for (size_t i = 0; pointers && i < n; i++)
                pointers[i] = json_array_get(rows, i);
        if (pointers)
                qsort_r(pointers, n, sizeof(*pointers), compare_rows, &sorting);
        for (size_t i = 0; pointers && i < n; i++)
                if (json_array_append(sorted, pointers[i]) < 0)
                        break;
        free(pointers);
        if (json_array_size(sorted) == n)
                return sorted;
        json_decref(sorted);
        return NULL;
}

/* ---- choice ---- */

static void identity_of(const struct top_view *view, const json_t *row, char *buffer, size_t size) {
        snprintf(buffer, size, "%s",
                 view->table == TOP_PROCESSES ? member_text(row, "pid") : unit_key(row));
}

static void keep_in_sight(struct top_view *view, size_t n, size_t page) {
        page = MG_MAX(page, (size_t) 1);
        if (view->selected[0] != '\0') {
                view->first = MG_MIN(view->first, view->selected_at);
                if (view->selected_at >= view->first + page)
                        view->first = view->selected_at - page + 1;
        }
        view->first = MG_MIN(view->first, n > page ? n - page : 0);
}

static void select_row(struct top_view *view, const json_t *rows, size_t i) {
        view->selected_at = i;
        identity_of(view, json_array_get(rows, i), view->selected, sizeof(view->selected));
}

void top_view_follow(struct top_view *view, const json_t *rows, size_t page) {
        char identity[TOP_NAME_MAX];
        size_t n = json_array_size(rows);
        json_t *row;
        size_t i;

        if (view->selected[0] != '\0' && n > 0) {
                json_array_foreach(rows, i, row) {
                        identity_of(view, row, identity, sizeof(identity));
                        if (mg_streq(identity, view->selected))
                                break;
                }
                /* Gone: whoever stands in its place. */
                if (i == n)
                        i = MG_MIN(view->selected_at, n - 1);
                select_row(view, rows, i);
        }
        keep_in_sight(view, n, page);
}

bool top_view_is_selected(const struct top_view *view, size_t i) {
        return view->selected[0] != '\0' && view->selected_at == i;
}

static enum top_action move_to(struct top_view *view, const json_t *rows, size_t page, long by) {
        long n = (long) json_array_size(rows);
        long at = view->selected[0] == '\0' ? (by > 1 ? by - 1 : 0) : (long) view->selected_at + by;

        if (n == 0)
                return TOP_NOTHING;
        at = at < 0 ? 0 : at >= n ? n - 1 : at;
        select_row(view, rows, (size_t) at);
        keep_in_sight(view, (size_t) n, page);
        return TOP_REDRAW;
}

/* ---- tables ---- */

static enum top_action show_table(struct top_view *view, enum top_table table) {
        view->table = table;
        view->selected[0] = '\0';
        view->selected_at = view->first = 0;
        view->frozen = false;
        return TOP_CHANGE;
}

void top_view_leave_unit(struct top_view *view, const char *notice) {
        view->unit[0] = view->unit_key[0] = '\0';
        (void) show_table(view, TOP_UNITS);
        snprintf(view->notice, sizeof(view->notice), "%s", notice);
}

static enum top_action open_unit(struct top_view *view, const json_t *rows) {
        const json_t *row = json_array_get(
                        rows, view->selected[0] != '\0' ? view->selected_at : view->first);

        if (view->table != TOP_UNITS || !row)
                return TOP_NOTHING;
        snprintf(view->unit, sizeof(view->unit), "%s", member_text(row, "unit"));
        snprintf(view->unit_key, sizeof(view->unit_key), "%s", unit_key(row));
        return show_table(view, TOP_PROCESSES);
}

static enum top_action go_back(struct top_view *view) {
        if (view->table == TOP_PROCESSES) {
                view->unit[0] = view->unit_key[0] = '\0';
                return show_table(view, TOP_UNITS);
        }
        view->selected[0] = '\0';
        view->first = 0;
        return TOP_REDRAW;
}

static enum top_action toggle_processes(struct top_view *view) {
        view->unit[0] = view->unit_key[0] = '\0';
        return show_table(view, view->table == TOP_UNITS ? TOP_PROCESSES : TOP_UNITS);
}

static enum top_action sort_by(struct top_view *view, size_t column) {
        view->order[view->table] = (struct top_order){ .column = column };
        view->first = 0;
        return TOP_REDRAW;
}

static enum top_action sort_by_neighbour(struct top_view *view, size_t by) {
        size_t n;

        (void) top_columns(view->table, &n);
        return sort_by(view, (view->order[view->table].column + by) % n);
}

static enum top_action sort_key(struct top_view *view, int key) {
        size_t n;
        size_t column = column_of_key(view->table, key);

        (void) top_columns(view->table, &n);
        return column < n ? sort_by(view, column) : TOP_NOTHING;
}

enum top_action top_view_key(struct top_view *view, int key, const json_t *rows, size_t page) {
        size_t n_columns;
        long far = (long) MG_MAX(page, (size_t) 1);

        (void) top_columns(view->table, &n_columns);
        view->notice[0] = '\0';
        if (view->help && key != 'q') {
                view->help = false;
                return TOP_REDRAW;
        }
        switch (key) {
        case 'q':
        case 'Q':
        case 'D' & 0x1f: /* what ends input elsewhere */
                return TOP_QUIT;
        case '?':
        case 'h':
                view->help = true;
                return TOP_REDRAW;
        case ' ':
                view->frozen = !view->frozen;
                return view->frozen ? TOP_REDRAW : TOP_REFRESH;
        case 'L' & 0x1f:
                return TOP_REPAINT;
        case 'r':
                view->order[view->table].reverse = !view->order[view->table].reverse;
                return TOP_REDRAW;
        case '<':
                return sort_by_neighbour(view, n_columns - 1);
        case '>':
                return sort_by_neighbour(view, 1);
        case 'p':
                return toggle_processes(view);
        case '\r':
        case '\n':
                return open_unit(view, rows);
        case KEY_ESCAPE:
        case KEY_LEFT:
        case '\b':
        case 0x7f:
                return go_back(view);
        case KEY_UP:
        case 'k':
                return move_to(view, rows, page, -1);
        case KEY_DOWN:
        case 'j':
                return move_to(view, rows, page, 1);
        case KEY_PAGE_UP:
                return move_to(view, rows, page, -far);
        case KEY_PAGE_DOWN:
                return move_to(view, rows, page, far);
        case KEY_HOME:
                return move_to(view, rows, page, -(long) json_array_size(rows));
        case KEY_END:
                return move_to(view, rows, page, (long) json_array_size(rows));
        default:
                return sort_key(view, key);
        }
}
