/* SPDX-License-Identifier: MIT */
/* From samples to numbers. Layer: replay; pure. */
#include "replay/measure.h"

#include "base/macros.h"

static uint64_t known_max(uint64_t a, uint64_t b) {
        if (a == MG_UNKNOWN || b == MG_UNKNOWN)
                return a == MG_UNKNOWN ? b : a;
        return MG_MAX(a, b);
}

/* The first and one past the last sample of the load. */
struct span {
        size_t first;
        size_t end;
};

static struct span find_load(const struct run_file *run) {
        struct span span = { run->n_samples, run->n_samples };

        for (size_t i = 0; i < run->n_samples; i++) {
                if (run->samples[i].phase != PHASE_LOAD)
                        continue;
                span.first = MG_MIN(span.first, i);
                span.end = i + 1;
        }
        return span;
}

static uint64_t since_first(const struct run_file *run, const struct span *span, size_t i) {
        return mg_sub_floor(run->samples[i].at_usec, run->samples[span->first].at_usec);
}

/* The last floor is whole when the next sample would be beyond it. */
static uint64_t whole_end(const struct run_file *run, const struct span *span) {
        uint64_t last = since_first(run, span, span->end - 1);
        uint64_t before =
                        span->end - span->first > 1 ? since_first(run, span, span->end - 2) : last;

        return last + mg_sub_floor(last, before);
}

static uint64_t choose_floor(const struct run_file *run, const struct span *span) {
        uint64_t floor = run->floor_usec;
        uint64_t floors = whole_end(run, span) / floor;

        /* A whole multiple, so that it stays a length that people know. */
        if (floors > MG_TREND_FLOORS_MAX)
                floor *= (floors + MG_TREND_FLOORS_MAX - 1) / MG_TREND_FLOORS_MAX;
        return floor;
}

/*
 * The trend's clock has minutes of 60 s. A floor of another length is a minute of a clock that goes faster or slower, and its
 * slopes are so much too flat or too steep.
 */
static uint64_t to_trend_clock(uint64_t usec, uint64_t floor_usec) {
        return mg_scale(usec, MG_USEC_PER_MIN, floor_usec);
}

static int64_t from_trend_clock(int64_t per_hour, uint64_t floor_usec) {
        __int128 scaled = (__int128) per_hour * MG_USEC_PER_MIN / (__int128) floor_usec;

        return scaled > INT64_MAX ? INT64_MAX : scaled < -INT64_MAX ? -INT64_MAX : (int64_t) scaled;
}

static void gather_floors(
                const struct run_file *run,
                const struct span *span,
                uint64_t floor_usec,
                struct mg_trend *trend) {
        trend_init(trend);
        for (size_t i = span->first; i < span->end; i++) {
                uint64_t bytes = sample_footprint(&run->samples[i]);

                if (run->samples[i].phase == PHASE_LOAD && bytes != MG_UNKNOWN)
                        trend_add(trend, bytes,
                                  to_trend_clock(since_first(run, span, i), floor_usec));
        }
        /* Closes the last one, if it is whole; what is begun by that is not counted. */
        trend_add(trend, UINT64_MAX, to_trend_clock(whole_end(run, span), floor_usec));
}

static void copy_floors(const struct mg_trend *trend, struct measures *measures) {
        uint32_t oldest = trend->head + MG_TREND_FLOORS_MAX - trend->count;

        measures->n_floors = trend->count;
        for (uint32_t i = 0; i < trend->count; i++) {
                uint32_t kib = trend->floor_kib[(oldest + i) % MG_TREND_FLOORS_MAX];
                measures->floors_bytes[i] = kib == MG_TREND_GAP ? MG_UNKNOWN : kib * MG_KIB;
        }
}

static void measure_floors(
                const struct run_file *run,
                const struct span *span,
                struct measures *measures) {
        struct mg_trend trend;
        struct mg_slope slope;

        measures->floor_usec = choose_floor(run, span);
        gather_floors(run, span, measures->floor_usec, &trend);
        copy_floors(&trend, measures);
        if (trend_slope(&trend, 0, &slope) < 0)
                return;
        measures->has_slope = true;
        measures->slope_bytes_per_hour =
                        from_trend_clock(slope.bytes_per_hour, measures->floor_usec);
        measures->error_bytes_per_hour =
                        mg_scale(slope.standard_error, MG_USEC_PER_MIN, measures->floor_usec);
        measures->slope_floors = slope.floors;
        measures->rises = slope.last_third_floor_bytes > slope.first_third_floor_bytes;
}

