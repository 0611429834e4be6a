/* SPDX-License-Identifier: MIT */
/* top without a terminal: keys from bytes, what they do, the order of rows, the layout in every size, what is sent. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/macros.h"
#include "check.h"
#include "ctl/term.h"
#include "ctl/top_frame.h"
#include "ctl/top_keys.h"
#include "ctl/top_view.h"

#define MIB(n) ((json_int_t) (n) * (json_int_t) MG_MIB)

static struct top_view view;

static int set_up(void **state) {
        top_view_init(&view);
        return 0;
}

/* ---- keys ---- */

static void test_keys(void **state) {
        static const struct {
                const char *bytes;
                int keys[4];
        } rows[] = {
                { "q", { 'q' } },
                { "\r", { '\r' } },
                { "\x04", { 4 } },
                { "\x1b[A", { KEY_UP } },
                { "\x1bOB", { KEY_DOWN } },
                { "\x1b[1;5A", { KEY_UP } },
                { "\x1b[5~", { KEY_PAGE_UP } },
                { "\x1b[6~\x1b[1~", { KEY_PAGE_DOWN, KEY_HOME } },
                { "\x1b[H\x1b[F\x1b[8~", { KEY_HOME, KEY_END, KEY_END } },
                { "\x1b[[Aq", { KEY_OTHER, 'q' } }, /* F1 of the Linux console */
                { "\x1b[15~", { KEY_OTHER } },
                { "\x1bx", { KEY_OTHER } },
                { "\x1b\x1b[A", { KEY_ESCAPE, KEY_UP } },
                { "\x1b[1\x1b[B", { KEY_OTHER, KEY_DOWN } },
                { "\x1b[99999999999999999999~", { KEY_OTHER } },
                { "\x1b[200~q\x1b[201~", { KEY_OTHER, 'q', KEY_OTHER } }, /* a paste */
                { "\xc3\xa4", { 0xc3, 0xa4 } },
        };

        for (size_t i = 0; i < MG_ELEMENTS(rows); i++) {
                struct key_reader reader = {};
                size_t n = 0;

                for (const char *at = rows[i].bytes; *at; at++) {
                        int key = keys_feed(&reader, (unsigned char) *at);
                        if (key != 0)
                                assert_int_equal(key, rows[i].keys[n++]);
                }
                assert_true(n == 4 || rows[i].keys[n] == 0);
                assert_false(keys_pending(&reader));
        }
}

/* The key itself is told from a sequence by what does not follow. */
static void test_lone_escape(void **state) {
        struct key_reader reader = {};

        assert_int_equal(keys_flush(&reader), 0);
        assert_int_equal(keys_feed(&reader, 0x1b), 0);
        assert_true(keys_pending(&reader));
        assert_int_equal(keys_flush(&reader), KEY_ESCAPE);
        assert_int_equal(keys_feed(&reader, 'q'), 'q');
        assert_int_equal(keys_feed(&reader, 0x1b), 0);
        assert_int_equal(keys_feed(&reader, '['), 0);
        assert_int_equal(keys_flush(&reader), KEY_OTHER);
        assert_int_equal(keys_feed(&reader, 'A'), 'A');
}

static void test_noise(void **state) {
        struct check_random random = check_seed(1);
        struct key_reader reader = {};

        for (int i = 0; i < 100000; i++) {
                int key = keys_feed(&reader, (unsigned char) check_next(&random));
                assert_in_range(key, 0, KEY_OTHER);
                if (check_below(&random, 50) == 0)
                        (void) keys_flush(&reader);
        }
}

/* ---- rows ---- */

static json_t *unit(const char *name, json_int_t anon_mib, json_int_t freeable_mib) {
        json_t *row = json_pack(
                        "{s:s, s:I, s:s, s:s, s:s}", "unit", name, "anon_bytes", MIB(anon_mib),
                        "verdict", "learning", "shown_mode", "trim", "shown_agents", "1/1");

        if (freeable_mib >= 0)
                json_object_set_new(row, "freeable_bytes", json_integer(MIB(freeable_mib)));
        return row;
}

static json_t *some_units(void) {
        return json_pack(
                        "[o, o, o, o]", unit("b.service", 300, 20), unit("d.service", 900, -1),
                        unit("c.service", 100, 70), unit("a.service", 100, 0));
}

