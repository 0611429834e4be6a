/* SPDX-License-Identifier: MIT */
/* memguard-replay's pure parts: variants, lines that programs tell, CSVs, floors and slopes that are known exactly, verdicts. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "check.h"
#include "replay/csv.h"
#include "replay/judge.h"
#include "replay/measure.h"
#include "replay/results.h"
#include "replay/told.h"
#include "replay/variant.h"

/* ---- Variants ---- */

static void check_variant(
                const char *text,
                const char *name,
                const char *environment,
                const char *ini) {
        struct variant variant;
        char *message = NULL;
        int r = variant_parse(text, &variant, &message);

        if (r < 0)
                fail_msg("%s: %s", text, message);
        assert_string_equal(variant.text, name);
        assert_string_equal(variant.settings, text);
        assert_int_equal(variant.n_environment, environment ? 1 : 0);
        if (environment)
                assert_string_equal(variant.environment[0], environment);
        assert_int_equal(variant.n_ini, ini ? 1 : 0);
        if (ini)
                assert_string_equal(variant.ini[0], ini);
        variant_done(&variant);
}

static void test_variants(void **state) {
        check_variant("glibc", "glibc", NULL, NULL);
        check_variant("arena2", "arena2", "MALLOC_ARENA_MAX=2", NULL);
        check_variant("arena2:arena-max=1", "arena2:arena-max=1", "MALLOC_ARENA_MAX=1", NULL);
        check_variant("mmap-threshold", "mmap-threshold", "MALLOC_MMAP_THRESHOLD_=131072", NULL);
        check_variant("mmap-threshold:1M,name=big", "big", "MALLOC_MMAP_THRESHOLD_=1048576", NULL);
        check_variant("jemalloc-background", "jemalloc-background",
                      "MALLOC_CONF=background_thread:true", NULL);
        /* A comma within a value. */
        check_variant("jemalloc:MALLOC_CONF=background_thread:true,narenas:2",
                      "jemalloc:MALLOC_CONF=background_thread:true,narenas:2",
                      "MALLOC_CONF=background_thread:true,narenas:2", NULL);
        check_variant("memguard:TrimAbove=16M 10%,name=ours", "ours", NULL, "TrimAbove=16M 10%");
        check_variant("env:MALLOC_TOP_PAD_=0", "env:MALLOC_TOP_PAD_=0", "MALLOC_TOP_PAD_=0", NULL);
        check_variant("glibc:EMPTY=", "glibc:EMPTY=", "EMPTY=", NULL);
}

static void test_variant_members(void **state) {
        struct variant variant;
        char *message;

        assert_int_equal(variant_parse("trim-every:1min", &variant, &message), 0);
        assert_int_equal(variant.trim_every_usec, MG_USEC_PER_MIN);
        assert_string_equal(variant.label, "trim-every-1min");
        variant_done(&variant);
        assert_int_equal(variant_parse("preload:/lib/x y.so,name=../a b", &variant, &message), 0);
        assert_string_equal(variant.library, "/lib/x y.so");
        assert_string_equal(variant.label, "-.-a-b"); /* never hidden, never elsewhere */
        variant_done(&variant);
        assert_int_equal(
                        variant_parse("memguard:allocator=jemalloc,/etc/m.ini", &variant, &message),
                        -EINVAL); /* the file is part of the allocator's name, which there is not */
        free(message);
        assert_int_equal(
                        variant_parse("memguard:ini=/etc/m.ini,allocator=jemalloc", &variant,
                                      &message),
                        0);
        assert_true(variant.has_agent);
        assert_string_equal(variant.ini_file, "/etc/m.ini");
        assert_string_equal(variant.wants, "libjemalloc.so.2");
        variant_done(&variant);
}

static void test_bad_variants(void **state) {
        static const char *const bad[] = {
                "",
                "glib",
                "glibc2",
                ":",
                ":x=1",
                "glibc:1",
                "glibc:TrimAbove=1",
                "glibc:colour=1",
                "env",
                "env:x",
                "preload",
                "trim-every",
                "trim-every:0",
                "trim-every:soon",
                "mmap-threshold:-1",
                "memguard:allocator=dlmalloc",
                "glibc:=1",
                "glibc:name=",
        };

        for (size_t i = 0; i < MG_ELEMENTS(bad); i++) {
                struct variant variant;
                char *message = NULL;

                if (variant_parse(bad[i], &variant, &message) != -EINVAL || !message)
                        fail_msg("\"%s\" was taken, or nobody said why not", bad[i]);
                free(message);
        }
}

