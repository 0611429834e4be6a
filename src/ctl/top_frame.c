/* SPDX-License-Identifier: MIT */
/* Layout, and the difference of two frames. Layer: ctl. */
#include "ctl/top_frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include "base/macros.h"
#include "base/text.h"
#include "ctl/overview.h"

/* Of a character in UTF-8. */
#define CHARACTER_MAX 4

/* The name's column is not squeezed below this. */
#define NAME_WIDTH_MIN 14

struct top_frame *top_frame_new(struct terminal_size size) {
        size_t stride = (size_t) size.columns * CHARACTER_MAX + 1;
        struct top_frame *frame = calloc(1, sizeof(*frame));
        char *text = calloc(size.rows, stride);
        struct top_line *lines = calloc(size.rows, sizeof(*lines));

        if (!frame || !text || !lines) {
                free(lines);
                free(text);
                free(frame);
                return NULL;
        }
        for (unsigned i = 0; i < size.rows; i++)
                lines[i].text = text + i * stride;
        *frame = (struct top_frame){ size, lines };
        return frame;
}

struct top_frame *top_frame_free(struct top_frame *frame) {
        if (!frame)
                return NULL;
        free(frame->lines[0].text);
        free(frame->lines);
        free(frame);
        return NULL;
}

/* ---- text ---- */

static unsigned usable_width(const struct top_frame *frame) {
        return frame->size.columns - 1;
}

/* The next character of *AT, cleaned: what is no character, or would move the cursor, becomes "?". Returns its width. */
static int next_character(const char **at, char bytes[static CHARACTER_MAX], size_t *ret_length) {
        mbstate_t state = {};
        wchar_t c;
        size_t n = mbrtowc(&c, *at, strlen(*at), &state);
        int width = n > 0 && n <= CHARACTER_MAX ? wcwidth(c) : -1;

        if (width < 0) {
                bytes[0] = '?';
                *ret_length = 1;
                *at += 1;
                return 1;
        }
        memcpy(bytes, *at, n);
        *ret_length = n;
        *at += n;
        return width;
}

static unsigned width_of(const char *text) {
        char bytes[CHARACTER_MAX];
        unsigned width = 0;
        size_t length;

        while (*text)
                width += (unsigned) next_character(&text, bytes, &length);
        return width;
}

/* Up to WIDTH columns of TEXT behind OUT's end; returns how many. A "~" stands for what was cut off. */
static unsigned put_cut(char *out, const char *text, unsigned width) {
        bool cut = width_of(text) > width;
        unsigned room = cut && width > 0 ? width - 1 : width;
        unsigned used = 0;
        char bytes[CHARACTER_MAX];
        size_t length, end = strlen(out);

        while (*text) {
                unsigned n = (unsigned) next_character(&text, bytes, &length);
                if (used + n > room)
                        break;
                if (n == 0)
                        continue; /* an accent takes no column, and has no bound */
                memcpy(out + end, bytes, length);
                end += length;
                used += n;
        }
        if (cut && width > 0) {
                out[end++] = '~';
                used++;
        }
        out[end] = '\0';
        return used;
}

static void put_blanks(char *out, unsigned n) {
        size_t end = strlen(out);

        memset(out + end, ' ', n);
        out[end + n] = '\0';
}

static void put_cell(char *out, const char *text, unsigned width, bool right) {
        unsigned used = MG_MIN(width_of(text), width);

        if (right)
                put_blanks(out, width - used);
        used = put_cut(out, text, width);
        if (!right)
                put_blanks(out, width - used);
}

static void put_line(struct top_frame *frame, unsigned row, const char *text) {
        (void) put_cut(frame->lines[row].text, text, usable_width(frame));
}

/* Both are shown reversed, over the whole width. */
static void set_style(struct top_frame *frame, unsigned row, enum top_style style) {
        struct top_line *line = &frame->lines[row];
        unsigned used = width_of(line->text);

        line->style = style;
        put_blanks(line->text, usable_width(frame) - used);
}

/* ---- layout ---- */

/* What a small terminal does without, one after the other; at least a row of the table is left. */
struct places {
        bool host, status, headings, hint;
        unsigned table; /* its first line */
        unsigned page;
};

static struct places places_of(struct terminal_size size) {
        struct places places = {
                .hint = size.rows >= 8,
                .status = size.rows >= 5,
                .host = size.rows >= 4,
                .headings = size.rows >= 2,
        };

        places.table = (unsigned) places.host + places.status + places.headings;
        places.page = size.rows - places.table - places.hint;
        return places;
}

size_t top_frame_page(struct terminal_size size) {
        return places_of(size).page;
}

