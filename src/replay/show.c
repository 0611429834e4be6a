/* SPDX-License-Identifier: MIT */
/* The model as tables by libsmartcols, and as CSV. Layer: replay. */
#include "replay/show.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/text.h"

MG_DEFINE_CLEANUP(struct libscols_table *, scols_unref_table)

enum cell {
        CELL_TEXT,
        CELL_SIZE,
        CELL_SLOPE,
        CELL_RANGE, /* +-46M */
        CELL_RATIO,
        CELL_COUNT,
        CELL_TIME,
        CELL_PERCENT,
};

struct column {
        const char *title;
        const char *member;
        enum cell cell;
};

static const struct column columns[] = {
        { "VARIANT", "variant", CELL_TEXT },
        { "FLOORS", "floors", CELL_COUNT },
        { "SLOPE/H", "slope_bytes_per_hour", CELL_SLOPE },
        { "95%", "confidence_bytes_per_hour", CELL_RANGE },
        { "PEAK", "peak_bytes", CELL_SIZE },
        { "MEAN", "mean_bytes", CELL_SIZE },
        { "END", "end_bytes", CELL_SIZE },
        { "LIVE", "live_bytes", CELL_SIZE },
        { "MEAN/LIVE", "mean_per_live", CELL_RATIO },
        { "END/LIVE", "rss_per_live", CELL_RATIO },
        { "OPS/S", "operations_per_second", CELL_COUNT },
        { "P99", "p99_usec", CELL_TIME },
        { "WORST", "worst_usec", CELL_TIME },
        { "TRIMS", "trims", CELL_COUNT },
        { "VERDICT", "verdict", CELL_TEXT },
};

/* Shown where there is a baseline. */
static const struct column baseline_columns[] = {
        { "VARIANT", "variant", CELL_TEXT },
        { "SLOPE/H BEFORE", "slope_bytes_per_hour", CELL_SLOPE },
        { "MEAN BEFORE", "mean_bytes", CELL_SIZE },
        { "MEAN", "mean_percent", CELL_PERCENT },
        { "PEAK", "peak_percent", CELL_PERCENT },
        { "OPS/S", "throughput_percent", CELL_PERCENT },
        { "VERDICT BEFORE", "verdict", CELL_TEXT },
};

#define CELL_MAX 512

static void format_slope(json_int_t bytes, char *buffer) {
        char size[MG_SHORT_TEXT_MAX];
        uint64_t magnitude = bytes < 0 ? UINT64_C(0) - (uint64_t) bytes : (uint64_t) bytes;

        snprintf(buffer, CELL_MAX, "%c%s", bytes < 0 ? '-' : '+', format_size(magnitude, size));
}

static void format_integer(json_int_t value, enum cell cell, char *buffer) {
        char text[MG_SHORT_TEXT_MAX];

        switch (cell) {
        case CELL_SIZE:
                snprintf(buffer, CELL_MAX, "%s", format_size((uint64_t) value, text));
                return;
        case CELL_RANGE:
                snprintf(buffer, CELL_MAX, "+-%s", format_size((uint64_t) value, text));
                return;
        case CELL_TIME:
                snprintf(buffer, CELL_MAX, "%s", format_duration((uint64_t) value, text));
                return;
        case CELL_SLOPE:
                format_slope(value, buffer);
                return;
        case CELL_TEXT:
        case CELL_RATIO:
        case CELL_COUNT:
        case CELL_PERCENT:
                snprintf(buffer, CELL_MAX, "%" JSON_INTEGER_FORMAT, value);
        }
}

static const char *format_cell(const json_t *value, enum cell cell, char buffer[static CELL_MAX]) {
        if (json_is_string(value))
                return json_string_value(value);
        if (json_is_real(value))
                snprintf(buffer, CELL_MAX, cell == CELL_PERCENT ? "%+.1f%%" : "%.2f",
                         json_real_value(value));
        else if (json_is_integer(value))
                format_integer(json_integer_value(value), cell, buffer);
        else
                return "-";
        return buffer;
}