static void test_missing_library(void **state) {
        struct variant variant;
        char *message;

        assert_int_equal(variant_parse("preload:/nowhere/libx.so", &variant, &message), 0);
        assert_int_equal(variant_find_library(&variant), -ENOENT);
        variant_done(&variant);
}

/* ---- What programs tell ---- */

static void test_told(void **state) {
        static const char text[] =
                        "hello\nphase load rss_anon_bytes=5 live_bytes=77\nsummary of it all: live_bytes\r\n"
                        "phase swept live_bytes=99 operations=4\r\nsummaryx live_bytes=1\nphasex idle\n"
                        "summary operations=12 p99_usec=340 worst_usec=x trims=18446744073709551616 operations_per_second=-3 other=1\n"
                        "phase idle";
        struct told_lines lines = {};
        struct told told;

        told_init(&told);
        /* In pieces of every length, as a pipe may give them. */
        for (size_t at = 0, n = 1; at < sizeof(text) - 1; at += n, n = n % 7 + 1)
                told_feed(&lines, text + at, MG_MIN(n, sizeof(text) - 1 - at), &told);
        assert_int_equal(told.live_bytes, 99);
        assert_int_equal(told.operations, 12); /* the phase's counts nothing */
        assert_int_equal(told.p99_usec, 340);
        assert_int_equal(told.worst_usec, MG_UNKNOWN);
        assert_int_equal(told.trims, MG_UNKNOWN);
        assert_int_equal(told.operations_per_second, MG_UNKNOWN);
        assert_false(told.load_over); /* its newline is still to come */
        told_feed(&lines, "\n", 1, &told);
        assert_true(told.load_over);
}

static void test_told_hostile(void **state) {
        struct told_lines lines = {};
        struct told told;

        told_init(&told);
        told_feed(&lines, "summary live_bytes=1 ", 21, &told);
        for (int i = 0; i < 5000; i++)
                told_feed(&lines, "x", 1, &told);
        told_feed(&lines, "\nsummary live_bytes=2\n\n\0\n", 26, &told);
        assert_int_equal(told.live_bytes, 2); /* the overlong line is none */
}

static void test_told_format(void **state) {
        char text[TOLD_TEXT_MAX];
        struct told told;

        told_init(&told);
        assert_string_equal(told_format(&told, text), "");
        told.operations = UINT64_MAX - 1;
        told.live_bytes = 0;
        assert_string_equal(
                        told_format(&told, text), "live_bytes=0 operations=18446744073709551614");
}

/* ---- CSV ---- */

static char directory[] = "/tmp/memguard-test-replay-XXXXXX";

static int make_directory(void **state) {
        return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state) {
        return rmdir(directory);
}

static void write_file(const char *name, const char *text, size_t length, char path[static 256]) {
        snprintf(path, 256, "%s/%s", directory, name);
        FILE *file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(text, 1, length, file), length);
        assert_int_equal(fclose(file), 0);
}

static int read_text(const char *text, size_t length, struct run_file *run, unsigned *line) {
        char path[256];

        write_file("x.csv", text, length, path);
        int r = csv_read(path, run, line);
        unlink(path);
        return r;
}

