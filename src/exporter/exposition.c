/* SPDX-License-Identifier: MIT */
/* A snapshot as text; see exposition.h. Layer: exporter; pure. */
#include "exporter/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "base/macros.h"

#define USEC_DECIMALS 6
#define NUMBER_MAX    32 /* room for any number, its point and the NUL */

struct label {
        const char *name;
        const char *value; /* NULL: left out */
};

struct exposition {
        FILE *stream;
        enum exposition_format format;
        const struct snapshot *snapshot;
};

static const char *const type_names[] = {
        [METRIC_GAUGE] = "gauge",
        [METRIC_COUNTER] = "counter",
        [METRIC_HISTOGRAM] = "histogram",
};
_Static_assert(MG_ELEMENTS(type_names) == _METRIC_TYPE_MAX, "a type has no name");

static const char *const content_types[] = {
        [EXPOSITION_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
        [EXPOSITION_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};
_Static_assert(MG_ELEMENTS(content_types) == _EXPOSITION_FORMAT_MAX, "a format has no type");

/* The families that are more than one number. */
static const struct metric up = { "memguard_up", NULL,
                                  "1 if memguardd has answered; 0: nothing but this is known.",
                                  METRIC_GAUGE };
static const struct metric build = { "memguard_build_info", NULL,
                                     "Always 1; the version is a label.", METRIC_GAUGE };
static const struct metric units_left_out = {
        "memguard_exporter_units_left_out", NULL,
        "Units that --max-units= has left out of this answer.", METRIC_GAUGE
};
static const struct metric processes_left_out = {
        "memguard_exporter_processes_left_out", NULL,
        "Processes whose heaps --max-units= or --max-processes= has left out.", METRIC_GAUGE
};
static const struct metric read_time = { "memguard_exporter_read_seconds", "seconds",
                                         "How long memguardd took to answer.", METRIC_GAUGE,
                                         USEC_DECIMALS };
static const struct metric slope = {
        "memguard_unit_slope_bytes_per_second", "bytes_per_second",
        "Trend of each minute's lowest anonymous memory; times 3600 it is that of memguardctl.",
        METRIC_GAUGE, USEC_DECIMALS
};
static const struct metric verdict = { "memguard_unit_verdict", NULL,
                                       "1 for the verdict in force, the only one shown.",
                                       METRIC_GAUGE };
static const struct metric mode = { "memguard_unit_mode", NULL,
                                    "1 for the mode in force, the only one shown.", METRIC_GAUGE };
static const struct metric reason = { "memguard_unit_reason", NULL,
                                      "1 for the reason of the last decision, the only one shown.",
                                      METRIC_GAUGE };
static const struct metric trims = { "memguard_unit_trims", NULL, "Rounds of trims, by result.",
                                     METRIC_COUNTER };
static const struct metric held = { "memguard_unit_held_seconds", "seconds",
                                    "Time for which trimming was held, by reason.", METRIC_COUNTER,
                                    USEC_DECIMALS };
static const struct metric pauses = { "memguard_unit_trim_pause_seconds", "seconds",
                                      "The longest time a thread may have waited in each round.",
                                      METRIC_HISTOGRAM, USEC_DECIMALS };
static const struct metric heap_info = { "memguard_heap_info", NULL,
                                         "Always 1; the allocator's version is a label.",
                                         METRIC_GAUGE };

enum exposition_format exposition_choose(const char *accept) {
        return accept && strcasestr(accept, "application/openmetrics-text") ? EXPOSITION_OPENMETRICS
                                                                            : EXPOSITION_TEXT;
}

const char *exposition_content_type(enum exposition_format format) {
        return content_types[format];
}

/* ---- lines ---- */

/* What comes behind a counter's name: in the older format that is part of the name. */
static const char *suffix_of(const struct metric *metric) {
        return metric->type == METRIC_COUNTER ? "_total" : "";
}

static void put_head(const struct exposition *e, const struct metric *metric) {
        bool open = e->format == EXPOSITION_OPENMETRICS;
        const char *suffix = open ? "" : suffix_of(metric);

        fprintf(e->stream, "# HELP %s%s %s\n", metric->name, suffix, metric->help);
        fprintf(e->stream, "# TYPE %s%s %s\n", metric->name, suffix, type_names[metric->type]);
        if (open && metric->unit)
                fprintf(e->stream, "# UNIT %s %s\n", metric->name, metric->unit);
}

static void put_escaped(FILE *stream, const char *value) {
        for (; *value; value++) {
                if (*value == '\n')
                        fputs("\\n", stream);
                else {
                        if (*value == '\\' || *value == '"')
                                fputc('\\', stream);
                        fputc(*value, stream);
                }
        }
}

/* LABELS ends with a nameless one. */
static void put_labels(FILE *stream, const struct label *labels) {
        char before = '{';

        for (; labels->name; labels++) {
                if (!labels->value)
                        continue;
                fprintf(stream, "%c%s=\"", before, labels->name);
                put_escaped(stream, labels->value);
                fputc('"', stream);
                before = ',';
        }
        if (before == ',')
                fputc('}', stream);
}

/* VALUE / 10^DECIMALS: "0.0025", "1.0"; without decimals "1". */
static const char *format_decimal(
                uint64_t value,
                unsigned decimals,
                char buffer[static NUMBER_MAX]) {
        uint64_t scale = 1;
        uint64_t rest;
        int width = (int) decimals;

        for (unsigned i = 0; i < decimals; i++)
                scale *= 10;
        for (rest = value % scale; width > 1 && rest % 10 == 0; width--)
                rest /= 10;
        if (decimals == 0)
                snprintf(buffer, NUMBER_MAX, "%" PRIu64, value);
        else
                snprintf(buffer, NUMBER_MAX, "%" PRIu64 ".%0*" PRIu64, value / scale, width, rest);
        return buffer;
}

static void put_sample(
                const struct exposition *e,
                const struct metric *metric,
                const char *suffix,
                const struct label *labels,
                uint64_t value) {
        char number[NUMBER_MAX];

        fprintf(e->stream, "%s%s", metric->name, suffix);
        put_labels(e->stream, labels);
        fprintf(e->stream, " %s\n", format_decimal(value, metric->decimals, number));
}

static void put_number(
                const struct exposition *e,
                const struct metric *metric,
                const struct label *labels,
                uint64_t value) {
        if (value != MG_UNKNOWN)
                put_sample(e, metric, suffix_of(metric), labels, value);
}

/* ---- the host ---- */

static void put_single(const struct exposition *e, const struct metric *metric, uint64_t value) {
        put_head(e, metric);
        put_number(e, metric, &(struct label){}, value);
}

static void put_host(const struct exposition *e) {
        const struct snapshot *snapshot = e->snapshot;

        put_single(e, &up, snapshot->up);
        put_head(e, &build);
        if (snapshot->version)
                put_number(e, &build,
                           (const struct label[]){ { "version", snapshot->version }, {} }, 1);
        put_single(e, &units_left_out, snapshot->units_left_out);
        put_single(e, &processes_left_out, snapshot->processes_left_out);
        put_single(e, &read_time, snapshot->read_usec);
        for (size_t i = 0; i < HOST_METRICS; i++)
                put_single(e, &host_metrics[i], snapshot->number[i]);
}

/* ---- units ---- */

/* Their labels: two units of one name (of two users, of a container) differ in the cgroup. */
#define UNIT_LABELS(unit)                 \
        { "unit", (unit)->name ?: "" }, { \
                "cgroup", (unit)->cgroup  \
        }

static void put_word(
                const struct exposition *e,
                const struct metric *metric,
                const struct snapshot_unit *unit,
                const char *label,
                const char *word) {
        const struct label labels[] = { UNIT_LABELS(unit), { label, word }, {} };

        if (word)
                put_number(e, metric, labels, 1);
}

static void put_words(const struct exposition *e) {
        const struct snapshot *snapshot = e->snapshot;

        put_head(e, &verdict);
        for (size_t i = 0; i < snapshot->n_units; i++)
                put_word(e, &verdict, &snapshot->units[i], "verdict", snapshot->units[i].verdict);
        put_head(e, &mode);
        for (size_t i = 0; i < snapshot->n_units; i++)
                put_word(e, &mode, &snapshot->units[i], "mode", snapshot->units[i].mode);
        put_head(e, &reason);
        for (size_t i = 0; i < snapshot->n_units; i++)
                put_word(e, &reason, &snapshot->units[i], "reason", snapshot->units[i].reason);
}

static void put_counts(
                const struct exposition *e,
                const struct metric *metric,
                const struct snapshot_unit *unit,
                const char *label,
                const struct snapshot_counts *counts) {
        for (size_t i = 0; i < counts->n; i++) {
                const struct snapshot_count *count = &counts->list[i];
                const struct label labels[] = { UNIT_LABELS(unit), { label, count->name }, {} };

                put_number(e, metric, labels, count->value);
        }
}

static void put_slope(const struct exposition *e, const struct snapshot_unit *unit) {
        const struct label labels[] = { UNIT_LABELS(unit), {} };
        int64_t per_hour = unit->slope_bytes_per_hour;
        uint64_t size = per_hour < 0 ? -(uint64_t) per_hour : (uint64_t) per_hour;
        char number[NUMBER_MAX];

        if (!unit->slope_known)
                return;
        fputs(slope.name, e->stream);
        put_labels(e->stream, labels);
        fprintf(e->stream, " %s%s\n", per_hour < 0 ? "-" : "",
                format_decimal(mg_scale(size, MG_USEC_PER_SEC, 3600), slope.decimals, number));
}

/* In the text a bucket counts what is in those below it too, and the last one has all. */
static void put_pauses(const struct exposition *e, const struct snapshot_unit *unit) {
        const struct label labels[] = { UNIT_LABELS(unit), {} };
        const struct metric bucket = { pauses.name, NULL, NULL, METRIC_HISTOGRAM };
        uint64_t sum = 0;

        if (unit->pauses.n == 0)
                return;
        for (size_t i = 0; i < unit->pauses.n; i++) {
                uint64_t up_to_usec = unit->pauses.up_to_usec[i];
                char bound[NUMBER_MAX];

                sum = mg_add_cap(sum, unit->pauses.count[i]);
                if (up_to_usec == MG_UNKNOWN)
                        continue;
                format_decimal(up_to_usec, USEC_DECIMALS, bound);
                put_sample(e, &bucket, "_bucket",
                           (const struct label[]){ UNIT_LABELS(unit), { "le", bound }, {} }, sum);
        }
        put_sample(e, &bucket, "_bucket",
                   (const struct label[]){ UNIT_LABELS(unit), { "le", "+Inf" }, {} }, sum);
        put_sample(e, &bucket, "_count", labels, sum);
        put_sample(e, &pauses, "_sum", labels, unit->pauses.sum_usec);
}

static void put_units(const struct exposition *e) {
        const struct snapshot *snapshot = e->snapshot;

        for (size_t m = 0; m < UNIT_METRICS; m++) {
                put_head(e, &unit_metrics[m]);
                for (size_t i = 0; i < snapshot->n_units; i++)
                        put_number(e, &unit_metrics[m],
                                   (const struct label[]){ UNIT_LABELS(&snapshot->units[i]), {} },
                                   snapshot->units[i].number[m]);
        }
        put_words(e);
        put_head(e, &slope);
        for (size_t i = 0; i < snapshot->n_units; i++)
                put_slope(e, &snapshot->units[i]);
        put_head(e, &trims);
        for (size_t i = 0; i < snapshot->n_units; i++)
                put_counts(e, &trims, &snapshot->units[i], "result", &snapshot->units[i].results);
        put_head(e, &held);
        for (size_t i = 0; i < snapshot->n_units; i++)
                put_counts(e, &held, &snapshot->units[i], "reason", &snapshot->units[i].held_usec);
        put_head(e, &pauses);
        for (size_t i = 0; i < snapshot->n_units; i++)
                put_pauses(e, &snapshot->units[i]);
}

/* ---- heaps ---- */

static void put_heap_family(
                const struct exposition *e,
                const struct metric *metric,
                int slot /* -1: the info */) {
        const struct snapshot *snapshot = e->snapshot;

        put_head(e, metric);
        for (size_t i = 0; i < snapshot->n_units; i++)
                for (size_t j = 0; j < snapshot->units[i].n_heaps; j++) {
                        const struct snapshot_heap *heap = &snapshot->units[i].heaps[j];
                        char pid[24], index[12];
                        const struct label labels[] = {
                                { "unit", snapshot->units[i].name ?: "" },
                                { "pid", pid },
                                { "heap", index },
                                { "allocator", heap->allocator },
                                { "version", slot < 0 ? heap->version : NULL },
                                {},
                        };

                        snprintf(pid, sizeof(pid), "%" PRIu64, heap->pid);
                        snprintf(index, sizeof(index), "%" PRIu32, heap->index);
                        put_number(e, metric, labels, slot < 0 ? 1 : heap->number[slot]);
                }
}

void exposition_write(
                FILE *stream,
                enum exposition_format format,
                const struct snapshot *snapshot) {
        const struct exposition e = { stream, format, snapshot };

        put_host(&e);
        put_units(&e);
        put_heap_family(&e, &heap_info, -1);
        for (int slot = 0; slot < HEAP_METRICS; slot++)
                put_heap_family(&e, &heap_metrics[slot], slot);
        if (format == EXPOSITION_OPENMETRICS)
                fputs("# EOF\n", stream);
}