/* The columns that fit, in their order, and the name's width. */
struct chosen_columns {
        bool shown[TOP_COLUMNS_MAX];
        unsigned name_width;
};

static unsigned longest_name(const json_t *rows) {
        unsigned longest = NAME_WIDTH_MIN;
        json_t *row;
        size_t i;

        json_array_foreach(rows, i, row) {
                unsigned width = width_of(member_text(row, "unit"));
                longest = MG_MAX(longest, width);
        }
        return longest;
}

/* The column that is sorted by comes right after the name: an order that cannot be seen is none. */
static unsigned rank_of(const struct top_column *columns, size_t i, size_t sorted) {
        return i == sorted && i > 0 ? 1 : columns[i].priority * 2;
}

static struct chosen_columns choose_columns(
                const struct top_column *columns,
                size_t n,
                size_t sorted,
                unsigned width,
                unsigned longest) {
        struct chosen_columns chosen = { .shown = { true } };
        unsigned room = width > NAME_WIDTH_MIN ? width - NAME_WIDTH_MIN : 0;

        for (unsigned rank = 1; rank <= 2 * TOP_COLUMNS_MAX; rank++)
                for (size_t i = 1; i < n; i++) {
                        if (rank_of(columns, i, sorted) != rank || columns[i].width + 1 > room)
                                continue;
                        chosen.shown[i] = true;
                        room -= columns[i].width + 1;
                }
        room += MG_MIN(width, (unsigned) NAME_WIDTH_MIN);
        chosen.name_width = MG_MIN(room, longest);
        return chosen;
}

static const char *show_cell(const json_t *row, const struct column *column) {
        return row ? cell_format(json_object_get(row, column->member), column->cell)
                   : column->title;
}

/* ROW NULL: the titles. */
static void put_row(
                struct top_frame *frame,
                unsigned at,
                const struct top_column *columns,
                size_t n,
                const struct chosen_columns *chosen,
                const json_t *row) {
        char *text = frame->lines[at].text;

        put_cell(text, show_cell(row, &columns[0].column), chosen->name_width, false);
        for (size_t i = 1; i < n; i++) {
                if (!chosen->shown[i])
                        continue;
                put_blanks(text, 1);
                put_cell(text, show_cell(row, &columns[i].column), columns[i].width,
                         columns[i].column.right);
        }
}

static void fill_table(
                struct top_frame *frame,
                const struct places *places,
                const struct top_view *view,
                const json_t *rows) {
        size_t n;
        const struct top_column *columns = top_columns(view->table, &n);
        struct chosen_columns chosen =
                        choose_columns(columns, n, view->order[view->table].column,
                                       usable_width(frame), longest_name(rows));

        if (places->headings) {
                put_row(frame, places->table - 1, columns, n, &chosen, NULL);
                set_style(frame, places->table - 1, TOP_HEADINGS);
        }
        for (unsigned i = 0; i < places->page; i++) {
                const json_t *row = json_array_get(rows, view->first + i);

                if (!row)
                        break;
                put_row(frame, places->table + i, columns, n, &chosen, row);
                if (top_view_is_selected(view, view->first + i))
                        set_style(frame, places->table + i, TOP_SELECTED);
        }
}

static void put_range(struct mg_text *text, const struct top_view *view, size_t n, size_t page) {
        if (n > page) {
                text_put_u64(text, view->first + 1);
                text_put_char(text, '-');
                text_put_u64(text, MG_MIN(view->first + page, n));
                text_put(text, " of ");
        }
        text_put_u64(text, n);
        text_put(text, view->table == TOP_UNITS ? (n == 1 ? " unit" : " units")
                                                : (n == 1 ? " process" : " processes"));
        if (view->unit[0] != '\0') {
                text_put(text, " of ");
                text_put(text, view->unit);
        }
}

/* "14:03:22, every 2s, by FREEABLE, 3 units": what matters most stands first, where a narrow terminal shows it. */
static void fill_status(
                struct top_frame *frame,
                unsigned row,
                const struct top_view *view,
                const struct top_content *content) {
        const struct top_order *order = &view->order[view->table];
        char buffer[2 * TOP_NAME_MAX + 200], short_text[MG_SHORT_TEXT_MAX];
        struct mg_text text;
        size_t n;

        text_init(&text, buffer, sizeof(buffer));
        if (content->silent_usec > 0) {
                text_put(&text, "NO ANSWER for ");
                text_put(&text, format_duration(content->silent_usec, short_text));
                text_put(&text, ", ");
        }
        if (member_true(content->host, "paused"))
                text_put(&text, "TRIMMING PAUSED, ");
        if (view->frozen)
                text_put(&text, "FROZEN, ");
        if (view->notice[0] != '\0') {
                text_put(&text, view->notice);
                text_put(&text, ", ");
        }
        text_put(&text, content->clock);
        text_put(&text, ", every ");
        text_put(&text, format_duration(content->interval_usec, short_text));
        text_put(&text, ", by ");
        text_put(&text, top_columns(view->table, &n)[order->column].column.title);
        text_put(&text, order->reverse ? " reversed, " : ", ");
        put_range(&text, view, json_array_size(content->rows), top_frame_page(frame->size));
        put_line(frame, row, buffer);
}

