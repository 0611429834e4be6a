/* SPDX-License-Identifier: MIT */
/*
 * What a replay knows of one moment and of one run: plain data that the sampler makes, the CSV keeps and the
 * report reads. Every number may be MG_UNKNOWN. Layer: replay.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum replay_phase {
        PHASE_START,  /* not ready yet */
        PHASE_WARMUP, /* under load; left out of floors, mean and slope */
        PHASE_LOAD,
        PHASE_IDLE, /* the load is over, the program still there */
        _PHASE_MAX,
};

const char *phase_to_string(enum replay_phase phase);
int phase_from_string(const char *name); /* -EINVAL: none of them */

struct replay_sample {
        uint64_t at_usec; /* since the program was started */
        enum replay_phase phase;
        uint64_t anon_bytes;
        uint64_t rss_bytes;
        uint64_t swap_bytes;
        uint64_t live_bytes;      /* what the agent counted */
        uint64_t told_live_bytes; /* what the program or the load last said */
        uint64_t psi_usec;        /* "some" stall since the start of the run */
        uint64_t minor_faults;    /* these three since the start of the program */
        uint64_t major_faults;
        uint64_t cpu_usec;
        uint64_t processes;
        uint64_t trims;      /* by memguard */
        uint64_t pause_usec; /* the longest of memguard's last trims */
};

/* Anonymous memory with what was swapped out of it; RSS where anon is not known. */
uint64_t sample_footprint(const struct replay_sample *sample);

enum replay_end {
        END_CUT, /* no last word: the harness itself was killed */
        END_FINISHED,
        END_PROGRAM_ENDED, /* by itself, with exit code 0 */
        END_PROGRAM_FAILED,
        END_LOAD_FAILED,
        END_OOM,
        END_INTERRUPTED,
        END_NOT_IN_EFFECT, /* what the variant asks for is not there in the process */
        END_NOT_STARTED, /* a missing library, a program that cannot be executed or is never ready */
        END_NOT_WRITTEN, /* a full disk */
        _END_MAX,
};

const char *end_to_string(enum replay_end end);
int end_from_string(const char *name);
