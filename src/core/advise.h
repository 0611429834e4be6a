/* SPDX-License-Identifier: MIT */
/*
 * What an operator could change for a unit: from its numbers, its verdict and what its trims have taught. Each piece of advice says
 * what it should bring and how sure that is. Nothing is changed here, and nothing is proposed that the operator has
 * already set otherwise. Layer: core; pure.
 */
#pragma once

#include "core/policy.h"

enum mg_advice_kind {
        MG_ADVICE_NOTHING,        /* all is as it should be, or nothing from outside would help */
        MG_ADVICE_ENROLL,         /* no agent: load one */
        MG_ADVICE_MODE_TRIM,      /* observed, and it would have been worth trimming */
        MG_ADVICE_ARENA_MAX,      /* Environment=MALLOC_ARENA_MAX= the number of CPUs */
        MG_ADVICE_MMAP_THRESHOLD, /* a fixed mmap threshold: large blocks go back at once, at a price */
        MG_ADVICE_BACKGROUND_THREAD, /* JemallocBackgroundThread=yes */
        MG_ADVICE_OTHER_ALLOCATOR,   /* the one in use gives nothing back */
        MG_ADVICE_RESTART,           /* pinned: only a new process starts with a compact heap */
        MG_ADVICE_MAX_PAUSE,         /* MaxPause= is what holds trims back */
        MG_ADVICE_WATCHDOG,          /* WatchdogSec= is */
        MG_ADVICE_HUGE_PAGES,        /* transparent huge pages fill up what trims empty */
        MG_ADVICE_LOOK_INSIDE,       /* live memory grows: only the program's author can help */
        MG_ADVICE_NOT_MALLOC,        /* what grows is outside the heaps */
        _MG_ADVICE_KIND_MAX,
};

enum mg_confidence {
        MG_CONFIDENCE_LOW,    /* from measurements of other programs */
        MG_CONFIDENCE_MEDIUM, /* those, and this unit's numbers agree */
        MG_CONFIDENCE_HIGH,   /* from what this unit was seen to do */
        _MG_CONFIDENCE_MAX,
};

enum mg_advice_allocator {
        MG_ALLOCATOR_OTHER,
        MG_ALLOCATOR_GLIBC,
        MG_ALLOCATOR_JEMALLOC,
        MG_ALLOCATOR_TCMALLOC,
        MG_ALLOCATOR_MIMALLOC,
};

/* What the policy does not know; of the process that retains most. */
struct mg_advice_facts {
        enum mg_advice_allocator allocator; /* that serves its malloc() */
        uint64_t arenas;                    /* MG_UNKNOWN: not told */
        uint64_t free_chunks;
        uint64_t cpus;
        bool tuned;             /* MALLOC_* or GLIBC_TUNABLES are set: they are the operator's */
        bool background_thread; /* jemalloc's is on */
};

struct mg_advice {
        enum mg_advice_kind kind;
        enum mg_confidence confidence;
        uint64_t gain_bytes; /* less of anon, once; 0: not a matter of bytes, MG_UNKNOWN: cannot be told */
        uint64_t value; /* of the setting proposed: CPUs, bytes or microseconds; 0: none */
};

#define MG_ADVICE_MAX 6

/* Fills ADVICE (room for MG_ADVICE_MAX), the most useful first. Returns how many; at least one, if only NOTHING. */
size_t advise_unit(
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                const struct mg_policy_state *state,
                const struct mg_decision *decision,
                const struct mg_advice_facts *facts,
                struct mg_advice *advice);

/* Room for any advise_text(). */
#define MG_ADVICE_TEXT_MAX 384

/* One or two sentences with the numbers, into BUFFER of MG_ADVICE_TEXT_MAX bytes, which it returns. */
const char *advise_text(const struct mg_advice *advice, char *buffer);

const char *advice_kind_to_string(enum mg_advice_kind kind);     /* "arena-max" */
const char *confidence_to_string(enum mg_confidence confidence); /* "low" */
int advice_allocator_from_string(
                const char *name,
                size_t length); /* "glibc": enum mg_advice_allocator */
