/* SPDX-License-Identifier: MIT */
/* The verb report, which run ends with too. Layer: replay. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The S2 case's own measure: flat is within half a GiB an hour. */
#define DEFAULT_MAX_SLOPE (UINT64_C(512) << 20)

/* A tenth more than the baseline's mean is worse; less is what machines differ by from one day to the next. */
#define DEFAULT_MAX_RISE_PERMYRIAD 1000

enum report_format {
        REPORT_TABLE,
        REPORT_JSON_PRETTY,
        REPORT_JSON_SHORT,
        REPORT_CSV,
        REPORT_NONE, /* the exit code alone */
};

struct report_options {
        const char *directory;
        const char *baseline; /* NULL: none */
        const char *chart;    /* NULL: none */
        const char *judged; /* a list with commas of the variants whose verdict makes the exit code; NULL: all */
        enum report_format format;
        bool floors;
        uint64_t max_slope;
        uint32_t max_rise_permyriad;
};

enum replay_exit {
        EXIT_FLAT = 0,
        EXIT_GROWING = 1,
        EXIT_NOT_MEASURED = 2,
};

/* Returns an enum replay_exit. */
int report(const struct report_options *options);
