/* SPDX-License-Identifier: MIT */
/* How large the terminal is. Layer: ctl. */
#pragma once

struct terminal_size {
        unsigned columns;
        unsigned rows;
};

/* What the kernel says of FD; a serial line says nothing: $COLUMNS and $LINES, else 80x24. Never 0. */
struct terminal_size terminal_size(int fd);