static void test_csv_round_trip(void **state) {
        struct replay_sample sample;
        struct csv_writer writer;
        struct run_file run;
        char path[256];
        unsigned line;

        memset(&sample, 0xff, sizeof(sample));
        sample.at_usec = 61 * MG_USEC_PER_SEC + 5;
        sample.phase = PHASE_IDLE;
        sample.anon_bytes = 0;
        sample.swap_bytes = UINT64_MAX - 1;
        snprintf(path, sizeof(path), "%s/a.csv", directory);
        assert_int_equal(csv_create(&writer, path), 0);
        assert_int_equal(csv_create(&(struct csv_writer){}, path), -EEXIST);
        csv_put_value(&writer, "variant", "env:A=b,c\n# end=oom");
        csv_put_number(&writer, "round", 3);
        csv_put_header(&writer);
        csv_put_sample(&writer, &sample);
        csv_put_value(&writer, "told", "operations=7");
        csv_put_value(&writer, "end", "finished");
        assert_int_equal(csv_close(&writer), 0);
        assert_int_equal(csv_read(path, &run, &line), 0);
        assert_string_equal(run.variant, "env:A=b,c # end=oom");
        assert_int_equal(run.round, 3);
        assert_int_equal(run.end, END_FINISHED);
        assert_int_equal(run.told.operations, 7);
        assert_int_equal(run.n_samples, 1);
        assert_int_equal(run.samples[0].at_usec, sample.at_usec);
        assert_int_equal(run.samples[0].phase, PHASE_IDLE);
        assert_memory_equal(
                        &run.samples[0].anon_bytes, &sample.anon_bytes,
                        sizeof(sample) - offsetof(struct replay_sample, anon_bytes));
        run_file_done(&run);
        unlink(path);
}

#define HEAD "# memguard-replay 1\n# variant=glibc\n"

