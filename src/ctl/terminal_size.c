/* SPDX-License-Identifier: MIT */
/* Window sizes. Layer: ctl. */
#include "ctl/terminal_size.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/parse.h"

/* No screen is larger; memory for a frame follows from it. */
#define SIZE_MAX_SENSIBLE 1000

static unsigned from_environment(const char *name, unsigned otherwise) {
        const char *text = getenv(name);
        uint64_t value;

        if (!text || parse_u64(text, &value) < 0 || value == 0 || value > SIZE_MAX_SENSIBLE)
                return otherwise;
        return (unsigned) value;
}

static unsigned choose(unsigned told, const char *name, unsigned otherwise) {
        if (told == 0)
                return from_environment(name, otherwise);
        return told < SIZE_MAX_SENSIBLE ? told : SIZE_MAX_SENSIBLE;
}

struct terminal_size terminal_size(int fd) {
        struct winsize window = {};

        if (ioctl(fd, TIOCGWINSZ, &window) < 0)
                window = (struct winsize){};
        return (struct terminal_size){
                .columns = choose(window.ws_col, "COLUMNS", 80),
                .rows = choose(window.ws_row, "LINES", 24),
        };
}
