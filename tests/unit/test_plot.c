/* SPDX-License-Identifier: MIT */
/* The script for gnuplot: data, gaps, unknown numbers, and names that would like to be commands. */
#include "ctl/plot_script.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "check.h"
#include "host/gnuplot.h"

#define AT(seconds) ((json_int_t) (1796050000 + (seconds)) * 1000000)

static json_t *sample(json_int_t second, json_int_t anon_mib, json_int_t live_mib) {
        json_t *object =
                        json_pack("{s:I, s:I, s:I, s:I}", "at_usec", AT(second), "step_usec",
                                  (json_int_t) 5000000, "anon_bytes",
                                  (json_int_t) (anon_mib * (json_int_t) MG_MIB), "trim_above_bytes",
                                  (json_int_t) (64 * MG_MIB));
        if (live_mib >= 0) {
                json_object_set_new(
                                object, "live_bytes", json_integer(live_mib * (json_int_t) MG_MIB));
                json_object_set_new(
                                object, "retained_bytes",
                                json_integer((anon_mib - live_mib) * (json_int_t) MG_MIB));
        } else
                json_object_set_new(object, "live_bytes", json_null());
        return object;
}

static json_t *trim(json_int_t second, const char *result) {
        return json_pack(
                        "{s:I, s:s, s:I, s:I}", "at_usec", AT(second), "result", result,
                        "before_bytes", (json_int_t) (300 * MG_MIB), "after_bytes",
                        (json_int_t) (20 * MG_MIB));
}

static json_t *history_of(const char *unit, json_t *samples, json_t *trims) {
        return json_pack(
                        "{s:s, s:I, s:o, s:o}", "unit", unit, "interval_usec", (json_int_t) 1000000,
                        "samples", samples, "trims", trims);
}

static char *script_of(json_t *history, enum plot_form form) {
        struct plot_target target = { form, 80, 24 };
        char *script = NULL;

        assert_int_equal(plot_script(history, &target, &script), 0);
        json_decref(history);
        return script;
}

/* What stands between "$NAME << END" and "END". */
static const char *block_of(const char *script, const char *name) {
        static char block[4096];
        char begin[64];

        snprintf(begin, sizeof(begin), "$%s << END\n", name);
        const char *at = strstr(script, begin);
        assert_non_null(at);
        at += strlen(begin);
        const char *end = strstr(at, "END\n");
        assert_non_null(end);
        assert_true((size_t) (end - at) < sizeof(block));
        memcpy(block, at, (size_t) (end - at));
        block[end - at] = '\0';
        return block;
}

static void test_data(void **state) {
        char *script = script_of(
                        history_of("web.service",
                                   json_pack("[o, o]", sample(0, 200, 120), sample(5, 210, 121)),
                                   json_pack("[o, o]", trim(3, "done"), trim(4, "failed"))),
                        PLOT_TERMINAL);

        assert_non_null(strstr(script, "set terminal dumb noenhanced mono size 80,24\n"));
        assert_string_equal(block_of(script, "anon"), "1796050000 200.000\n1796050005 210.000\n");
        assert_string_equal(block_of(script, "live"), "1796050000 120.000\n1796050005 121.000\n");
        assert_string_equal(block_of(script, "retained"), "1796050000 80.000\n1796050005 89.000\n");
        assert_string_equal(block_of(script, "above"), "1796050000 64.000\n1796050005 64.000\n");
        assert_string_equal(block_of(script, "trims"), "1796050003 300.000 20.000\n");
        assert_string_equal(block_of(script, "failed"), "1796050004 300.000 20.000\n");
        assert_non_null(strstr(script, "set xrange ['1796050000':'1796050010']"));
        assert_non_null(strstr(script, "set yrange [0:330.000]"));
        assert_non_null(strstr(script, "set title 'web.service, 2026-11-30 "));
        free(script);
}