static void test_csv_hostile(void **state) {
        static const struct {
                const char *text;
                int result;
                size_t samples;
        } cases[] = {
                { "", -EBADMSG, 0 },
                { "seconds,phase\n", -EBADMSG, 0 },
                { "# memguard-replay 2\n# variant=x\n", -EBADMSG, 0 },
                { "# memguard-replay 1\n", -EBADMSG, 0 }, /* of what? */
                { HEAD, 0, 0 },
                { HEAD "seconds\n1\n2\n", 0, 2 },
                { HEAD "seconds,anon_bytes\n1,5\n2,", 0, 1 }, /* cut in the middle of a line */
                { HEAD "seconds,anon_bytes\n1,5\n2,44", 0, 1 },
                { HEAD "seconds,anon_bytes\r\n1,5\r\n2,\r\n", 0, 2 },
                { HEAD "seconds,later,phase\n1,what,load\n", 0, 1 },
                { HEAD "seconds,anon_bytes\n1\n", -EBADMSG, 0 },
                { HEAD "seconds,anon_bytes\n1,2,3\n", -EBADMSG, 0 },
                { HEAD "seconds,anon_bytes\n1,-2\n", -EBADMSG, 0 },
                { HEAD "seconds,anon_bytes\n1,18446744073709551616\n", -EBADMSG, 0 },
                { HEAD "seconds,phase\n1,lunch\n", -EBADMSG, 0 },
                { HEAD "seconds\n1.0000001\n", -EBADMSG, 0 },
                { HEAD "seconds\n1.\n", -EBADMSG, 0 },
                { HEAD "seconds\n18446744073710\n", -EBADMSG, 0 },
                { HEAD "anon_bytes\n1\n", -EBADMSG, 0 },
                { HEAD "# end=tuesday\n", -EBADMSG, 0 },
                { HEAD "# floor_usec=0\nseconds\n1\n", -EBADMSG, 0 },
                { HEAD "# a comment\n#\n\nseconds\n", 0, 0 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct run_file run;
                unsigned line;
                int r = read_text(cases[i].text, strlen(cases[i].text), &run, &line);

                if (r != cases[i].result)
                        fail_msg("case %zu: %d", i, r);
                if (r < 0)
                        continue;
                assert_int_equal(run.n_samples, cases[i].samples);
                assert_int_equal(run.end, END_CUT);
                run_file_done(&run);
        }
        struct run_file run;
        unsigned line;
        assert_int_equal(
                        read_text(HEAD "seconds\n1\0\n", sizeof(HEAD) - 1 + 11, &run, &line),
                        -EBADMSG);
        assert_int_equal(line, 4);
}

/* ---- Numbers ---- */

struct synthetic {
        uint64_t floor_usec;
        uint64_t every_usec;
        uint64_t n; /* samples */
        uint64_t start_bytes;
        int64_t per_sample_bytes;
        uint64_t burst_bytes; /* above the line, but for one sample in each floor */
};

static struct run_file make_run(const struct synthetic *synthetic) {
        struct run_file run = { .floor_usec = synthetic->floor_usec, .round = 1 };

        told_init(&run.told);
        run.variant = strdup("glibc");
        run.end = END_FINISHED;
        run.samples = calloc(synthetic->n, sizeof(*run.samples));
        run.n_samples = synthetic->n;
        for (uint64_t i = 0; i < synthetic->n; i++) {
                struct replay_sample *sample = &run.samples[i];
                bool low = i * synthetic->every_usec % synthetic->floor_usec == 0;

                memset(sample, 0xff, sizeof(*sample));
                sample->phase = PHASE_LOAD;
                sample->at_usec = 12345678 + i * synthetic->every_usec;
                sample->anon_bytes = synthetic->start_bytes +
                                     (uint64_t) ((int64_t) i * synthetic->per_sample_bytes) +
                                     (low ? 0 : synthetic->burst_bytes);
        }
        return run;
}

static void check_slope(const struct synthetic *synthetic, int64_t expected, size_t floors) {
        struct run_file run = make_run(synthetic);
        struct measures measures;

        measure_run(&run, &measures);
        assert_true(measures.has_slope);
        assert_int_equal(measures.n_floors, floors);
        assert_int_equal(measures.slope_bytes_per_hour, expected);
        assert_int_equal(measures.error_bytes_per_hour, 0);
        run_file_done(&run);
}

/* Straight lines, whose slopes are exact however high the bursts between the floors are. */
static void test_slopes(void **state) {
        /* 2 s, 15 minutes, 1 MiB a minute under bursts of 300 MiB */
        check_slope(&(struct synthetic){ MG_USEC_PER_MIN, 2 * MG_USEC_PER_SEC, 450, 100 * MG_MIB,
                                         MG_MIB / 30 / 1024 * 1024, 300 * MG_MIB },
                    60 * 30 * (int64_t) (MG_MIB / 30 / 1024 * 1024), 15);
        /* flat */
        check_slope(&(struct synthetic){ MG_USEC_PER_MIN, 2 * MG_USEC_PER_SEC, 450, MG_GIB, 0,
                                         700 * MG_MIB },
                    0, 15);
        /* down */
        check_slope(&(struct synthetic){ MG_USEC_PER_MIN, MG_USEC_PER_MIN, 15, MG_GIB,
                                         -(int64_t) MG_MIB, 0 },
                    -60 * (int64_t) MG_MIB, 15);
        /* floors of one second: 1 KiB a sample of 100 ms is 36 MiB an hour */
        check_slope(&(struct synthetic){ MG_USEC_PER_SEC, 100 * MG_USEC_PER_MSEC, 200, MG_GIB, 1024,
                                         MG_GIB },
                    36000 * 1024, 20);
        /* the last floor is not whole, and left out */
        check_slope(&(struct synthetic){ MG_USEC_PER_SEC, 100 * MG_USEC_PER_MSEC, 195, MG_GIB, 1024,
                                         0 },
                    36000 * 1024, 19);
        /* longer than the ring: floors of four minutes instead */
        check_slope(&(struct synthetic){ MG_USEC_PER_MIN, 30 * MG_USEC_PER_SEC, 960, MG_GIB, 1024,
                                         0 },
                    120 * 1024, 120);
}

static void test_too_few_floors(void **state) {
        struct run_file run = make_run(&(struct synthetic){ MG_USEC_PER_MIN, 2 * MG_USEC_PER_SEC,
                                                            449 - 29, MG_GIB, 1024, 0 });
        struct measures measures;

        measure_run(&run, &measures);
        assert_int_equal(measures.n_floors, 14);
        assert_false(measures.has_slope);
        run_file_done(&run);
}

static void test_warmup_and_idle(void **state) {
        struct run_file run = make_run(&(struct synthetic){ MG_USEC_PER_SEC, 100 * MG_USEC_PER_MSEC,
                                                            200, 200 * MG_MIB, 0, 0 });
        struct measures measures;

        for (size_t i = 0; i < 20; i++) {
                run.samples[i].phase = PHASE_WARMUP;
                run.samples[i].anon_bytes = MG_GIB;
                run.samples[180 + i].phase = PHASE_IDLE;
                run.samples[180 + i].anon_bytes = 50 * MG_MIB;
                run.samples[180 + i].swap_bytes = 10 * MG_MIB;
        }
        run.told.live_bytes = 40 * MG_MIB;
        run.samples[100].live_bytes = 77;
        measure_run(&run, &measures);
        assert_int_equal(measures.n_floors, 16);
        assert_int_equal(measures.mean_bytes, 200 * MG_MIB);
        assert_int_equal(measures.peak_bytes, MG_GIB);
        assert_int_equal(measures.end_bytes, 60 * MG_MIB);
        assert_int_equal(measures.live_bytes, 40 * MG_MIB); /* the program's own word */
        assert_int_equal(measures.mean_live_bytes, 40 * MG_MIB);
        assert_int_equal(measure_ratio(measures.end_bytes, measures.live_bytes), 1500);
        assert_int_equal(measures.load_usec, 159 * 100 * MG_USEC_PER_MSEC);
        run_file_done(&run);
}

static void test_nothing_measured(void **state) {
        struct run_file run = { .floor_usec = MG_USEC_PER_MIN };
        struct measures measures;

        told_init(&run.told);
        measure_run(&run, &measures);
        assert_int_equal(measures.n_floors, 0);
        assert_int_equal(measures.peak_bytes, MG_UNKNOWN);
        assert_int_equal(measure_ratio(measures.peak_bytes, 5), MG_UNKNOWN);
        assert_int_equal(measure_ratio(5, 0), MG_UNKNOWN);
}

static void test_confidence(void **state) {
        assert_int_equal(measure_confidence(1000, 13), 2159); /* tables have 2.160 */
        assert_int_equal(measure_confidence(1000, 1), 12706);
        assert_int_equal(measure_confidence(1000, 0), 12706);
        assert_int_equal(measure_confidence(0, 100), 0);
        assert_int_equal(measure_confidence(UINT64_MAX, 100), INT64_MAX);
}

/* ---- Verdicts ---- */

struct round {
        int64_t slope;
        uint64_t error;
        bool falls;
        enum replay_end end;
};

static enum replay_verdict judge_rounds(const struct round *rounds, size_t n, uint64_t max_slope) {
        struct run_file runs[4] = {};
        const struct run_file *pointers[4];
        struct measures measures[4] = {};
        struct group group = { .runs = pointers, .measures = measures, .n_runs = n };

        for (size_t i = 0; i < n; i++) {
                runs[i].variant = (char *) "x";
                runs[i].end = rounds[i].end;
                pointers[i] = &runs[i];
                measures[i] = (struct measures){ .has_slope = rounds[i].slope != INT64_MAX,
                                                 .slope_bytes_per_hour = rounds[i].slope,
                                                 .error_bytes_per_hour = rounds[i].error,
                                                 .slope_floors = 15,
                                                 .rises = !rounds[i].falls };
        }
        judge_group(&group, max_slope);
        return group.verdict;
}

static void test_verdicts(void **state) {
        static const struct {
                struct round rounds[4];
                size_t n;
                enum replay_verdict expected;
        } cases[] = {
                /* 1,000 an hour are allowed; t of 13 degrees is 2.16 */
                { { { 0, 0, true, END_FINISHED } }, 1, VERDICT_FLAT },
                { { { 1000, 0, false, END_FINISHED } }, 1, VERDICT_FLAT },
                { { { 1001, 0, false, END_FINISHED } }, 1, VERDICT_GROWING },
                { { { 1001, 0, true, END_FINISHED } }, 1, VERDICT_UNCLEAR },
                { { { 900, 100, false, END_FINISHED } }, 1, VERDICT_UNCLEAR },
                { { { 1300, 100, false, END_FINISHED } }, 1, VERDICT_GROWING },
                { { { 1200, 100, false, END_FINISHED } }, 1, VERDICT_UNCLEAR },
                { { { -5000, 100, true, END_FINISHED } }, 1, VERDICT_FLAT },
                { { { INT64_MAX, 0, false, END_FINISHED } }, 1, VERDICT_UNCLEAR },
                { { { 0, 0, true, END_OOM } }, 1, VERDICT_OOM },
                { { { INT64_MAX, 0, true, END_NOT_STARTED } }, 1, VERDICT_FAILED },
                { { { 0, 0, true, END_LOAD_FAILED } }, 1, VERDICT_FAILED },
                { { { 0, 0, true, END_NOT_IN_EFFECT } }, 1, VERDICT_FAILED },
                { { { 0, 0, true, END_PROGRAM_FAILED } }, 1, VERDICT_FAILED },
                { { { 0, 0, true, END_PROGRAM_ENDED } }, 1, VERDICT_FLAT },
                { { { 0, 0, true, END_INTERRUPTED } }, 1, VERDICT_FLAT },
                /* rounds that agree, and rounds that do not */
                { { { 2000, 10, false, END_FINISHED }, { 2010, 10, false, END_FINISHED } },
                  2,
                  VERDICT_GROWING },
                { { { 0, 10, true, END_FINISHED }, { 4000, 10, false, END_FINISHED } },
                  2,
                  VERDICT_UNCLEAR },
                { { { 0, 0, true, END_FINISHED }, { 0, 0, false, END_OOM } }, 2, VERDICT_OOM },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                enum replay_verdict verdict = judge_rounds(cases[i].rounds, cases[i].n, 1000);
                if (verdict != cases[i].expected)
                        fail_msg("case %zu: %s", i, replay_verdict_to_string(verdict));
        }
}

static void test_comparisons(void **state) {
        static const struct {
                const char *variants[4];
                enum replay_verdict verdicts[4];
                enum comparison expected;
        } cases[] = {
                { { "glibc", "arena2" }, { VERDICT_GROWING, VERDICT_FLAT }, COMPARISON_RETENTION },
                { { "glibc", "jemalloc" }, { VERDICT_OOM, VERDICT_FLAT }, COMPARISON_RETENTION },
                { { "glibc", "jemalloc", "x" },
                  { VERDICT_GROWING, VERDICT_FLAT, VERDICT_UNCLEAR },
                  COMPARISON_RETENTION },
                { { "glibc", "jemalloc" }, { VERDICT_GROWING, VERDICT_OOM }, COMPARISON_LEAK },
                { { "glibc", "arena2" },
                  { VERDICT_GROWING, VERDICT_GROWING },
                  COMPARISON_ONE_ALLOCATOR },
                { { "glibc" }, { VERDICT_GROWING }, COMPARISON_ONE_ALLOCATOR },
                { { "glibc", "jemalloc" },
                  { VERDICT_GROWING, VERDICT_UNCLEAR },
                  COMPARISON_TOO_SHORT },
                { { "glibc", "jemalloc" },
                  { VERDICT_FLAT, VERDICT_FLAT },
                  COMPARISON_NOTHING_GROWS },
                { { "glibc", "jemalloc" },
                  { VERDICT_FLAT, VERDICT_UNCLEAR },
                  COMPARISON_TOO_SHORT },
                { { "glibc", "jemalloc" },
                  { VERDICT_FAILED, VERDICT_FAILED },
                  COMPARISON_NOT_MEASURED },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct group groups[4] = {};
                size_t n = 0;

                for (; n < 4 && cases[i].variants[n]; n++) {
                        groups[n].variant = cases[i].variants[n];
                        groups[n].verdict = cases[i].verdicts[n];
                }
                if (judge_all(groups, n) != cases[i].expected)
                        fail_msg("case %zu: %s", i, comparison_to_string(judge_all(groups, n)));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_variants),
                cmocka_unit_test(test_variant_members),
                cmocka_unit_test(test_bad_variants),
                cmocka_unit_test(test_missing_library),
                cmocka_unit_test(test_told),
                cmocka_unit_test(test_told_hostile),
                cmocka_unit_test(test_told_format),
                cmocka_unit_test(test_csv_round_trip),
                cmocka_unit_test(test_csv_hostile),
                cmocka_unit_test(test_slopes),
                cmocka_unit_test(test_too_few_floors),
                cmocka_unit_test(test_warmup_and_idle),
                cmocka_unit_test(test_nothing_measured),
                cmocka_unit_test(test_confidence),
                cmocka_unit_test(test_verdicts),
                cmocka_unit_test(test_comparisons),
        };
        return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
