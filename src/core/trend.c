/* SPDX-License-Identifier: MIT */
/*
 * Floors and slopes in integers. Layer: core; pure.
 *
 * With n floors y (KiB above the lowest) at minutes x, and N = n*Sxy - Sx*Sy, D = n*Sxx - Sx^2, Q = n*Syy - Sy^2:
 *
 *     slope = N / D        standard error = sqrt((Q*D - N^2) / (n - 2)) / D        KiB per minute
 *
 * All of it fits 128 bits: n <= 120 and y < 2^32 make D < 2^27, N < 2^53, Q < 2^78. Against exact rational arithmetic on the floors
 * given, the slope is off by at most half a byte per hour, the standard error by at most one byte
 * per hour or one part in 2^46, whichever is more (tested). That floors are cut to whole KiB adds at most 1 KiB *
 * sum|x - mean| / (2 * sum(x - mean)^2) per minute: 6 KiB/h for 15 floors, under 1 KiB/h for 120.
 */
#include "core/trend.h"

#include <errno.h>

#include "base/macros.h"

typedef __int128 mg_i128;
typedef unsigned __int128 mg_u128;

/* KiB per minute to bytes per hour. */
#define BYTES_PER_HOUR 61440

void trend_init(struct mg_trend *trend) {
        *trend = (struct mg_trend){};
}

static void push_floor(struct mg_trend *trend, uint32_t floor_kib) {
        trend->floor_kib[trend->head] = floor_kib;
        trend->head = (trend->head + 1) % MG_TREND_FLOORS_MAX;
        if (trend->count < MG_TREND_FLOORS_MAX)
                trend->count++;
}

static uint32_t to_kib(uint64_t bytes) {
        return (uint32_t) MG_MIN(bytes / MG_KIB, (uint64_t) MG_TREND_GAP - 1);
}

bool trend_add(struct mg_trend *trend, uint64_t value_bytes, uint64_t now_usec) {
        uint64_t minute = now_usec / MG_USEC_PER_MIN;
        uint32_t kib = to_kib(value_bytes);
        uint64_t gap;

        if (trend->started && minute == trend->minute) {
                trend->lowest_kib = MG_MIN(trend->lowest_kib, kib);
                return false;
        }
        if (!trend->started || minute < trend->minute) {
                trend->started = true;
                trend->minute = minute;
                trend->lowest_kib = kib;
                return false;
        }
        gap = MG_MIN(minute - trend->minute - 1, (uint64_t) MG_TREND_FLOORS_MAX);
        push_floor(trend, trend->lowest_kib);
        while (gap-- > 0)
                push_floor(trend, MG_TREND_GAP);
        trend->minute = minute;
        trend->lowest_kib = kib;
        return true;
}

struct window {
        const struct mg_trend *trend;
        uint32_t first; /* counted from the oldest floor in the ring */
        uint32_t length;
};

static uint32_t window_floor(const struct window *window, uint32_t i) {
        const struct mg_trend *trend = window->trend;
        uint32_t oldest = trend->head + MG_TREND_FLOORS_MAX - trend->count;

        return trend->floor_kib[(oldest + window->first + i) % MG_TREND_FLOORS_MAX];
}

struct sums {
        mg_i128 n, x, y, xx, xy, yy;
};

static uint32_t lowest_floor(const struct window *window) {
        uint32_t lowest = MG_TREND_GAP;

        for (uint32_t i = 0; i < window->length; i++)
                lowest = MG_MIN(lowest, window_floor(window, i));
        return lowest;
}

static void sum_window(const struct window *window, uint32_t base_kib, struct sums *sums) {
        *sums = (struct sums){};
        for (uint32_t i = 0; i < window->length; i++) {
                uint32_t floor = window_floor(window, i);
                mg_i128 y = (mg_i128) floor - base_kib;

                if (floor == MG_TREND_GAP)
                        continue;
                sums->n++;
                sums->x += i;
                sums->y += y;
                sums->xx += (mg_i128) i * i;
                sums->xy += i * y;
                sums->yy += y * y;
        }
}

