/* SPDX-License-Identifier: MIT */
/* A script for gnuplot with the data in it, through a pipe. Layer: replay. */
#include "replay/chart.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/cleanup.h"
#include "host/gnuplot.h"

static bool ends_with(const char *text, const char *end) {
        size_t length = strlen(text);
        return length > strlen(end) && mg_streq(text + length - strlen(end), end);
}

static double mib(uint64_t bytes) {
        return (double) bytes / (double) MG_MIB;
}

/* What the axis of time is in: minutes are too coarse for a run of some. */
struct axis {
        const char *name;
        uint64_t usec;
};

static struct axis choose_axis(const struct results *results) {
        uint64_t last = 0;

        for (size_t i = 0; i < results->n_runs; i++)
                if (results->order[i]->n_samples > 0)
                        last = MG_MAX(last,
                                      results->order[i]
                                                      ->samples[results->order[i]->n_samples - 1]
                                                      .at_usec);
        return last < 5 * MG_USEC_PER_MIN ? (struct axis){ "seconds", MG_USEC_PER_SEC }
                                          : (struct axis){ "minutes", MG_USEC_PER_MIN };
}

static double on_axis(uint64_t usec, struct axis axis) {
        return (double) usec / (double) axis.usec;
}

static void put_samples(FILE *script, const struct run_file *run, struct axis axis, size_t i) {
        fprintf(script, "$samples%zu << END\n", i);
        for (size_t s = 0; s < run->n_samples; s++) {
                uint64_t bytes = sample_footprint(&run->samples[s]);
                if (bytes != MG_UNKNOWN)
                        fprintf(script, "%.4f %.3f\n", on_axis(run->samples[s].at_usec, axis),
                                mib(bytes));
        }
        fputs("END\n", script);
}

/* Each in the middle of its time. */
static void put_floors(
                FILE *script,
                const struct run_file *run,
                const struct measures *measures,
                struct axis axis,
                size_t i) {
        uint64_t first = 0;

        for (size_t s = 0; s < run->n_samples; s++)
                if (run->samples[s].phase == PHASE_LOAD) {
                        first = run->samples[s].at_usec;
                        break;
                }
        fprintf(script, "$floors%zu << END\n", i);
        for (size_t f = 0; f < measures->n_floors; f++)
                if (measures->floors_bytes[f] != MG_UNKNOWN)
                        fprintf(script, "%.4f %.3f\n",
                                on_axis(first + f * measures->floor_usec + measures->floor_usec / 2,
                                        axis),
                                mib(measures->floors_bytes[f]));
        fputs("END\n", script);
}

static size_t count_runs(const struct results *results) {
        size_t n = 0;

        for (size_t i = 0; i < results->n_runs; i++)
                n += results->order[i]->n_samples > 0;
        return n;
}

static void put_terminal(FILE *script, const char *file, struct axis axis, size_t n) {
        /* The key stands below the plot, three to a row. */
        size_t height = 520 + 24 * (n / 3 + 1);

        if (ends_with(file, ".svg"))
                fprintf(script,
                        "set terminal svg noenhanced size 1000,%zu font 'sans,13' background rgb 'white'\n",
                        height);
        else
                fprintf(script,
                        "set terminal pngcairo noenhanced size 1000,%zu font 'sans,11' background rgb 'white'\n",
                        height);
        fprintf(script, "set xlabel '%s since the start' offset 0,0.4\n", axis.name);
        fputs("set ylabel 'MiB'\nset yrange [0:*]\nset xrange [0:*]\n"
              "set grid ytics lc rgb 'gray80' lt 1 lw 0.5\nset border 3\nset tics nomirror out\n"
              "set key below maxcols 3 samplen 4 spacing 1.2\n"
              "set title 'Anonymous memory with swap: every sample (thin), floors (marks)' noenhanced\n",
              script);
}

/* gnuplot has 13 marks and 5 dashes that can be told apart; the two together repeat after 65. */
#define MARKS  13
#define DASHES 5

/* Where many runs are drawn over each other their samples are a haze, and the floors what is to be read. */
#define MANY_RUNS 4

/* Run I of the results, the STYLE'th that is drawn. One too short for floors is drawn by its samples alone. */
static void put_run(FILE *script, const struct results *results, size_t i, size_t style) {
        const struct run_file *run = results->order[i];
        const char *haze = count_runs(results) > MANY_RUNS ? "gray80" : "gray55";
        char title[300];

        snprintf(title, sizeof(title), run->round > 1 ? "%.200s, round %" PRIu64 : "%.200s",
                 run->variant, run->round);
        if (results->measures[i].n_floors > 0)
                fprintf(script,
                        "$samples%zu using 1:2 with lines lc rgb '%s' lw 0.6 dt 1 notitle, $floors%zu using 1:2 with linespoints pt %zu ps 0.9",
                        i, haze, i, style % MARKS + 1);
        else
                fprintf(script, "$samples%zu using 1:2 with lines", i);
        fprintf(script, " lc rgb 'black' lw 1.4 dt %zu title ", style % DASHES + 1);
        gnuplot_put_text(script, title);
}

static void put_plot(FILE *script, const struct results *results) {
        size_t style = 0;

        for (size_t i = 0; i < results->n_runs; i++) {
                if (results->order[i]->n_samples == 0)
                        continue;
                fputs(style == 0 ? "plot " : ", ", script);
                put_run(script, results, i, style++);
        }
        fputc('\n', script);
}

static int make_script(const struct results *results, const char *file, char **ret_script) {
        char *text = NULL;
        size_t size;
        FILE *script = open_memstream(&text, &size);
        struct axis axis = choose_axis(results);

        if (!script)
                return -ENOMEM;
        put_terminal(script, file, axis, count_runs(results));
        for (size_t i = 0; i < results->n_runs; i++) {
                put_samples(script, results->order[i], axis, i);
                put_floors(script, results->order[i], &results->measures[i], axis, i);
        }
        put_plot(script, results);
        if (fclose(script) != 0) {
                free(text);
                return -ENOMEM;
        }
        *ret_script = text;
        return 0;
}

int chart_write(const struct results *results, const char *file) {
        MG_CLEANUP(freep) char *script = NULL;
        MG_CLEANUP(file_closep) int fd = -EBADF;

        if (!ends_with(file, ".svg") && !ends_with(file, ".png"))
                return -EINVAL;
        if (count_runs(results) == 0)
                return -ENODATA;
        int r = make_script(results, file, &script);
        if (r < 0)
                return r;
        /* gnuplot itself would draw on the terminal where it cannot write. */
        fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0)
                return -errno;
        r = gnuplot_run(script, fd);
        if (r < 0)
                (void) unlink(file);
        return r == -ENOENT ? -ENOPKG : r;
}