/* The names' first letters, in the view's order. */
static const char *order_of(const json_t *rows) {
        static char letters[32];
        json_t *sorted = top_view_sort(&view, rows);
        size_t n = json_array_size(sorted);

        assert_non_null(sorted);
        for (size_t i = 0; i < n; i++)
                letters[i] = member_text(json_array_get(sorted, i), "unit")[0];
        letters[n] = '\0';
        json_decref(sorted);
        return letters;
}

static void test_order(void **state) {
        json_t *rows = some_units();
        size_t n;

        (void) top_columns(TOP_UNITS, &n);
        assert_string_equal(order_of(rows), "cbad"); /* freeable; unknown last */
        assert_int_equal(top_view_key(&view, 'r', rows, 10), TOP_REDRAW);
        assert_string_equal(order_of(rows), "abcd"); /* unknown still last */
        assert_int_equal(top_view_key(&view, 'a', rows, 10), TOP_REDRAW);
        assert_string_equal(order_of(rows), "dbac"); /* alike ones by name */
        (void) top_view_key(&view, 'n', rows, 10);
        assert_string_equal(order_of(rows), "abcd");
        (void) top_view_key(&view, 'r', rows, 10);
        assert_string_equal(order_of(rows), "dcba");
        (void) top_view_key(&view, '<', rows, 10);
        assert_int_equal(view.order[TOP_UNITS].column, n - 1);
        (void) top_view_key(&view, '>', rows, 10);
        assert_int_equal(view.order[TOP_UNITS].column, 0);
        assert_int_equal(top_view_key(&view, 'z', rows, 10), TOP_NOTHING);
        assert_int_equal(top_view_key(&view, KEY_OTHER, rows, 10), TOP_NOTHING);
        json_decref(rows);
}

static void test_hostile_rows(void **state) {
        json_t *rows =
                        json_pack("[{}, n, {s:i}, {s:s, s:s}, {s:s, s:n}, []]", "unit", 7, "unit",
                                  "x", "freeable_bytes", "many", "unit", "y", "freeable_bytes");
        json_t *sorted = top_view_sort(&view, rows);

        assert_non_null(rows);
        assert_int_equal(json_array_size(sorted), 6);
        json_decref(sorted);
        json_decref(rows);
        sorted = top_view_sort(&view, NULL);
        assert_int_equal(json_array_size(sorted), 0);
        json_decref(sorted);
}

/* The chosen row stays chosen wherever it goes, and in sight. */
static void test_choice(void **state) {
        json_t *rows = some_units();

        assert_int_equal(top_view_key(&view, KEY_DOWN, rows, 2), TOP_REDRAW);
        assert_string_equal(view.selected, "b.service");
        (void) top_view_key(&view, KEY_END, rows, 2);
        assert_string_equal(view.selected, "a.service");
        assert_int_equal(view.first, 2);
        (void) top_view_key(&view, KEY_PAGE_UP, rows, 2);
        assert_string_equal(view.selected, "d.service");
        assert_int_equal(view.first, 1);
        assert_true(top_view_is_selected(&view, 1));
        json_array_remove(rows, 0);
        top_view_follow(&view, rows, 2);
        assert_string_equal(view.selected, "d.service");
        assert_int_equal(view.selected_at, 0);
        assert_int_equal(view.first, 0);
        json_array_remove(rows, 0); /* it has ended */
        top_view_follow(&view, rows, 2);
        assert_string_equal(view.selected, "c.service");
        json_array_clear(rows);
        top_view_follow(&view, rows, 2);
        assert_int_equal(view.first, 0);
        assert_int_equal(top_view_key(&view, KEY_UP, rows, 2), TOP_NOTHING);
        assert_int_equal(top_view_key(&view, '\r', rows, 2), TOP_NOTHING);
        json_decref(rows);
}