static mg_u128 square_root(mg_u128 value) {
        mg_u128 root = 0;
        mg_u128 bit = (mg_u128) 1 << 126;

        while (bit > value)
                bit >>= 2;
        for (; bit != 0; bit >>= 2) {
                if (value >= root + bit) {
                        value -= root + bit;
                        root = (root >> 1) + bit;
                } else {
                        root >>= 1;
                }
        }
        return root;
}

static int64_t divide_rounded(mg_i128 numerator, mg_i128 denominator) {
        mg_i128 half = denominator / 2;

        return (int64_t) ((numerator + (numerator < 0 ? -half : half)) / denominator);
}

static uint64_t standard_error(mg_i128 scatter, mg_i128 n, mg_i128 d) {
        /* Scaled before the root where there is room, after it where the root itself is exact enough. */
        mg_u128 scale = (mg_u128) BYTES_PER_HOUR * BYTES_PER_HOUR;

        if (scatter <= 0)
                return 0;
        if ((mg_u128) scatter < ((mg_u128) 1 << 96))
                return (uint64_t) (square_root((mg_u128) scatter * scale / (mg_u128) (n - 2)) / (mg_u128) d);
        return (uint64_t) (square_root((mg_u128) scatter / (mg_u128) (n - 2)) * BYTES_PER_HOUR / (mg_u128) d);
}

struct extremes {
        uint64_t lowest;
        uint64_t highest;
};

static struct extremes find_extremes(const struct window *window, uint32_t from, uint32_t to) {
        struct extremes extremes = { .lowest = MG_UNKNOWN, .highest = 0 };

        for (uint32_t i = from; i < to; i++) {
                uint64_t bytes = window_floor(window, i) * MG_KIB;

                if (window_floor(window, i) == MG_TREND_GAP)
                        continue;
                extremes.lowest = MG_MIN(extremes.lowest, bytes);
                extremes.highest = MG_MAX(extremes.highest, bytes);
        }
        return extremes;
}

int trend_slope(const struct mg_trend *trend, uint32_t max_floors, struct mg_slope *ret_slope) {
        struct window window = { .trend = trend, .length = trend->count };
        struct extremes first;
        struct extremes earlier;
        struct extremes last;
        struct sums sums;
        mg_i128 n;
        mg_i128 d;
        mg_i128 q;

        if (max_floors > 0 && max_floors < trend->count) {
                window.first = trend->count - max_floors;
                window.length = max_floors;
        }
        sum_window(&window, lowest_floor(&window), &sums);
        if (sums.n < MG_TREND_FLOORS_MIN)
                return -ENODATA;
        n = sums.n * sums.xy - sums.x * sums.y;
        d = sums.n * sums.xx - sums.x * sums.x;
        q = sums.n * sums.yy - sums.y * sums.y;
        first = find_extremes(&window, 0, window.length / 3);
        earlier = find_extremes(&window, 0, window.length - window.length / 3);
        last = find_extremes(&window, window.length - window.length / 3, window.length);
        *ret_slope = (struct mg_slope){
                .bytes_per_hour = divide_rounded(n * BYTES_PER_HOUR, d),
                .standard_error = standard_error(q * d - n * n, sums.n, d),
                .floors = (uint32_t) sums.n,
                .minutes = window.length,
                .first_third_floor_bytes = first.lowest,
                .last_third_floor_bytes = last.lowest,
                .earlier_peak_bytes = earlier.highest,
                .last_third_peak_bytes = last.highest,
        };
        return 0;
}

uint64_t trend_mean(const struct mg_trend *trend) {
        struct window window = { .trend = trend, .length = trend->count };
        struct sums sums;

        sum_window(&window, 0, &sums);
        return sums.n == 0 ? MG_UNKNOWN : (uint64_t) (sums.y / sums.n) * MG_KIB;
}
