/* SPDX-License-Identifier: MIT */
/* Modes, screens, output. Layer: ctl. */
#include "ctl/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "ctl/term.h"

/* How long leaving waits for a line that does not take what is left. */
#define LEAVE_WAIT_MSEC 300

/* An open of one's own has flags of its own; those of standard output are the shell's too. */
static int open_output(void) {
        return open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void terminal_init(struct terminal *terminal) {
        const char *term = getenv("TERM");
        int fd = open_output();

        *terminal = (struct terminal){
                .in_fd = STDIN_FILENO,
                .out_fd = fd >= 0 ? fd : STDOUT_FILENO,
                .own_out = fd >= 0,
                .addressable = term_is_addressable(term),
                .alternate = term_has_alternate(term),
        };
}

static void drop_unsent(struct terminal *terminal) {
        free(terminal->unsent);
        terminal->unsent = NULL;
        terminal->unsent_length = terminal->sent = 0;
}

void terminal_repaint(struct terminal *terminal) {
        terminal->shown = top_frame_free(terminal->shown);
}

bool terminal_is_busy(const struct terminal *terminal) {
        return terminal->sent < terminal->unsent_length;
}

int terminal_send(struct terminal *terminal) {
        while (terminal_is_busy(terminal)) {
                ssize_t n =
                                write(terminal->out_fd, terminal->unsent + terminal->sent,
                                      terminal->unsent_length - terminal->sent);
                if (n >= 0)
                        terminal->sent += (size_t) n;
                else if (errno == EAGAIN)
                        return 1;
                else if (errno != EINTR)
                        return -errno;
        }
        drop_unsent(terminal);
        return 0;
}

int terminal_show(struct terminal *terminal, struct top_frame *frame) {
        drop_unsent(terminal);
        int r = top_frame_encode(
                        terminal->shown, frame, terminal->addressable, &terminal->unsent,
                        &terminal->unsent_length);
        top_frame_free(terminal->shown);
        terminal->shown = frame;
        if (r < 0) {
                terminal_repaint(terminal);
                return r;
        }
        return terminal_send(terminal);
}

/* A short sequence, after what is left of a frame; on a line that stands still it is lost. */
static void send_now(struct terminal *terminal, const char *text) {
        struct pollfd out = { .fd = terminal->out_fd, .events = POLLOUT };
        size_t length = strlen(text);

        while (length > 0 && poll(&out, 1, LEAVE_WAIT_MSEC) > 0) {
                ssize_t n = write(terminal->out_fd, text, length);
                if (n < 0 && errno != EINTR && errno != EAGAIN)
                        return;
                if (n > 0) {
                        text += n;
                        length -= (size_t) n;
                }
        }
}

int terminal_enter(struct terminal *terminal) {
        struct termios raw;

        if (tcgetattr(terminal->in_fd, &terminal->saved) < 0)
                return -errno;
        raw = terminal->saved;
        raw.c_lflag &= ~(tcflag_t) (ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        if (tcsetattr(terminal->in_fd, TCSANOW, &raw) < 0)
                return -errno;
        terminal->entered = true;
        terminal_repaint(terminal);
        if (terminal->alternate)
                send_now(terminal, "\x1b[?1049h");
        if (terminal->addressable)
                send_now(terminal, "\x1b[?25l"); /* no cursor; a VT102 ignores it */
        return 0;
}

static void leave_screen(struct terminal *terminal) {
        char below[32] = "";

        if (!terminal->addressable)
                return;
        if (terminal->alternate)
                send_now(terminal, "\x1b[m\x1b[?25h\x1b[?1049l");
        else {
                /* What was seen last stays, the shell goes on below it. */
                snprintf(below, sizeof(below), "\x1b[m\x1b[?25h\x1b[%u;1H\x1b[K\r\n",
                         terminal_now(terminal).rows);
                send_now(terminal, below);
        }
}

void terminal_leave(struct terminal *terminal) {
        if (!terminal->entered)
                return;
        terminal->entered = false;
        drop_unsent(terminal);
        leave_screen(terminal);
        /* Not TCSADRAIN: that waits for the line. */
        (void) tcsetattr(terminal->in_fd, TCSANOW, &terminal->saved);
}

void terminal_done(struct terminal *terminal) {
        terminal_leave(terminal);
        terminal_repaint(terminal);
        drop_unsent(terminal);
        if (terminal->own_out)
                file_closep(&terminal->out_fd);
}

struct terminal_size terminal_now(const struct terminal *terminal) {
        return terminal_size(terminal->out_fd);
}