struct mean {
        unsigned __int128 sum;
        uint64_t n;
};

static void mean_add(struct mean *mean, uint64_t value) {
        if (value == MG_UNKNOWN)
                return;
        mean->sum += value;
        mean->n++;
}

static uint64_t mean_value(const struct mean *mean) {
        return mean->n == 0 ? MG_UNKNOWN : (uint64_t) (mean->sum / mean->n);
}

/* The program's own word is worth more than the agent's, for every variant's program says it alike. */
static void measure_means(
                const struct run_file *run,
                const struct span *span,
                struct measures *measures) {
        struct mean footprint = {};
        struct mean told = {};
        struct mean counted = {};

        for (size_t i = span->first; i < span->end; i++) {
                mean_add(&footprint, sample_footprint(&run->samples[i]));
                mean_add(&told, run->samples[i].told_live_bytes);
                mean_add(&counted, run->samples[i].live_bytes);
        }
        measures->mean_bytes = mean_value(&footprint);
        measures->mean_live_bytes = mean_value(&told);
        if (measures->mean_live_bytes == MG_UNKNOWN)
                measures->mean_live_bytes = run->told.live_bytes;
        if (measures->mean_live_bytes == MG_UNKNOWN)
                measures->mean_live_bytes = mean_value(&counted);
}

static void measure_totals(const struct run_file *run, struct measures *measures) {
        uint64_t counted_live = MG_UNKNOWN;

        for (size_t i = 0; i < run->n_samples; i++) {
                const struct replay_sample *sample = &run->samples[i];

                measures->peak_bytes = known_max(measures->peak_bytes, sample_footprint(sample));
                measures->trims = known_max(measures->trims, sample->trims);
                measures->pause_usec = known_max(measures->pause_usec, sample->pause_usec);
                measures->minor_faults = known_max(measures->minor_faults, sample->minor_faults);
                measures->cpu_usec = known_max(measures->cpu_usec, sample->cpu_usec);
                measures->psi_usec = known_max(measures->psi_usec, sample->psi_usec);
                if (sample_footprint(sample) != MG_UNKNOWN)
                        measures->end_bytes = sample_footprint(sample);
                if (sample->live_bytes != MG_UNKNOWN)
                        counted_live = sample->live_bytes;
        }
        measures->live_bytes =
                        run->told.live_bytes != MG_UNKNOWN ? run->told.live_bytes : counted_live;
}

void measure_run(const struct run_file *run, struct measures *ret_measures) {
        struct span span = find_load(run);

        *ret_measures = (struct measures){
                .floor_usec = run->floor_usec,
                .peak_bytes = MG_UNKNOWN,
                .mean_bytes = MG_UNKNOWN,
                .end_bytes = MG_UNKNOWN,
                .live_bytes = MG_UNKNOWN,
                .mean_live_bytes = MG_UNKNOWN,
                .trims = MG_UNKNOWN,
                .pause_usec = MG_UNKNOWN,
                .minor_faults = MG_UNKNOWN,
                .cpu_usec = MG_UNKNOWN,
                .psi_usec = MG_UNKNOWN,
        };
        measure_totals(run, ret_measures);
        if (span.first == span.end)
                return;
        ret_measures->load_usec = since_first(run, &span, span.end - 1);
        measure_floors(run, &span, ret_measures);
        measure_means(run, &span, ret_measures);
}

/* Student's t for 97.5 %: a table, then its expansion in 1/freedom, which is within 0.1 % from there on. */
static double student(uint64_t freedom) {
        static const double table[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
                                        2.365,  2.306, 2.262, 2.228, 2.201, 2.179 };
        double n = (double) freedom;

        if (freedom <= MG_ELEMENTS(table))
                return table[freedom > 0 ? freedom - 1 : 0];
        return 1.95996 + 2.3722 / n + 2.8225 / (n * n);
}

uint64_t measure_confidence(uint64_t standard_error, uint64_t freedom) {
        double half = (double) standard_error * student(freedom);

        return half >= (double) INT64_MAX ? INT64_MAX : (uint64_t) half;
}

uint64_t measure_ratio(uint64_t a, uint64_t b) {
        return a == MG_UNKNOWN || b == MG_UNKNOWN || b == 0 ? MG_UNKNOWN : mg_scale(a, 1000, b);
}