/* "oom, minute 6" says more than "oom". */
static const char *format_verdict(const json_t *row, char buffer[static CELL_MAX]) {
        const char *verdict = json_string_value(json_object_get(row, "verdict"));
        const json_t *oom = json_object_get(row, "oom_usec");

        if (!verdict || !mg_streq(verdict, "oom") || !json_is_integer(oom))
                return verdict ?: "-";
        snprintf(buffer, CELL_MAX, "oom in minute %" JSON_INTEGER_FORMAT,
                 json_integer_value(oom) / (json_int_t) MG_USEC_PER_MIN + 1);
        return buffer;
}

static struct libscols_table *new_table(void) {
        struct libscols_table *table = scols_new_table();

        if (table && !isatty(STDOUT_FILENO))
                scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER);
        return table;
}

static int add_columns(struct libscols_table *table, const struct column *wanted, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!scols_table_new_column(
                                    table, wanted[i].title, 0,
                                    wanted[i].cell == CELL_TEXT ? 0 : SCOLS_FL_RIGHT))
                        return -ENOMEM;
        return 0;
}

static int print_table(struct libscols_table *table) {
        fflush(stdout);
        return scols_print_table(table);
}

static int add_row(struct libscols_table *table, const json_t *row) {
        struct libscols_line *line = scols_table_new_line(table, NULL);
        char buffer[CELL_MAX];
        int r = line ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < MG_ELEMENTS(columns); i++) {
                const json_t *value = json_object_get(row, columns[i].member);
                bool verdict = mg_streq(columns[i].member, "verdict");

                r = scols_line_set_data(
                                line, i,
                                verdict ? format_verdict(row, buffer)
                                        : format_cell(value, columns[i].cell, buffer));
        }
        return r;
}

static int show_baseline(const json_t *variants) {
        MG_CLEANUP(scols_unref_tablep) struct libscols_table *table = new_table();
        char buffer[CELL_MAX];
        bool any = false;
        json_t *row;
        size_t i;
        int r = table ? add_columns(table, baseline_columns, MG_ELEMENTS(baseline_columns))
                      : -ENOMEM;

        json_array_foreach(variants, i, row) {
                const json_t *before = json_object_get(row, "baseline");
                struct libscols_line *line;

                if (r < 0 || !before)
                        continue;
                any = true;
                line = scols_table_new_line(table, NULL);
                r = line ? scols_line_set_data(
                                           line, 0,
                                           json_string_value(json_object_get(row, "variant")))
                         : -ENOMEM;
                for (size_t c = 1; r == 0 && c < MG_ELEMENTS(baseline_columns); c++)
                        r = scols_line_set_data(
                                        line, c,
                                        format_cell(json_object_get(before,
                                                                    baseline_columns[c].member),
                                                    baseline_columns[c].cell, buffer));
        }
        if (r < 0 || !any)
                return r;
        puts("\nAgainst the baseline:");
        return print_table(table);
}

static void show_ends(const json_t *variants) {
        json_t *row;
        size_t i;

        json_array_foreach(variants, i, row) {
                const json_t *text = json_object_get(row, "end_text");
                if (json_is_string(text))
                        printf("%s: %s\n", json_string_value(json_object_get(row, "variant")),
                               json_string_value(text));
        }
}

int show_table(const json_t *model) {
        MG_CLEANUP(scols_unref_tablep) struct libscols_table *table = new_table();
        const json_t *variants = json_object_get(model, "variants");
        json_t *row;
        size_t i;
        int r = table ? add_columns(table, columns, MG_ELEMENTS(columns)) : -ENOMEM;

        json_array_foreach(variants, i, row) {
                if (r == 0)
                        r = add_row(table, row);
        }
        if (r == 0)
                r = print_table(table);
        if (r == 0)
                r = show_baseline(variants);
        if (r < 0)
                return r;
        show_ends(variants);
        printf("\n%s.\n", json_string_value(json_object_get(model, "text")));
        return 0;
}

