/* SPDX-License-Identifier: MIT */
/*
 * From samples to numbers: floors, slope, peak, mean, RSS/live. The slope is core/trend.c's, the daemon's own. Layer: replay; pure.
 */
#pragma once

#include <stdbool.h>

#include "core/trend.h"
#include "replay/csv.h"

struct measures {
        uint64_t floor_usec; /* longer than asked for where the run had more than MG_TREND_FLOORS_MAX */
        uint64_t floors_bytes[MG_TREND_FLOORS_MAX]; /* MG_UNKNOWN: no sample in it */
        size_t n_floors;
        bool has_slope;
        int64_t slope_bytes_per_hour;
        uint64_t error_bytes_per_hour; /* standard error */
        uint64_t slope_floors;         /* that went in */
        bool rises;          /* the lowest floor of the last third is above the first third's */
        uint64_t peak_bytes; /* of all phases */
        uint64_t mean_bytes; /* under load, after the warm-up */
        uint64_t end_bytes;  /* the last sample: after the idle time, where there was one */
        uint64_t live_bytes; /* at the end; by the program's own word where it said so, else by the agent's */
        uint64_t mean_live_bytes; /* under load; where the program said nothing then, LIVE_BYTES */
        uint64_t trims;
        uint64_t pause_usec;
        uint64_t minor_faults;
        uint64_t cpu_usec;
        uint64_t psi_usec;
        uint64_t load_usec; /* how long the load was measured */
};

void measure_run(const struct run_file *run, struct measures *ret_measures);

/*
 * The half width of the 95 % confidence interval: the standard error times Student's t of so many degrees of freedom
 * (floors less two, for one slope). Floors that depend on each other (a sawtooth) make it too narrow.
 */
uint64_t measure_confidence(uint64_t standard_error, uint64_t freedom);

/* A / B in thousandths; MG_UNKNOWN where one is unknown or B is 0. */
uint64_t measure_ratio(uint64_t a, uint64_t b);
