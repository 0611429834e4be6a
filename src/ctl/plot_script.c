/* SPDX-License-Identifier: MIT */
/* The script of a plot, with its data in it. Layer: ctl. */
#include "ctl/plot_script.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/macros.h"
#include "ctl/cells.h"
#include "host/gnuplot.h"

/* What is drawn as a line: black, told apart by its dashes, or on a terminal by the character of its line type: * # $ %. */
static const struct series {
        const char *member;
        const char *block;
        const char *title;
        const char *style;
} series[] = {
        { "anon_bytes", "$anon", "anon", "lw 2 dt 1" },
        { "live_bytes", "$live", "live", "lw 1.2 dt 2" },
        { "retained_bytes", "$retained", "retained", "lw 1.2 dt 4" },
        { "trim_above_bytes", "$above", "TrimAbove=", "lw 1.6 dt 3" },
};

/* The time and the size of the whole plot, and the units they are shown in. */
struct frame {
        json_int_t first_usec;
        json_int_t last_usec;
        json_int_t highest_bytes;
        long utc_offset; /* gnuplot knows no time zones */
        uint64_t unit_bytes;
        const char *unit_name;
};

int plot_form_of(const char *file, enum plot_form *ret_form) {
        static const char *const suffixes[] = {
                [PLOT_TERMINAL] = NULL,
                [PLOT_SVG] = ".svg",
                [PLOT_PNG] = ".png",
        };
        size_t length = strlen(file);

        for (enum plot_form form = PLOT_SVG; form < _PLOT_FORM_MAX; form++) {
                size_t n = strlen(suffixes[form]);
                if (length <= n || !mg_streq(file + length - n, suffixes[form]))
                        continue;
                *ret_form = form;
                return 0;
        }
        return -EINVAL;
}

static json_int_t highest_of(const json_t *rows, const char *member) {
        json_int_t highest = 0;
        json_t *row;
        size_t i;

        json_array_foreach(rows, i, row) {
                json_int_t bytes = member_integer(row, member, 0);
                highest = MG_MAX(highest, bytes);
        }
        return highest;
}

static void choose_unit(struct frame *frame) {
        bool large = frame->highest_bytes >= (json_int_t) (10 * MG_GIB);

        frame->unit_bytes = large ? MG_GIB : MG_MIB;
        frame->unit_name = large ? "GiB" : "MiB";
}

static struct frame frame_of(const json_t *samples, const json_t *trims) {
        const json_t *last = json_array_get(samples, json_array_size(samples) - 1);
        struct frame frame = {
                .first_usec = member_integer(json_array_get(samples, 0), "at_usec", 0),
                .last_usec = member_integer(last, "at_usec", 0) +
                             member_integer(last, "step_usec", 0),
                .highest_bytes = highest_of(trims, "before_bytes"),
        };
        time_t now = (time_t) (frame.last_usec / (json_int_t) MG_USEC_PER_SEC);
        struct tm local;

        for (size_t i = 0; i < MG_ELEMENTS(series); i++)
                frame.highest_bytes =
                                MG_MAX(frame.highest_bytes, highest_of(samples, series[i].member));
        if (localtime_r(&now, &local))
                frame.utc_offset = local.tm_gmtoff;
        choose_unit(&frame);
        return frame;
}

static double seconds_of(json_int_t usec, const struct frame *frame) {
        return (double) usec / (double) MG_USEC_PER_SEC + (double) frame->utc_offset;
}

static double size_of(json_int_t bytes, const struct frame *frame) {
        return (double) bytes / (double) frame->unit_bytes;
}

/* A tick comes a little late each time, so that a step now and then stays empty: that is no gap. */
static bool is_after_gap(const json_t *before, const json_t *sample, json_int_t interval_usec) {
        return member_integer(sample, "at_usec", 0) - member_integer(before, "at_usec", 0) >
               member_integer(before, "step_usec", 0) + 2 * interval_usec;
}