static void fill_help(struct top_frame *frame) {
        static const char *const lines[] = {
                "q            quit",
                "space        freeze the display, and go on",
                "p            processes of all units, or the units",
                "up, down     choose a row; also k, j, page up, page down, home, end",
                "enter        the processes of the chosen unit",
                "esc, left    back",
                "r            reverse the order",
                "< >          sort by the column before or after",
                "a f l n      sort by ANON, FREEABLE, LIVE, UNIT",
                "units        i PINNED  o OTHER  s SLOPE/H  v VERDICT  m MODE  g AGENTS",
                "             t TRIMS  b TRIMMED  w SWAP  e REASON",
                "processes    d PID  c COMMAND  e RETAINED  g AGENT  w SWAP  i CACHES  s STATS AGE",
                "ctrl-l       draw everything again",
                "",
                "Any key goes back. The columns are explained in memguardctl(1).",
        };

        for (unsigned i = 0; i < frame->size.rows && i < MG_ELEMENTS(lines); i++)
                put_line(frame, i, lines[i]);
}

static void clear(struct top_frame *frame) {
        for (unsigned i = 0; i < frame->size.rows; i++) {
                frame->lines[i].style = TOP_PLAIN;
                frame->lines[i].text[0] = '\0';
        }
}

void top_frame_fill(
                struct top_frame *frame,
                const struct top_view *view,
                const struct top_content *content) {
        struct places places = places_of(frame->size);
        char line[HOST_LINE_MAX];
        unsigned row = 0;

        clear(frame);
        if (view->help) {
                fill_help(frame);
                return;
        }
        if (places.host)
                put_line(frame, row++,
                         content->host ? host_line(content->host, line, sizeof(line))
                                       : "memguard: waiting for memguardd");
        if (places.status)
                fill_status(frame, row, view, content);
        fill_table(frame, &places, view, content->rows);
        if (places.hint)
                put_line(frame, frame->size.rows - 1,
                         "q quit  ? help  space freeze  p processes  r reverse  < > sort  enter open");
}

/* ---- sending ---- */

static bool is_same(const struct top_line *a, const struct top_line *b) {
        return a->style == b->style && mg_streq(a->text, b->text);
}

static void encode_line(FILE *out, const struct top_line *line, unsigned row) {
        bool reverse = line->style != TOP_PLAIN;

        fprintf(out, "\x1b[%u;1H%s%s%s\x1b[K", row + 1, reverse ? "\x1b[7m" : "", line->text,
                reverse ? "\x1b[m" : "");
}

static void encode_difference(
                FILE *out,
                const struct top_frame *before,
                const struct top_frame *frame) {
        bool changed = false;

        if (!before)
                fputs("\x1b[m\x1b[H\x1b[J", out);
        for (unsigned i = 0; i < frame->size.rows; i++) {
                if (before ? is_same(&before->lines[i], &frame->lines[i])
                           : frame->lines[i].text[0] == '\0')
                        continue;
                encode_line(out, &frame->lines[i], i);
                changed = true;
        }
        if (changed)
                fprintf(out, "\x1b[%u;1H", frame->size.rows);
}

static void encode_plain(FILE *out, const struct top_frame *frame) {
        for (unsigned i = 0; i < frame->size.rows; i++)
                if (frame->lines[i].text[0] != '\0')
                        fprintf(out, "%s%s\n", frame->lines[i].text,
                                frame->lines[i].style == TOP_SELECTED ? "<" : "");
        fputc('\n', out);
}

int top_frame_encode(
                const struct top_frame *before,
                const struct top_frame *frame,
                bool addressable,
                char **ret_text,
                size_t *ret_length) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return -ENOMEM;
        if (before &&
            (before->size.columns != frame->size.columns || before->size.rows != frame->size.rows))
                before = NULL;
        if (addressable)
                encode_difference(out, before, frame);
        else
                encode_plain(out, frame);
        if (fclose(out) != 0) {
                free(text);
                return -ENOMEM;
        }
        *ret_text = text;
        *ret_length = length;
        return 0;
}
