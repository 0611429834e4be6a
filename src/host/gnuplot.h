/* SPDX-License-Identifier: MIT */
/* gnuplot as a child without a shell: what memguardctl and memguard-replay draw with. Layer: host. */
#pragma once

#include <stdio.h>

/*
 * TEXT as a string of gnuplot's. Names come from programs that may be hostile, and in double quotes gnuplot would run what stands
 * between backquotes: single quotes know no such thing.
 */
void gnuplot_put_text(FILE *script, const char *text);

/*
 * Has gnuplot carry SCRIPT out, without anybody's gnuplotrc, and waits. OUTPUT_FD, where it is a descriptor, becomes its standard output.
 * Returns 0; -ENOENT: there is no gnuplot; -EIO: it did not like what it was given, and has said why on standard error; else -errno.
 */
int gnuplot_run(const char *script, int output_fd);