/* An empty line breaks gnuplot's line. Returns how many points there are. */
static size_t put_series(
                FILE *script,
                const json_t *history,
                const struct series *line,
                const struct frame *frame) {
        const json_t *samples = json_object_get(history, "samples");
        json_int_t interval_usec = member_integer(history, "interval_usec", 0);
        const json_t *before = NULL;
        json_t *sample;
        size_t i, n = 0;

        fprintf(script, "%s << END\n", line->block);
        json_array_foreach(samples, i, sample) {
                json_int_t bytes = member_integer(sample, line->member, -1);
                if (bytes < 0 || (before && is_after_gap(before, sample, interval_usec)))
                        fputc('\n', script);
                before = sample;
                if (bytes < 0)
                        continue;
                fprintf(script, "%.0f %.3f\n",
                        seconds_of(member_integer(sample, "at_usec", 0), frame),
                        size_of(bytes, frame));
                n++;
        }
        fputs("END\n", script);
        return n;
}

static bool is_success(const json_t *trim) {
        const char *result = member_text(trim, "result");

        return mg_streq(result, "done") || mg_streq(result, "partial");
}

static size_t put_trims(
                FILE *script,
                const char *block,
                const json_t *trims,
                bool succeeded,
                const struct frame *frame) {
        json_t *trim;
        size_t i, n = 0;

        fprintf(script, "%s << END\n", block);
        json_array_foreach(trims, i, trim) {
                json_int_t before = member_integer(trim, "before_bytes", -1);
                json_int_t after = member_integer(trim, "after_bytes", -1);
                if (before < 0 || after < 0 || is_success(trim) != succeeded)
                        continue;
                fprintf(script, "%.0f %.3f %.3f\n",
                        seconds_of(member_integer(trim, "at_usec", 0), frame),
                        size_of(before, frame), size_of(after, frame));
                n++;
        }
        fputs("END\n", script);
        return n;
}

static void put_terminal(FILE *script, const struct plot_target *target) {
        switch (target->form) {
        case PLOT_TERMINAL:
                fprintf(script,
                        "set terminal dumb noenhanced mono size %u,%u\nunset key\n"
                        "set xlabel '* anon   # live   $ retained   %% TrimAbove=   T trim   x failed'\n",
                        target->columns, target->rows);
                return;
        case PLOT_SVG:
                fputs("set terminal svg noenhanced size 1000,560 font 'sans,13' background rgb 'white'\n",
                      script);
                break;
        case PLOT_PNG:
        case _PLOT_FORM_MAX:
                fputs("set terminal pngcairo noenhanced size 1000,560 font 'sans,11' background rgb 'white'\n",
                      script);
                break;
        }
        fputs("set grid ytics lc rgb 'gray80' lt 1 lw 0.5\nset bmargin 5\n"
              "set key below maxcols 6 samplen 4\n",
              script);
}

static const char *show_time(json_int_t usec, char buffer[static 20]) {
        time_t at = (time_t) (usec / (json_int_t) MG_USEC_PER_SEC);
        struct tm local;

        if (!localtime_r(&at, &local) || strftime(buffer, 20, "%Y-%m-%d %H:%M", &local) == 0)
                return "-";
        return buffer;
}

/* As many times below the plot as can be read there. */
static unsigned choose_tics(json_int_t length_usec, unsigned most) {
        static const unsigned seconds[] = { 5,   10,   30,   60,   120,   300,  600,
                                            900, 1800, 3600, 7200, 14400, 21600 };

        for (size_t i = 0; i < MG_ELEMENTS(seconds); i++)
                if (length_usec / (json_int_t) MG_USEC_PER_SEC <=
                    (json_int_t) seconds[i] * (json_int_t) most)
                        return seconds[i];
        return 86400;
}