/* ---- Floors: a row for each, a column for each run ---- */

static int add_floor_columns(
                struct libscols_table *table,
                const json_t *variants,
                size_t *ret_rows) {
        char title[256];
        json_t *row;
        json_t *run;
        size_t i;
        size_t j;

        *ret_rows = 0;
        if (!scols_table_new_column(table, "FLOOR", 0, SCOLS_FL_RIGHT))
                return -ENOMEM;
        json_array_foreach(variants, i, row) {
                json_array_foreach(json_object_get(row, "runs"), j, run) {
                        snprintf(title, sizeof(title), "%s.%" JSON_INTEGER_FORMAT,
                                 json_string_value(json_object_get(row, "variant")),
                                 json_integer_value(json_object_get(run, "round")));
                        if (!scols_table_new_column(table, title, 0, SCOLS_FL_RIGHT))
                                return -ENOMEM;
                        *ret_rows = MG_MAX(
                                        *ret_rows,
                                        json_array_size(json_object_get(run, "floors_bytes")));
                }
        }
        return 0;
}

static int add_floor_row(struct libscols_table *table, const json_t *variants, size_t floor) {
        struct libscols_line *line = scols_table_new_line(table, NULL);
        char buffer[CELL_MAX];
        size_t at = 0;
        json_t *row;
        json_t *run;
        size_t i;
        size_t j;
        int r = line ? 0 : -ENOMEM;

        snprintf(buffer, sizeof(buffer), "%zu", floor + 1);
        if (r == 0)
                r = scols_line_set_data(line, at++, buffer);
        json_array_foreach(variants, i, row) {
                json_array_foreach(json_object_get(row, "runs"), j, run) {
                        const json_t *floors = json_object_get(run, "floors_bytes");
                        if (r == 0)
                                r = scols_line_set_data(
                                                line, at++,
                                                format_cell(json_array_get(floors, floor),
                                                            CELL_SIZE, buffer));
                }
        }
        return r;
}

int show_floors(const json_t *model) {
        MG_CLEANUP(scols_unref_tablep) struct libscols_table *table = new_table();
        const json_t *variants = json_object_get(model, "variants");
        size_t rows = 0;
        int r = table ? add_floor_columns(table, variants, &rows) : -ENOMEM;

        for (size_t floor = 0; r == 0 && floor < rows; floor++)
                r = add_floor_row(table, variants, floor);
        return r < 0 ? r : print_table(table);
}

/* ---- CSV ---- */

static void print_csv_value(const json_t *value) {
        const char *text = json_string_value(value);

        if (json_is_integer(value))
                printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else if (json_is_real(value))
                printf("%.3f", json_real_value(value));
        else if (text) {
                putchar('"');
                for (; *text != '\0'; text++)
                        fputs(*text == '"' ? "\"\"" : (char[]){ *text, '\0' }, stdout);
                putchar('"');
        }
}

int show_csv(const json_t *model) {
        static const char *const members[] = {
                "variant",
                "rounds",
                "floors",
                "slope_bytes_per_hour",
                "confidence_bytes_per_hour",
                "peak_bytes",
                "mean_bytes",
                "end_bytes",
                "live_bytes",
                "mean_per_live",
                "rss_per_live",
                "operations",
                "operations_per_second",
                "p99_usec",
                "worst_usec",
                "trims",
                "pause_usec",
                "minor_faults",
                "cpu_usec",
                "psi_usec",
                "verdict",
                "end",
                "oom_usec",
        };
        json_t *row;
        size_t i;

        for (i = 0; i < MG_ELEMENTS(members); i++)
                printf("%s%s", i > 0 ? "," : "", members[i]);
        putchar('\n');
        json_array_foreach(json_object_get(model, "variants"), i, row) {
                for (size_t c = 0; c < MG_ELEMENTS(members); c++) {
                        if (c > 0)
                                putchar(',');
                        print_csv_value(json_object_get(row, members[c]));
                }
                putchar('\n');
        }
        return 0;
}
