/* SPDX-License-Identifier: MIT */
/* A snapshot as text in both formats, and how much of it is shown. */
#include "exporter/exposition.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "check.h"

static struct snapshot snapshot;
static char *text;

static int set_up(void **state) {
        snapshot_init(&snapshot);
        return 0;
}

static int tear_down(void **state) {
        snapshot_done(&snapshot);
        free(MG_TAKE(text));
        return 0;
}

static const char *render(enum exposition_format format) {
        size_t size;
        FILE *stream;

        free(MG_TAKE(text));
        stream = open_memstream(&text, &size);
        assert_non_null(stream);
        exposition_write(stream, format, &snapshot);
        assert_int_equal(fclose(stream), 0);
        return text;
}

static struct snapshot_unit *add_unit(const char *name, const char *cgroup) {
        struct snapshot_unit *unit = snapshot_add_unit(&snapshot);

        assert_non_null(unit);
        assert_int_equal(snapshot_keep_text(&unit->name, name), 0);
        if (cgroup)
                assert_int_equal(snapshot_keep_text(&unit->cgroup, cgroup), 0);
        return unit;
}

static void set_number(struct snapshot_unit *unit, const char *key, uint64_t value) {
        int slot = metric_find(unit_metrics, UNIT_METRICS, key);

        assert_true(slot >= 0);
        unit->number[slot] = value;
}

static void add_heaps(struct snapshot_unit *unit, uint64_t first_pid, size_t n, uint32_t each) {
        for (size_t i = 0; i < n; i++)
                for (uint32_t index = 0; index < each; index++) {
                        struct snapshot_heap *heap = snapshot_add_heap(unit);
                        assert_non_null(heap);
                        heap->pid = first_pid + i;
                        heap->index = index;
                }
}

static bool has_line(const char *line) {
        const char *at = strstr(text, line);

        return at && (at == text || at[-1] == '\n') && at[strlen(line)] == '\n';
}

static void assert_line(const char *line) {
        if (!has_line(line))
                fail_msg("no line %s in:\n%s", line, text);
}

static size_t count(const char *word) {
        size_t n = 0;

        for (const char *at = text; (at = strstr(at, word)); at++)
                n++;
        return n;
}

/* ---- the formats ---- */

static void test_down(void **state) {
        snapshot.read_usec = 4000000;
        render(EXPOSITION_OPENMETRICS);
        assert_line("memguard_up 0");
        assert_line("memguard_exporter_read_seconds 4.0");
        assert_int_equal(count("\nmemguard_unit"), 0);
        assert_int_equal(count("\nmemguard_daemon"), 0);
        assert_int_equal(count("\nmemguard_build_info"), 0);
}

/* Where each format wants what. */
static void test_formats(void **state) {
        snapshot.up = true;
        set_number(add_unit("a.service", "/a.service"), "trimmed_bytes", 7);

        render(EXPOSITION_OPENMETRICS);
        assert_line("# TYPE memguard_unit_trimmed_bytes counter");
        assert_line("# UNIT memguard_unit_trimmed_bytes bytes");
        assert_line("# TYPE memguard_up gauge");
        assert_line("# UNIT memguard_unit_trim_pause_seconds seconds");
        assert_string_equal(text + strlen(text) - 6, "# EOF\n");
        assert_line("memguard_unit_trimmed_bytes_total{unit=\"a.service\",cgroup=\"/a.service\"} 7");

        render(EXPOSITION_TEXT);
        assert_line("# TYPE memguard_unit_trimmed_bytes_total counter");
        assert_int_equal(count("# UNIT"), 0);
        assert_int_equal(count("# EOF"), 0);
        assert_line("memguard_unit_trimmed_bytes_total{unit=\"a.service\",cgroup=\"/a.service\"} 7");
}