static void put_axes(
                FILE *script,
                const struct frame *frame,
                const struct plot_target *target,
                const char *unit) {
        json_int_t length_usec = frame->last_usec - frame->first_usec;
        char title[300], first[20], last[20];
        const char *format = length_usec < (json_int_t) (5 * MG_USEC_PER_MIN)     ? "%H:%M:%S"
                             : length_usec > (json_int_t) (40 * MG_USEC_PER_HOUR) ? "%m-%d %H:%M"
                                                                                  : "%H:%M";

        snprintf(title, sizeof(title), "%.200s, %s to %s", unit,
                 show_time(frame->first_usec, first), show_time(frame->last_usec, last));
        fprintf(script,
                "set xdata time\nset timefmt '%%s'\nset format x '%s'\nset xrange ['%.0f':'%.0f']\n",
                format, seconds_of(frame->first_usec, frame), seconds_of(frame->last_usec, frame));
        fprintf(script,
                "set yrange [0:%.3f]\nset border 3 back\nset tics nomirror out\nset ylabel '%s'\n",
                MG_MAX(size_of(frame->highest_bytes, frame) * 1.1, 0.1), frame->unit_name);
        fprintf(script, "set xtics %u\n",
                choose_tics(length_usec, target->form == PLOT_TERMINAL ? target->columns / 12 : 8));
        fputs("set title ", script);
        gnuplot_put_text(script, title);
        fputc('\n', script);
}

static void put_comma(FILE *script, size_t *n_drawn) {
        fputs((*n_drawn)++ == 0 ? "plot " : ", ", script);
}

static void put_line(FILE *script, const struct series *line, enum plot_form form) {
        fprintf(script, "%s using 1:2 with lines ", line->block);
        if (form == PLOT_TERMINAL)
                fprintf(script, "lt %zu notitle", (size_t) (line - series) + 1);
        else
                fprintf(script, "lc rgb 'black' %s title '%s'", line->style, line->title);
}

/* On paper an arrow from what was there to what was left. */
static void put_marks(
                FILE *script,
                const char *block,
                bool succeeded,
                enum plot_form form,
                size_t *n_drawn) {
        put_comma(script, n_drawn);
        if (form == PLOT_TERMINAL) {
                fprintf(script, "%s using 1:2 with points pt '%c' notitle", block,
                        succeeded ? 'T' : 'x');
                return;
        }
        fprintf(script,
                "%s using 1:2:(0):($3-$2) with vectors head filled lc rgb 'black' lw 1 notitle, "
                "%s using 1:2 with points pt %d ps 1.4 lc rgb 'black' title '%s'",
                block, block, succeeded ? 11 : 10, succeeded ? "trim" : "failed trim");
}

static void put_plot(
                FILE *script,
                const json_t *history,
                const struct frame *frame,
                enum plot_form form) {
        const json_t *trims = json_object_get(history, "trims");
        size_t n[MG_ELEMENTS(series)];
        size_t n_drawn = 0;

        for (size_t i = 0; i < MG_ELEMENTS(series); i++)
                n[i] = put_series(script, history, &series[i], frame);
        size_t n_succeeded = put_trims(script, "$trims", trims, true, frame);
        size_t n_failed = put_trims(script, "$failed", trims, false, frame);
        /* gnuplot complains of data without a point. On a terminal what is drawn last hides the others: that is anon. */
        for (size_t i = 0; i < MG_ELEMENTS(series); i++) {
                size_t at = form == PLOT_TERMINAL ? MG_ELEMENTS(series) - 1 - i : i;

                if (n[at] == 0)
                        continue;
                put_comma(script, &n_drawn);
                put_line(script, &series[at], form);
        }
        if (n_succeeded > 0)
                put_marks(script, "$trims", true, form, &n_drawn);
        if (n_failed > 0)
                put_marks(script, "$failed", false, form, &n_drawn);
        fputc('\n', script);
}

int plot_script(const json_t *history, const struct plot_target *target, char **ret_script) {
        const json_t *samples = json_object_get(history, "samples");
        const json_t *trims = json_object_get(history, "trims");
        char *text = NULL;
        size_t size;

        if (json_array_size(samples) == 0)
                return -ENODATA;
        struct frame frame = frame_of(samples, trims);
        FILE *script = open_memstream(&text, &size);
        if (!script)
                return -ENOMEM;
        put_terminal(script, target);
        put_axes(script, &frame, target, member_text(history, "unit"));
        put_plot(script, history, &frame, target->form);
        if (fclose(script) != 0) {
                free(text);
                return -ENOMEM;
        }
        *ret_script = text;
        return 0;
}
