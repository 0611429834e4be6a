/* SPDX-License-Identifier: MIT */
/*
 * One run of one variant: start, wait until ready, load, sample, stop; everything into one CSV. Whatever goes wrong, the samples so
 * far are in the file, the file says what it was, and no process is left. Layer: replay.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "replay/options.h"
#include "replay/progress.h"
#include "replay/sample.h"

struct harness {
        const struct run_options *options;
        int signal_fd;
        sigset_t signals_before; /* what the measured programs get */
        unsigned interrupts;     /* the first stops gently, the second at once */
        uint64_t sequence;       /* runs made so far */
        struct progress progress;
};

/* Takes the signals over and becomes the subreaper. */
int harness_init(struct harness *harness, const struct run_options *options);
void harness_done(struct harness *harness);

/* How long one run will take, about. */
uint64_t run_expected_usec(const struct run_options *options);

/*
 * Runs VARIANT for the ROUND'th time. *RET_END says how it ended, which the CSV says too (unless it could not be written);
 * returns a negative errno only where not even the file could be made.
 */
int run_variant(struct harness *harness,
                struct variant *variant,
                uint64_t round,
                enum replay_end *ret_end);