/* Two users' units of one name: the daemon is asked by cgroup, however long that is, the screen shows the name. */
static void test_units_of_one_name(void **state) {
        static char deep[3000] = "/user.slice/user-1002.slice/user@1002.service/app.slice/";
        json_t *rows = json_pack("[o, o]", unit("app.service", 1, 1), unit("app.service", 1, 1));

        memset(deep + strlen(deep), 'x', sizeof(deep) - strlen(deep) - 1);
        json_object_set_new(
                        json_array_get(rows, 0), "cgroup",
                        json_string("/user.slice/user-1001.slice/user@1001.service/app.service"));
        json_object_set_new(json_array_get(rows, 1), "cgroup", json_string(deep));
        (void) top_view_key(&view, 'j', rows, 10);
        (void) top_view_key(&view, 'j', rows, 10);
        assert_int_equal(top_view_key(&view, '\r', rows, 10), TOP_CHANGE);
        assert_string_equal(view.unit, "app.service");
        assert_string_equal(view.unit_key, deep);
        (void) top_view_key(&view, KEY_ESCAPE, rows, 10);
        assert_string_equal(view.unit_key, "");
        json_object_set_new(json_array_get(rows, 0), "cgroup", json_null());
        assert_int_equal(top_view_key(&view, '\r', rows, 10), TOP_CHANGE);
        assert_string_equal(view.unit_key, "app.service");
        (void) top_view_key(&view, 'p', rows, 10);
        (void) top_view_key(&view, 'p', rows, 10);
        assert_string_equal(view.unit_key, "");
        json_decref(rows);
}

static void test_tables(void **state) {
        json_t *rows = some_units();

        (void) top_view_key(&view, 'j', rows, 10);
        (void) top_view_key(&view, 'j', rows, 10);
        assert_int_equal(top_view_key(&view, '\r', rows, 10), TOP_CHANGE);
        assert_int_equal(view.table, TOP_PROCESSES);
        assert_string_equal(view.unit, "d.service");
        assert_string_equal(view.selected, "");
        assert_int_equal(top_view_key(&view, KEY_ESCAPE, NULL, 10), TOP_CHANGE);
        assert_int_equal(view.table, TOP_UNITS);
        assert_int_equal(top_view_key(&view, KEY_ESCAPE, rows, 10), TOP_REDRAW);
        assert_int_equal(top_view_key(&view, 'p', rows, 10), TOP_CHANGE);
        assert_string_equal(view.unit, "");
        assert_int_equal(top_view_key(&view, '\r', rows, 10), TOP_NOTHING);
        top_view_leave_unit(&view, "d.service has ended");
        assert_int_equal(view.table, TOP_UNITS);
        assert_string_equal(view.notice, "d.service has ended");
        (void) top_view_key(&view, KEY_OTHER, rows, 10);
        assert_string_equal(view.notice, "");
        json_decref(rows);
}

static void test_freeze_help_quit(void **state) {
        assert_int_equal(top_view_key(&view, ' ', NULL, 10), TOP_REDRAW);
        assert_true(view.frozen);
        assert_int_equal(top_view_key(&view, ' ', NULL, 10), TOP_REFRESH);
        assert_false(view.frozen);
        assert_int_equal(top_view_key(&view, '?', NULL, 10), TOP_REDRAW);
        assert_true(view.help);
        assert_int_equal(top_view_key(&view, ' ', NULL, 10), TOP_REDRAW);
        assert_false(view.help);
        assert_false(view.frozen);
        assert_int_equal(top_view_key(&view, 12, NULL, 10), TOP_REPAINT);
        assert_int_equal(top_view_key(&view, 'q', NULL, 10), TOP_QUIT);
        assert_int_equal(top_view_key(&view, 4, NULL, 10), TOP_QUIT);
        (void) top_view_key(&view, 'h', NULL, 10);
        assert_int_equal(top_view_key(&view, 'q', NULL, 10), TOP_QUIT);
}

/* A key sorts by one column of a table, and is none that does something else. */
static void test_sort_keys_are_unique(void **state) {
        for (enum top_table table = 0; table < _TOP_TABLE_MAX; table++) {
                bool used[256] = { ['q'] = true, ['Q'] = true, ['h'] = true, ['?'] = true,
                                   ['r'] = true, ['p'] = true, ['j'] = true, ['k'] = true };
                size_t n;
                const struct top_column *columns = top_columns(table, &n);

                for (size_t i = 0; i < n; i++) {
                        assert_false(used[(unsigned char) columns[i].key]);
                        used[(unsigned char) columns[i].key] = true;
                        assert_true(i == 0 || columns[i].width >= strlen(columns[i].column.title));
                }
        }
}

