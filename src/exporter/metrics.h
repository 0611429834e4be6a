/* SPDX-License-Identifier: MIT */
/*
 * Every metric that is one number, as a table: its name, what it is, and under which name of the bus it is read. Reader and
 * renderer both walk these tables. Names are a promise: memguard-exporter(8) lists them. Layer: exporter; pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum metric_type {
        METRIC_GAUGE,
        METRIC_COUNTER, /* "_total" is added to its name where the format wants that */
        METRIC_HISTOGRAM,
        _METRIC_TYPE_MAX,
};

struct metric {
        const char *name;
        const char *unit; /* NULL: a count, or a truth */
        const char *help;
        enum metric_type type;
        unsigned decimals; /* the number read is in this power of ten: 6 for microseconds shown as seconds */
        const char *key; /* of the dictionary on the bus; NULL: not read there */
};

/* Sizes of the arrays that hold the numbers, in the order of the tables. */
#define HOST_METRICS 21
#define UNIT_METRICS 17
#define HEAP_METRICS 9

extern const struct metric host_metrics[HOST_METRICS];
extern const struct metric unit_metrics[UNIT_METRICS];
extern const struct metric heap_metrics[HEAP_METRICS];

/* The slot of KEY in TABLE of N; -1: it is no metric. */
int metric_find(const struct metric *table, size_t n, const char *key);