/* Each family once, described before its samples. */
static void test_heads(void **state) {
        render(EXPOSITION_OPENMETRICS);
        assert_int_equal(count("# HELP "), count("# TYPE "));
        for (size_t i = 0; i < UNIT_METRICS; i++) {
                char head[128];
                snprintf(head, sizeof(head), "# TYPE %s ", unit_metrics[i].name);
                assert_int_equal(count(head), 1);
                if (!unit_metrics[i].unit)
                        continue;
                /* OpenMetrics wants a name to end with its unit. */
                size_t name = strlen(unit_metrics[i].name), unit = strlen(unit_metrics[i].unit);
                assert_string_equal(unit_metrics[i].name + name - unit, unit_metrics[i].unit);
        }
}

static void test_choose(void **state) {
        static const struct {
                const char *accept;
                enum exposition_format format;
        } table[] = {
                { NULL, EXPOSITION_TEXT },
                { "", EXPOSITION_TEXT },
                { "*/*", EXPOSITION_TEXT },
                { "text/plain;version=0.0.4", EXPOSITION_TEXT },
                { "application/openmetrics-text", EXPOSITION_OPENMETRICS },
                { "Application/OpenMetrics-Text; version=1.0.0; charset=utf-8",
                  EXPOSITION_OPENMETRICS },
                { "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                  EXPOSITION_OPENMETRICS },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++)
                assert_int_equal(exposition_choose(table[i].accept), table[i].format);
}

/* ---- values ---- */

static void test_unknown_is_left_out(void **state) {
        struct snapshot_unit *unit = add_unit("a.service", NULL);

        set_number(unit, "anon_bytes", 0);
        set_number(unit, "live_bytes", MG_UNKNOWN);
        render(EXPOSITION_TEXT);
        assert_line("memguard_unit_anon_bytes{unit=\"a.service\"} 0");
        assert_int_equal(count("\nmemguard_unit_live_bytes"), 0);
        assert_int_equal(count("\nmemguard_unit_slope"), 0);
        assert_int_equal(count("\nmemguard_unit_verdict"), 0);
        assert_int_equal(count("\nmemguard_unit_trim_pause_seconds"), 0);
}

static void test_largest(void **state) {
        set_number(add_unit("a.service", NULL), "anon_bytes", MG_UNKNOWN - 1);
        render(EXPOSITION_TEXT);
        assert_line("memguard_unit_anon_bytes{unit=\"a.service\"} 18446744073709551614");
}

static void test_slope(void **state) {
        static const struct {
                int64_t per_hour;
                const char *shown;
        } table[] = {
                { 3600, "1.0" },
                { -3600, "-1.0" },
                { 0, "0.0" },
                { 9, "0.0025" },
                { -1, "-0.000277" },
                { INT64_MAX, "18446744073709.551614" },
                { INT64_MIN, "-18446744073709.551614" },
        };
        struct snapshot_unit *unit = add_unit("a.service", NULL);

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                char line[128];

                unit->slope_bytes_per_hour = table[i].per_hour;
                unit->slope_known = true;
                snprintf(line, sizeof(line),
                         "memguard_unit_slope_bytes_per_second{unit=\"a.service\"} %s",
                         table[i].shown);
                render(EXPOSITION_OPENMETRICS);
                assert_line(line);
        }
}

/* The daemon counts each bucket alone; the text adds up, and ends with all. */
static void test_histogram(void **state) {
        struct snapshot_unit *unit = add_unit("a.service", NULL);

        unit->pauses = (struct snapshot_pauses){ .up_to_usec = { 1000, 50000, 1000000, MG_UNKNOWN },
                                                 .count = { 3, 0, 2, 1 },
                                                 .n = 4,
                                                 .sum_usec = 3000007 };
        render(EXPOSITION_OPENMETRICS);
        assert_line("memguard_unit_trim_pause_seconds_bucket{unit=\"a.service\",le=\"0.001\"} 3");
        assert_line("memguard_unit_trim_pause_seconds_bucket{unit=\"a.service\",le=\"0.05\"} 3");
        assert_line("memguard_unit_trim_pause_seconds_bucket{unit=\"a.service\",le=\"1.0\"} 5");
        assert_line("memguard_unit_trim_pause_seconds_bucket{unit=\"a.service\",le=\"+Inf\"} 6");
        assert_line("memguard_unit_trim_pause_seconds_count{unit=\"a.service\"} 6");
        assert_line("memguard_unit_trim_pause_seconds_sum{unit=\"a.service\"} 3.000007");
}

static void test_counts(void **state) {
        struct snapshot_unit *unit = add_unit("a.service", NULL);

        assert_int_equal(snapshot_add_count(&unit->results, "done", 12), 0);
        assert_int_equal(snapshot_add_count(&unit->held_usec, "cooldown", 1500000), 0);
        for (size_t i = 0; i < 2 * SNAPSHOT_COUNTS_MAX; i++)
                assert_int_equal(snapshot_add_count(&unit->held_usec, "much", i), 0);
        assert_int_equal(unit->held_usec.n, SNAPSHOT_COUNTS_MAX);
        render(EXPOSITION_TEXT);
        assert_line("memguard_unit_trims_total{unit=\"a.service\",result=\"done\"} 12");
        assert_line("memguard_unit_held_seconds_total{unit=\"a.service\",reason=\"cooldown\"} 1.5");
}

/* ---- hostile names ---- */

static void test_escaping(void **state) {
        static const struct {
                const char *name;
                const char *shown;
        } table[] = {
                { "", "" },
                { "a b (c).process", "a b (c).process" },
                { "quo\"te", "quo\\\"te" },
                { "back\\slash", "back\\\\slash" },
                { "dev-disk\\x2dby.service", "dev-disk\\\\x2dby.service" },
                { "new\nline", "new\\nline" },
                { "x\"} 1\nmemguard_up 0\n# EOF\n", "x\\\"} 1\\nmemguard_up 0\\n# EOF\\n" },
                { "\\", "\\\\" },
                { "\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                char line[256];

                set_number(add_unit(table[i].name, NULL), "anon_bytes", i);
                snprintf(line, sizeof(line), "memguard_unit_anon_bytes{unit=\"%s\"} %zu",
                         table[i].shown, i);
                render(EXPOSITION_TEXT);
                assert_line(line);
        }
        assert_false(has_line("memguard_up 1"));
        assert_int_equal(count("\n# EOF\n"), 0);
}

static void test_long_text(void **state) {
        static char path[4 * SNAPSHOT_TEXT_MAX];
        char *kept = NULL;

        memset(path, 'a', sizeof(path) - 1);
        memcpy(path + sizeof(path) - 11, "/x.service", 10);
        assert_int_equal(snapshot_keep_text(&kept, path), 0);
        assert_int_equal(strlen(kept), SNAPSHOT_TEXT_MAX);
        assert_string_equal(kept + SNAPSHOT_TEXT_MAX - 10, "/x.service");
        /* Characters of three bytes: 512 is no multiple of that. */
        for (size_t i = 0; i < sizeof(path) / 3; i++)
                memcpy(path + 3 * i, "\xe2\x82\xac", 3);
        path[sizeof(path) / 3 * 3] = '\0';
        assert_int_equal(snapshot_keep_text(&kept, path), 0);
        assert_int_equal(strlen(kept), SNAPSHOT_TEXT_MAX / 3 * 3);
        assert_memory_equal(kept, "\xe2\x82\xac", 3);
        free(kept);
}

/* ---- the limits ---- */

static void test_limit_keeps_agents_and_size(void **state) {
        static const struct {
                const char *name;
                uint64_t anon, agents;
        } table[] = {
                { "small.service", 10, 1 },  { "big-but-no-agent.service", 1000, 0 },
                { "large.service", 100, 2 }, { "unknown.service", MG_UNKNOWN, MG_UNKNOWN },
                { "middle.service", 50, 1 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct snapshot_unit *unit = add_unit(table[i].name, NULL);
                set_number(unit, "anon_bytes", table[i].anon);
                set_number(unit, "agents", table[i].agents);
        }
        snapshot_limit(&snapshot, 4, 100);
        assert_int_equal(snapshot.n_units, 4);
        assert_int_equal(snapshot.units_left_out, 1);
        assert_string_equal(snapshot.units[0].name, "large.service");
        assert_string_equal(snapshot.units[1].name, "middle.service");
        assert_string_equal(snapshot.units[2].name, "small.service");
        assert_string_equal(snapshot.units[3].name, "big-but-no-agent.service");
}

static void test_limit_of_processes(void **state) {
        static const struct {
                size_t max, kept_first, kept_second, left_out;
        } table[] = {
                { 0, 0, 0, 5 }, { 1, 2, 0, 4 }, { 3, 6, 0, 2 },
                { 4, 6, 2, 1 }, { 5, 6, 4, 0 }, { 9, 6, 4, 0 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(table); i++) {
                struct snapshot_unit *unit = add_unit("large.service", NULL);

                set_number(unit, "anon_bytes", 2);
                add_heaps(unit, 100, 3, 2);
                unit = add_unit("small.service", NULL);
                set_number(unit, "anon_bytes", 1);
                add_heaps(unit, 200, 2, 2);
                snapshot_limit(&snapshot, 10, table[i].max);
                assert_int_equal(snapshot.units[0].n_heaps, table[i].kept_first);
                assert_int_equal(snapshot.units[1].n_heaps, table[i].kept_second);
                assert_int_equal(snapshot.processes_left_out, table[i].left_out);
                snapshot_done(&snapshot);
                snapshot_init(&snapshot);
        }
}

/* The same unit of two users is two; two that nothing tells apart would spoil each other's series. */
static void test_limit_leaves_out_doubles(void **state) {
        add_unit("a.service", "/user/1/a.service");
        add_unit("a.service", "/user/2/a.service");
        add_unit("a.service", "/user/1/a.service");
        add_unit("b.process", NULL);
        add_unit("b.process", NULL);
        add_heaps(&snapshot.units[4], 1, 3, 1);
        snapshot_limit(&snapshot, 10, 10);
        assert_int_equal(snapshot.n_units, 3);
        assert_int_equal(snapshot.units_left_out, 2);
        render(EXPOSITION_TEXT);
        assert_line("memguard_exporter_units_left_out 2");
}

static void test_limit_of_nothing(void **state) {
        snapshot_limit(&snapshot, 0, 0);
        assert_int_equal(snapshot.units_left_out, 0);
        add_heaps(add_unit("a.service", NULL), 1, 3, 1);
        snapshot_limit(&snapshot, 0, 0);
        assert_int_equal(snapshot.n_units, 0);
        assert_int_equal(snapshot.units_left_out, 1);
        assert_int_equal(snapshot.processes_left_out, 3);
}

static void test_heap_labels(void **state) {
        struct snapshot_unit *unit = add_unit("a.service", "/a.service");

        add_heaps(unit, 42, 1, 2);
        assert_int_equal(snapshot_keep_text(&unit->heaps[1].allocator, "jemalloc"), 0);
        assert_int_equal(snapshot_keep_text(&unit->heaps[1].version, "5.3.0"), 0);
        unit->heaps[1].number[0] = 4096;
        render(EXPOSITION_TEXT);
        assert_line("memguard_heap_info{unit=\"a.service\",pid=\"42\",heap=\"0\"} 1");
        assert_line("memguard_heap_info{unit=\"a.service\",pid=\"42\",heap=\"1\",allocator=\"jemalloc\",version=\"5.3.0\"} 1");
        assert_line("memguard_heap_allocated_bytes{unit=\"a.service\",pid=\"42\",heap=\"1\",allocator=\"jemalloc\"} 4096");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_down),
                TEST(test_formats),
                TEST(test_heads),
                TEST(test_choose),
                TEST(test_unknown_is_left_out),
                TEST(test_largest),
                TEST(test_slope),
                TEST(test_histogram),
                TEST(test_counts),
                TEST(test_escaping),
                TEST(test_long_text),
                TEST(test_limit_keeps_agents_and_size),
                TEST(test_limit_of_processes),
                TEST(test_limit_leaves_out_doubles),
                TEST(test_limit_of_nothing),
                TEST(test_heap_labels),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
