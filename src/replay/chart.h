/* SPDX-License-Identifier: MIT */
/* One chart of all runs by gnuplot: samples as thin lines, floors as marks, told apart without colours. Layer: replay. */
#pragma once

#include "replay/results.h"

/*
 * Writes FILE, whose name ends in .svg or .png (else -EINVAL). -ENOPKG: there is no gnuplot; -EIO: it did not like what it was given,
 * and has said why on standard error.
 */
int chart_write(const struct results *results, const char *file);
