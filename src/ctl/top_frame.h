/* SPDX-License-Identifier: MIT */
/*
 * A screenful of top as lines of text, and what has to be sent so that a terminal shows it. Layer: ctl; needs no terminal.
 *
 * The terminal is a VT100 or anything younger (vt102, linux, xterm, screen, tmux), or none that can move its cursor (dumb). The last
 * column stays empty: a character there makes some of them scroll.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/terminal_size.h"
#include "ctl/top_view.h"

enum top_style {
        TOP_PLAIN,
        TOP_HEADINGS,
        TOP_SELECTED,
};

struct top_line {
        enum top_style style;
        char *text;
};

struct top_frame {
        struct terminal_size size;
        struct top_line *lines; /* size.rows of them */
};

/* What is shown beside the rows. */
struct top_content {
        const json_t *host; /* GetHost(); NULL: not known yet */
        const json_t *rows; /* sorted; NULL: not known yet */
        uint64_t interval_usec;
        uint64_t silent_usec; /* since when memguardd owes an answer; 0: it does not */
        const char *clock;    /* when the rows were read: "14:03:22" */
};

/* NULL for want of memory. */
struct top_frame *top_frame_new(struct terminal_size size);
struct top_frame *top_frame_free(struct top_frame *frame);

/* Lines that rows of the table have on a terminal of SIZE. */
size_t top_frame_page(struct terminal_size size);

void top_frame_fill(
                struct top_frame *frame,
                const struct top_view *view,
                const struct top_content *content);

/*
 * What makes a terminal that shows BEFORE (NULL: anything) show FRAME; without ADDRESSABLE the frame as plain lines. The
 * caller frees *ret_text. Returns 0 or -ENOMEM.
 */
int top_frame_encode(
                const struct top_frame *before,
                const struct top_frame *frame,
                bool addressable,
                char **ret_text,
                size_t *ret_length);