/* Five seconds of step and twice the interval of one are no gap yet; unknown numbers are one in their line alone. */
static void test_gaps(void **state) {
        char *script = script_of(
                        history_of("web.service",
                                   json_pack("[o, o, o, o]", sample(0, 10, 1), sample(7, 11, 1),
                                             sample(15, 12, -1), sample(20, 13, 1)),
                                   json_array()),
                        PLOT_SVG);

        assert_string_equal(
                        block_of(script, "anon"),
                        "1796050000 10.000\n1796050007 11.000\n\n1796050015 12.000\n1796050020 13.000\n");
        assert_string_equal(
                        block_of(script, "live"),
                        "1796050000 1.000\n1796050007 1.000\n\n1796050020 1.000\n");
        assert_non_null(strstr(script, "set terminal svg noenhanced"));
        assert_null(strstr(script, "$trims using"));
        free(script);
}

/* gnuplot complains of a line without a point: a unit without an agent has only anon. */
static void test_no_agent(void **state) {
        json_t *row =
                        json_pack("{s:I, s:I, s:I}", "at_usec", AT(0), "step_usec",
                                  (json_int_t) 5000000, "anon_bytes", (json_int_t) (20 * MG_GIB));
        char *script = script_of(
                        history_of("db.service", json_pack("[o]", row), json_array()), PLOT_PNG);

        assert_non_null(strstr(script, "plot $anon using 1:2 with lines"));
        assert_null(strstr(script, "$live using"));
        assert_null(strstr(script, "$above using"));
        assert_non_null(strstr(script, "set ylabel 'GiB'"));
        assert_string_equal(block_of(script, "anon"), "1796050000 20.000\n");
        free(script);
}

static void test_nothing(void **state) {
        json_t *history = history_of("db.service", json_array(), json_array());
        struct plot_target target = { PLOT_PNG, 0, 0 };
        char *script = NULL;

        assert_int_equal(plot_script(history, &target, &script), -ENODATA);
        json_decref(history);
        assert_int_equal(plot_script(NULL, &target, &script), -ENODATA);
        assert_null(script);
}

/* A process chooses its own name, and root draws it. */
static void test_hostile_name(void **state) {
        static const char *const names[] = {
                "a`id`b", "a'b\nsystem 'id'", "\"`id`\"", "@x $y {/Bold z}", "\x01\x7f\\", "",
        };

        for (size_t i = 0; i < MG_ELEMENTS(names); i++) {
                char *script =
                                script_of(history_of(names[i], json_pack("[o]", sample(0, 10, 1)),
                                                     json_array()),
                                          PLOT_TERMINAL);
                const char *title = strstr(script, "set title '");
                assert_non_null(title);
                title += strlen("set title '");
                /* To the end of the line there is one string: each quote in it is doubled. */
                size_t length = strcspn(title, "\n"), quotes = 0;
                for (size_t c = 0; c + 1 < length; c++) {
                        assert_true((unsigned char) title[c] >= ' ');
                        quotes += title[c] == '\'';
                }
                assert_int_equal(title[length - 1], '\'');
                assert_int_equal(quotes % 2, 0);
                free(script);
        }
}

static void test_text(void **state) {
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        assert_non_null(file);
        gnuplot_put_text(file, "it's `id` \"x\"\r\n\xc3\xa4");
        fclose(file);
        assert_string_equal(text, "'it''s `id` \"x\"  \xc3\xa4'");
        free(text);
}

static void test_form(void **state) {
        enum plot_form form = _PLOT_FORM_MAX;

        assert_int_equal(plot_form_of("a.svg", &form), 0);
        assert_int_equal(form, PLOT_SVG);
        assert_int_equal(plot_form_of("/x/a.b.png", &form), 0);
        assert_int_equal(form, PLOT_PNG);
        assert_int_equal(plot_form_of("a.jpg", &form), -EINVAL);
        assert_int_equal(plot_form_of(".svg", &form), -EINVAL);
        assert_int_equal(plot_form_of("", &form), -EINVAL);
        assert_int_equal(plot_form_of("a.svg.gz", &form), -EINVAL);
        assert_int_equal(form, PLOT_PNG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_data),         cmocka_unit_test(test_gaps),
                cmocka_unit_test(test_no_agent),     cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_hostile_name), cmocka_unit_test(test_text),
                cmocka_unit_test(test_form),
        };

        setenv("TZ", "UTC", 1);
        tzset();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
