/* SPDX-License-Identifier: MIT */
/* A line reader over one fixed buffer. Layer: host; no allocation. */
#include "host/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void lines_init(struct mg_lines *lines, int fd) {
        lines->fd = fd;
        lines->start = 0;
        lines->end = 0;
        lines->delimiter = '\n';
        lines->at_end = false;
        lines->skipping = false;
}

/* Makes room and reads once. The last byte of the buffer is kept for the NUL. */
static int fill(struct mg_lines *lines) {
        ssize_t n;

        memmove(lines->buffer, lines->buffer + lines->start, lines->end - lines->start);
        lines->end -= lines->start;
        lines->start = 0;
        do
                n = read(lines->fd, lines->buffer + lines->end, MG_LINE_MAX - 1 - lines->end);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        lines->at_end = n == 0;
        lines->end += (size_t) n;
        return 0;
}

/* What is in the buffer up to LENGTH becomes a line, unless it is the tail of an overlong one. */
static bool cut(struct mg_lines *lines, size_t length, bool whole, char **ret_line) {
        char *line = lines->buffer + lines->start;
        bool skip = lines->skipping;

        line[length] = '\0';
        lines->start += whole ? length + 1 : length;
        lines->skipping = !whole;
        *ret_line = line;
        return !skip;
}

int lines_next(struct mg_lines *lines, char **ret_line) {
        for (;;) {
                size_t held = lines->end - lines->start;
                char *newline = memchr(lines->buffer + lines->start, lines->delimiter, held);

                if (newline) {
                        size_t length = (size_t) (newline - lines->buffer) - lines->start;
                        if (cut(lines, length, true, ret_line))
                                return 1;
                        continue;
                }
                if (held == MG_LINE_MAX - 1 || (lines->at_end && held > 0)) {
                        if (cut(lines, held, false, ret_line))
                                return 1;
                        continue;
                }
                if (lines->at_end)
                        return 0;
                int r = fill(lines);
                if (r < 0)
                        return r;
        }
}