/* ---- layout ---- */

static json_t *host(void) {
        return json_pack(
                        "{s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "version", "0.1.0", "hostname",
                        "web-17", "units", 4, "trimming", 4, "observing", 0, "no_agent", 0,
                        "self_cpu_permyriad", 7);
}

static struct top_frame *frame_of(unsigned columns, unsigned rows, const json_t *units) {
        struct top_frame *frame = top_frame_new((struct terminal_size){ columns, rows });
        json_t *the_host = host();
        struct top_content content = {
                .host = the_host,
                .rows = units,
                .interval_usec = 2 * MG_USEC_PER_SEC,
                .clock = "14:03:22",
        };

        assert_non_null(frame);
        top_frame_fill(frame, &view, &content);
        json_decref(the_host);
        return frame;
}

static int columns_of(const char *text) {
        wchar_t wide[4096];

        assert_int_not_equal(mbstowcs(wide, text, MG_ELEMENTS(wide)), (size_t) -1);
        return wcswidth(wide, MG_ELEMENTS(wide));
}

static void expect_fits(const struct top_frame *frame) {
        for (unsigned i = 0; i < frame->size.rows; i++) {
                int width = columns_of(frame->lines[i].text);
                if (width < 0 || width >= (int) frame->size.columns)
                        fail_msg("%ux%u, line %u: \"%s\"", frame->size.columns, frame->size.rows, i,
                                 frame->lines[i].text);
        }
}

static void expect_line(const struct top_frame *frame, unsigned line, const char *text) {
        size_t length = strlen(frame->lines[line].text);

        while (length > 0 && frame->lines[line].text[length - 1] == ' ')
                length--;
        if (length != strlen(text) || memcmp(frame->lines[line].text, text, length) != 0)
                fail_msg("line %u is \"%s\", not \"%s\"", line, frame->lines[line].text, text);
}

static void test_80x24(void **state) {
        json_t *units = some_units();
        struct top_frame *frame;

        (void) top_view_key(&view, KEY_DOWN, units, 20);
        frame = frame_of(80, 24, units);
        expect_fits(frame);
        assert_int_equal(top_frame_page(frame->size), 20);
        expect_line(frame, 0,
                    "memguard 0.1.0 on web-17: 4 units, trimming 4, observing 0, no agent 0. Self: ~");
        expect_line(frame, 1, "14:03:22, every 2s, by FREEABLE, 4 units");
        expect_line(frame, 2,
                    "UNIT           MODE     ANON  LIVE FREEABLE PINNED OTHER SLOPE/H VERDICT");
        expect_line(frame, 3,
                    "b.service      trim     300M     -      20M      -     -       - learning");
        expect_line(frame, 4,
                    "d.service      trim     900M     -        -      -     -       - learning");
        expect_line(frame, 7, "");
        expect_line(frame, 23,
                    "q quit  ? help  space freeze  p processes  r reverse  < > sort  enter open");
        assert_int_equal(frame->lines[2].style, TOP_HEADINGS);
        assert_int_equal(frame->lines[3].style, TOP_SELECTED);
        assert_int_equal(frame->lines[4].style, TOP_PLAIN);
        top_frame_free(frame);
        json_decref(units);
}

static void test_40x10(void **state) {
        json_t *units = some_units();
        struct top_frame *frame = frame_of(40, 10, units);

        expect_fits(frame);
        assert_int_equal(top_frame_page(frame->size), 6);
        expect_line(frame, 2, "UNIT            ANON  LIVE FREEABLE");
        expect_line(frame, 3, "b.service       300M     -      20M");
        top_frame_free(frame);
        /* What is sorted by is always there. */
        (void) top_view_key(&view, 'v', units, 6);
        frame = frame_of(40, 10, units);
        expect_fits(frame);
        expect_line(frame, 2, "UNIT            ANON VERDICT");
        top_frame_free(frame);
        json_decref(units);
}

