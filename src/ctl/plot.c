/* SPDX-License-Identifier: MIT */
/*
 * memguardctl plot: a unit's history drawn by gnuplot, on the terminal or into a file. A file appears whole or not at
 * all. Layer: ctl.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "ctl/ctl.h"
#include "ctl/history.h"
#include "ctl/plot_script.h"
#include "ctl/terminal_size.h"
#include "host/cleanup.h"
#include "host/gnuplot.h"

static int report(const char *unit, int error) {
        switch (error) {
        case -ENOENT:
                fputs("memguardctl: gnuplot is not installed: install the Debian package gnuplot-nox\n",
                      stderr);
                break;
        case -ENODATA:
                fprintf(stderr, "memguardctl: %s: nothing was measured in this time\n", unit);
                break;
        case -EIO:
                fputs("memguardctl: gnuplot failed\n", stderr);
                break;
        default:
                fprintf(stderr, "memguardctl: cannot draw %s: %s\n", unit, strerror(-error));
                break;
        }
        return CTL_FAILED;
}

static unsigned clamp(unsigned value, unsigned low, unsigned high) {
        return value < low ? low : value > high ? high : value;
}

/* gnuplot draws at least something from 40x12 on; a line of a thousand columns is no help to the eye. The last row is the shell's. */
static struct plot_target terminal_target(void) {
        struct terminal_size size = terminal_size(STDOUT_FILENO);

        return (struct plot_target){
                .form = PLOT_TERMINAL,
                .columns = clamp(size.columns, 40, 200),
                .rows = clamp(size.rows, 13, 51) - 1,
        };
}

/* gnuplot itself would not notice that nobody takes what it draws. */
static int copy_to_stdout(FILE *from) {
        char buffer[4096];
        size_t n;

        rewind(from);
        while ((n = fread(buffer, 1, sizeof(buffer), from)) > 0)
                if (fwrite(buffer, 1, n, stdout) < n)
                        return -errno;
        return 0;
}

static int draw_on_terminal(const json_t *history, const char *unit) {
        MG_CLEANUP(freep) char *script = NULL;
        struct plot_target target = terminal_target();

        int r = plot_script(history, &target, &script);
        FILE *drawing = r < 0 ? NULL : tmpfile();
        if (!drawing)
                return report(unit, r < 0 ? r : -errno);
        r = gnuplot_run(script, fileno(drawing));
        if (r >= 0)
                r = copy_to_stdout(drawing);
        fclose(drawing);
        return r < 0 ? report(unit, r) : CTL_OK;
}

static int report_file(const char *file) {
        fprintf(stderr, "memguardctl: cannot write %s: %s\n", file, strerror(errno));
        return CTL_FAILED;
}

/* Like a file that is created, and not like one of mkstemp()'s. */
static mode_t usual_mode(void) {
        mode_t mask = umask(0);

        umask(mask);
        return 0666 & ~mask;
}

static int draw_into(const char *script, const char *file, const char *unit) {
        MG_CLEANUP(file_closep) int fd = -EBADF;
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s.XXXXXX", file) >= (int) sizeof(path)) {
                errno = ENAMETOOLONG;
                return report_file(file);
        }
        fd = mkostemp(path, O_CLOEXEC);
        if (fd < 0)
                return report_file(file);
        int r = gnuplot_run(script, fd);
        int exit_code = CTL_OK;
        if (r < 0)
                exit_code = report(unit, r);
        else if (fchmod(fd, usual_mode()) < 0 || rename(path, file) < 0)
                exit_code = report_file(file);
        if (exit_code != CTL_OK)
                (void) unlink(path);
        return exit_code;
}

static int draw_file(const json_t *history, const char *unit, enum plot_form form) {
        MG_CLEANUP(freep) char *script = NULL;

        int r = plot_script(history, &(struct plot_target){ .form = form }, &script);
        return r < 0 ? report(unit, r) : draw_into(script, ctl_options.output, unit);
}

int verb_plot(int argc, char **argv) {
        json_t *history MG_CLEANUP(json_decrefp) = NULL;
        enum plot_form form = PLOT_TERMINAL;

        if (ctl_options.output && plot_form_of(ctl_options.output, &form) < 0) {
                fprintf(stderr,
                        "memguardctl: --output=%s: expected a name that ends in .svg or .png\n",
                        ctl_options.output);
                return CTL_USAGE;
        }
        int exit_code = history_fetch(argv[1], &history);
        if (exit_code != CTL_OK)
                return exit_code;
        return form == PLOT_TERMINAL ? draw_on_terminal(history, argv[1])
                                     : draw_file(history, argv[1], form);
}
