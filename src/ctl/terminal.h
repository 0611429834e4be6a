/* SPDX-License-Identifier: MIT */
/*
 * The terminal while top runs: keys come one by one, nothing is echoed, and what is shown is replaced in place. Whoever
 * has entered it leaves it on every way out. Output never blocks: a serial line that stands still keeps nobody from quitting.
 * Layer: ctl.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "ctl/terminal_size.h"
#include "ctl/top_frame.h"

struct terminal {
        int in_fd;
        int out_fd;
        bool own_out;     /* opened here, so that it can be nonblocking for nobody else */
        bool addressable; /* its cursor can be moved */
        bool alternate;   /* it has a second screen, and comes back with the first as it was */
        bool entered;
        struct termios saved;
        struct top_frame *shown; /* NULL: unknown */
        char *unsent;
        size_t unsent_length;
        size_t sent;
};

/* Standard input and output, both terminals. */
void terminal_init(struct terminal *terminal);

/* Returns 0 or -errno. */
int terminal_enter(struct terminal *terminal);
void terminal_leave(struct terminal *terminal);

/* Leaves, and frees what there is. */
void terminal_done(struct terminal *terminal);

struct terminal_size terminal_now(const struct terminal *terminal);

/* Forgets what is shown: the next frame is sent whole. */
void terminal_repaint(struct terminal *terminal);

/* Takes FRAME over. Only where nothing is unsent. Returns what terminal_send() does, or -ENOMEM. */
int terminal_show(struct terminal *terminal, struct top_frame *frame);

/* Sends on. Returns 0, 1 (more is left: wait until it can be written to) or -errno. */
int terminal_send(struct terminal *terminal);

bool terminal_is_busy(const struct terminal *terminal);
