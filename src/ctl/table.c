/* SPDX-License-Identifier: MIT */
/* Tables by libsmartcols. Layer: ctl. */
#include <errno.h>
#include <libsmartcols.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

MG_DEFINE_CLEANUP(struct libscols_table *, scols_unref_table)

static int add_columns(struct libscols_table *table, const struct column *columns, size_t n) {
        for (size_t i = 0; i < n; i++) {
                int flags = columns[i].right ? SCOLS_FL_RIGHT : 0;
                if (!scols_table_new_column(table, columns[i].title, 0, flags))
                        return -ENOMEM;
        }
        return 0;
}

static int add_row(
                struct libscols_table *table,
                const json_t *row,
                const struct column *columns,
                size_t n) {
        struct libscols_line *line = scols_table_new_line(table, NULL);

        if (!line)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const json_t *value = json_object_get(row, columns[i].member);
                int r = scols_line_set_data(line, i, cell_format(value, columns[i].cell));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int fill(struct libscols_table *table,
                const json_t *rows,
                const struct column *columns,
                size_t n_columns) {
        size_t i;
        json_t *row;

        int r = add_columns(table, columns, n_columns);
        if (r < 0)
                return r;
        json_array_foreach(rows, i, row) {
                r = add_row(table, row, columns, n_columns);
                if (r < 0)
                        return r;
        }
        return 0;
}

int table_print(const json_t *rows, const struct column *columns, size_t n_columns) {
        MG_CLEANUP(scols_unref_tablep) struct libscols_table *table = scols_new_table();

        int r = table ? fill(table, rows, columns, n_columns) : -ENOMEM;
        if (r < 0) {
                fprintf(stderr, "memguardctl: cannot make the table: %s\n", strerror(-r));
                return CTL_FAILED;
        }
        scols_table_enable_noheadings(table, ctl_options.no_legend);
        scols_table_enable_colors(table, colors_enabled());
        /* Into a file or a pipe nothing is cut to a width that is not there. */
        if (!isatty(STDOUT_FILENO))
                scols_table_set_termforce(table, SCOLS_TERMFORCE_NEVER);
        fflush(stdout);
        scols_print_table(table);
        return CTL_OK;
}