static void test_200x60(void **state) {
        json_t *units = some_units();
        struct top_frame *frame;

        json_array_append_new(
                        units, unit("a-service-with-quite-a-long-name@instance.service", 1, 1));
        frame = frame_of(200, 60, units);
        expect_fits(frame);
        assert_int_equal(top_frame_page(frame->size), 56);
        expect_line(frame, 2,
                    "UNIT                                              MODE     AGENTS  ANON  SWAP  LIVE FREEABLE "
                    "PINNED OTHER SLOPE/H TRIMS TRIMMED VERDICT        REASON");
        assert_non_null(strstr(frame->lines[7].text, "@instance.service "));
        top_frame_free(frame);
        json_decref(units);
}

/* A table longer than the screen says which part of it is shown. */
static void test_scrolled(void **state) {
        json_t *units = json_array();
        struct top_frame *frame;
        char name[32];

        for (int i = 0; i < 100; i++) {
                snprintf(name, sizeof(name), "u%03d.service", i);
                json_array_append_new(units, unit(name, 1, 1));
        }
        (void) top_view_key(
                        &view, KEY_END, units, top_frame_page((struct terminal_size){ 80, 24 }));
        frame = frame_of(80, 24, units);
        expect_fits(frame);
        expect_line(frame, 1, "14:03:22, every 2s, by FREEABLE, 81-100 of 100 units");
        assert_memory_equal(frame->lines[22].text, "u099.service", 12);
        assert_int_equal(frame->lines[22].style, TOP_SELECTED);
        top_frame_free(frame);
        json_decref(units);
}

static void test_status_line(void **state) {
        json_t *the_host = json_pack("{s:b}", "paused", 1);
        struct top_frame *frame = top_frame_new((struct terminal_size){ 120, 24 });
        struct top_content content = {
                .host = the_host,
                .interval_usec = 2 * MG_USEC_PER_SEC,
                .silent_usec = 12 * MG_USEC_PER_SEC,
                .clock = "14:03:22",
        };

        view.frozen = true;
        top_frame_fill(frame, &view, &content);
        expect_line(frame, 1,
                    "NO ANSWER for 12s, TRIMMING PAUSED, FROZEN, 14:03:22, every 2s, by FREEABLE, 0 units");
        content.host = NULL;
        view.frozen = false;
        view.table = TOP_PROCESSES;
        view.order[TOP_PROCESSES].reverse = true;
        snprintf(view.unit, sizeof(view.unit), "a.service");
        snprintf(view.notice, sizeof(view.notice), "so it is");
        content.silent_usec = 0;
        top_frame_fill(frame, &view, &content);
        expect_line(frame, 0, "memguard: waiting for memguardd");
        expect_line(frame, 1,
                    "so it is, 14:03:22, every 2s, by FREEABLE reversed, 0 processes of a.service");
        view.help = true;
        top_frame_fill(frame, &view, &content);
        expect_line(frame, 0, "q            quit");
        top_frame_free(frame);
        json_decref(the_host);
}

/* Names come from foreign programs. None of them moves the cursor, and each keeps to its place, in every size. */
static void test_hostile_names(void **state) {
        static const char *const names[] = {
                "\x1b[2J\x1b[H",
                "a\nb\tc\rd",
                "\xc2\x9b"
                "31m",
                "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97",
                "e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81",
                "",
                "\xf0\x9f\x98\x80",
        };
        json_t *units = json_array();

        for (size_t i = 0; i < MG_ELEMENTS(names); i++)
                json_array_append_new(units, unit(names[i], 1, 1));
        json_array_append_new(units, json_object());
        for (unsigned columns = 1; columns < 130; columns++)
                for (unsigned rows = 1; rows < 20; rows++) {
                        struct top_frame *frame = frame_of(columns, rows, units);
                        expect_fits(frame);
                        for (unsigned i = 0; i < rows; i++)
                                for (const char *c = frame->lines[i].text; *c; c++)
                                        assert_true((unsigned char) *c >= ' ');
                        top_frame_free(frame);
                }
        json_decref(units);
}

/* ---- what is sent ---- */

static char *encoded(const struct top_frame *before, const struct top_frame *frame, bool moves) {
        char *text = NULL;
        size_t length;

        assert_int_equal(top_frame_encode(before, frame, moves, &text, &length), 0);
        assert_int_equal(strlen(text), length);
        return text;
}

