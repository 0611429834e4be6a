/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as text, in the two formats that Prometheus reads: OpenMetrics 1.0 and its own older one, which promtool checks. They
 * differ in where "_total" stands, in UNIT lines and in the end mark. Layer: exporter; pure: the caller owns the stream.
 */
#pragma once

#include <stdio.h>

#include "exporter/snapshot.h"

enum exposition_format {
        EXPOSITION_TEXT,
        EXPOSITION_OPENMETRICS,
        _EXPOSITION_FORMAT_MAX,
};

/* By a request's Accept: header; NULL: it has none. */
enum exposition_format exposition_choose(const char *accept);

/* The value of Content-Type:. */
const char *exposition_content_type(enum exposition_format format);

/* Every family is named, also one that has no sample now. Errors are the stream's. */
void exposition_write(FILE *stream, enum exposition_format format, const struct snapshot *snapshot);
