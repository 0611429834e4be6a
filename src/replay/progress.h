/* SPDX-License-Identifier: MIT */
/* One line on a terminal while a run goes on. Layer: replay. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "replay/sample.h"

struct progress {
        bool shown; /* standard error is a terminal, and nobody said --quiet */
        uint64_t floor_usec;
        uint64_t run_usec;    /* how long this run will be, about */
        uint64_t later_usec;  /* how long all runs after it will be, about */
        uint64_t floor;       /* number of the floor that is gathered */
        uint64_t floor_bytes; /* the lowest of it so far */
};

void progress_show(struct progress *progress, const char *name, const struct replay_sample *sample);

/* Takes the line away, so that a message can stand there. */
void progress_clear(const struct progress *progress);
