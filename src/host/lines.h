/* SPDX-License-Identifier: MIT */
/*
 * Lines of a kernel file of any length (status with 65,536 groups, maps), through one fixed buffer. What a line has
 * beyond the buffer is dropped. Layer: host; no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MG_LINE_MAX 8192

struct mg_lines {
        int fd; /* the caller's */
        size_t start;
        size_t end;
        char delimiter; /* '\n'; environ has '\0' */
        bool at_end;
        bool skipping; /* the rest of an overlong line is still to come */
        char buffer[MG_LINE_MAX];
};

void lines_init(struct mg_lines *lines, int fd);

/* 1: *RET_LINE is the next line, without its newline, until the next call. 0: the end. Else -errno. */
int lines_next(struct mg_lines *lines, char **ret_line);
