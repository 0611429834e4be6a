/* SPDX-License-Identifier: MIT */
/*
 * Floors and slopes: the lowest sample of each minute (peaks are work in flight), and a least-squares line over
 * them with its standard error, in integers. Layer: core; pure; fixed memory. The daemon and
 * memguard-replay use the same code.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Two hours of minutes: a two-hour sawtooth fits in once. */
#define MG_TREND_FLOORS_MAX 120
#define MG_TREND_FLOORS_MIN 15

/* Floors are kept in KiB: 4 TiB fit, larger ones are cut. A minute without a sample: */
#define MG_TREND_GAP UINT32_MAX

struct mg_trend {
        uint32_t floor_kib[MG_TREND_FLOORS_MAX]; /* ring; MG_TREND_GAP: a minute without a sample */
        uint32_t head;                           /* where the next finished floor goes */
        uint32_t count;                          /* finished floors in the ring */
        uint64_t minute;                         /* the one being gathered: usec / 60 s */
        uint32_t lowest_kib;                     /* of that minute */
        bool started;
};

struct mg_slope {
        int64_t bytes_per_hour;
        uint64_t standard_error; /* bytes per hour */
        uint32_t floors;         /* that went in */
        uint32_t minutes;        /* that they span, gaps included */
        uint64_t first_third_floor_bytes;
        uint64_t last_third_floor_bytes;
        uint64_t earlier_peak_bytes; /* the highest floor before the last third */
        uint64_t last_third_peak_bytes;
};

void trend_init(struct mg_trend *trend);

/*
 * A sample of VALUE bytes at NOW (monotonic). Returns true when it closed a minute. After a step back of the clock the minute
 * being gathered begins anew; a step forward leaves gaps.
 */
bool trend_add(struct mg_trend *trend, uint64_t value_bytes, uint64_t now_usec);

/* Over the last MAX_FLOORS floors (0: all). Returns 0 or -ENODATA with fewer than MG_TREND_FLOORS_MIN. */
int trend_slope(const struct mg_trend *trend, uint32_t max_floors, struct mg_slope *ret_slope);

/* The mean of all finished floors, in bytes; MG_UNKNOWN: none. */
uint64_t trend_mean(const struct mg_trend *trend);
