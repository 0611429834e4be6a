/* SPDX-License-Identifier: MIT */
/*
 * What the program or the load says about itself, in lines of its output:
 *
 *   phase NAME [KEY=NUMBER...]      "phase idle" ends the load; live_bytes= is what is live from now on
 *   summary [KEY=VALUE...]          at the end: operations operations_per_second p99_usec worst_usec live_bytes trims trim_worst_usec
 *
 * Other lines and other keys are none of our business. Layer: replay; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct told {
        uint64_t live_bytes;
        uint64_t operations;
        uint64_t operations_per_second;
        uint64_t p99_usec;
        uint64_t worst_usec;
        uint64_t trims;
        uint64_t trim_worst_usec;
        bool load_over;
        bool summary;
};

void told_init(struct told *told);

/* One line without its newline. Returns whether it was one of ours. */
bool told_line(struct told *told, const char *line);

/* Gathers lines out of pieces of output; what a line has beyond the buffer is dropped. */
struct told_lines {
        char buffer[2048];
        size_t length;
        bool skipping;
};

void told_feed(struct told_lines *lines, const char *bytes, size_t n, struct told *told);

/* "operations=1 p99_usec=2 ..." of what is known, for the CSV; told_line() takes it back behind "summary ". */
#define TOLD_TEXT_MAX 512
const char *told_format(const struct told *told, char buffer[static TOLD_TEXT_MAX]);