static void test_difference(void **state) {
        json_t *units = some_units();
        struct top_frame *before = frame_of(80, 24, units);
        struct top_frame *same = frame_of(80, 24, units);
        struct top_frame *other_size;
        char *text = encoded(NULL, before, true);

        assert_memory_equal(text, "\x1b[m\x1b[H\x1b[J\x1b[1;1H", 15);
        free(text);
        text = encoded(before, same, true);
        assert_string_equal(text, "");
        free(text);
        json_object_set_new(json_array_get(units, 1), "anon_bytes", json_integer(MIB(901)));
        struct top_frame *after = frame_of(80, 24, units);
        text = encoded(before, after, true);
        assert_string_equal(
                        text,
                        "\x1b[5;1Hd.service      trim     901M     -        -      -     -       "
                        "- learning      \x1b[K\x1b[24;1H");
        free(text);
        other_size = frame_of(79, 24, units);
        text = encoded(before, other_size, true);
        assert_memory_equal(text, "\x1b[m\x1b[H\x1b[J", 9);
        free(text);
        top_frame_free(before);
        top_frame_free(same);
        top_frame_free(after);
        top_frame_free(other_size);
        json_decref(units);
}

/* A row that was there has to be wiped out. */
static void test_line_gone(void **state) {
        json_t *units = some_units();
        struct top_frame *before = frame_of(80, 24, units);
        json_array_remove(units, 3);
        struct top_frame *after = frame_of(80, 24, units);
        char *text = encoded(before, after, true);

        assert_non_null(strstr(text, "\x1b[7;1H\x1b[K"));
        free(text);
        top_frame_free(before);
        top_frame_free(after);
        json_decref(units);
}

static void test_dumb(void **state) {
        json_t *units = some_units();
        struct top_frame *frame;
        char *text;

        (void) top_view_key(&view, KEY_DOWN, units, 20);
        frame = frame_of(80, 24, units);
        text = encoded(frame, frame, false);
        assert_null(strchr(text, '\x1b'));
        assert_non_null(strstr(text, "\nd.service "));
        assert_non_null(strstr(text, "<\nd.service")); /* the chosen one is b */
        assert_string_equal(text + strlen(text) - 2, "\n\n");
        free(text);
        top_frame_free(frame);
        json_decref(units);
}

static void test_terms(void **state) {
        static const struct {
                const char *term;
                bool addressable, alternate;
        } terms[] = {
                { "xterm-256color", true, true }, { "tmux-256color", true, true },
                { "screen", true, true },         { "foot", true, true },
                { "linux", true, false },         { "vt102", true, false },
                { "vt220", true, false },         { "dumb", false, false },
                { "unknown", false, false },      { "", false, false },
                { NULL, false, false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(terms); i++) {
                assert_int_equal(term_is_addressable(terms[i].term), terms[i].addressable);
                assert_int_equal(term_has_alternate(terms[i].term), terms[i].alternate);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_keys),
                cmocka_unit_test(test_lone_escape),
                cmocka_unit_test(test_noise),
                cmocka_unit_test_setup(test_order, set_up),
                cmocka_unit_test_setup(test_hostile_rows, set_up),
                cmocka_unit_test_setup(test_choice, set_up),
                cmocka_unit_test_setup(test_units_of_one_name, set_up),
                cmocka_unit_test_setup(test_tables, set_up),
                cmocka_unit_test_setup(test_freeze_help_quit, set_up),
                cmocka_unit_test(test_sort_keys_are_unique),
                cmocka_unit_test_setup(test_80x24, set_up),
                cmocka_unit_test_setup(test_40x10, set_up),
                cmocka_unit_test_setup(test_200x60, set_up),
                cmocka_unit_test_setup(test_scrolled, set_up),
                cmocka_unit_test_setup(test_status_line, set_up),
                cmocka_unit_test_setup(test_hostile_names, set_up),
                cmocka_unit_test_setup(test_difference, set_up),
                cmocka_unit_test_setup(test_line_gone, set_up),
                cmocka_unit_test_setup(test_dumb, set_up),
                cmocka_unit_test(test_terms),
        };

        setlocale(LC_CTYPE, "C.UTF-8");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
