/* SPDX-License-Identifier: MIT */
/* What the command line of `memguard-replay run` asks for. Layer: replay. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/variant.h"

#define VARIANTS_MAX 32

struct run_options {
        const char *directory; /* -o */
        char **program;        /* argv of the measured program */
        const char *load;      /* for sh -c; NULL: the program is its own load */
        const char *ready;
        const char *memguardd;
        const char *agent;
        uint64_t sample_usec;
        uint64_t floor_usec;
        uint64_t warmup_usec; /* MG_UNKNOWN: one floor */
        uint64_t duration_usec;
        uint64_t idle_usec;
        uint64_t settle_usec;
        uint64_t ready_timeout_usec;
        uint64_t stop_timeout_usec;
        uint64_t memory_max; /* MG_UNKNOWN: none */
        uint64_t repeat;
        bool no_scope;
        bool quiet;
        struct variant variants[VARIANTS_MAX];
        size_t n_variants;
};
