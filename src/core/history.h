/* SPDX-License-Identifier: MIT */
/*
 * What a unit looked like: ten minutes in steps of five seconds, an hour by minute, a day by quarter hour, in rings of
 * fixed size, and its last trims. Each slot holds the lowest footprint seen in it (a floor, like the trend's) with what was
 * live and retained at that moment, and the threshold in force. Layer: core; pure; fixed memory.
 *
 * A number of a slot is kept in 16 bits, 12 of them significant: exact to 4 MiB, then to 1/4096. What is drawn or shown in
 * three digits needs no more, and a daemon that keeps a thousand histories has to be small.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy.h"

enum mg_history_span {
        MG_HISTORY_RAW,     /* 120 x 5 s */
        MG_HISTORY_MINUTE,  /* 60 x 1 min */
        MG_HISTORY_QUARTER, /* 96 x 15 min */
        _MG_HISTORY_SPAN_MAX,
};

#define MG_HISTORY_RAW_SLOTS     120
#define MG_HISTORY_MINUTE_SLOTS  60
#define MG_HISTORY_QUARTER_SLOTS 96

/* Nearly three hours of a unit that is trimmed every CooldownSec= (5 min). */
#define MG_HISTORY_TRIMS 32

struct mg_history_slot {
        uint16_t anon;
        uint16_t live;
        uint16_t retained;
        uint16_t trim_above;
};

/* Sizes in KiB, which reach 4 TiB; UINT32_MAX: unknown. */
struct mg_history_round {
        uint32_t ended_sec;
        uint32_t before_kib;
        uint32_t after_kib;
        uint32_t gain_kib;
        uint32_t expected_kib;
        uint32_t duration_usec;
        uint32_t pause_usec;
        uint8_t result; /* enum mg_outcome_result */
        uint8_t reason; /* enum mg_reason */
        uint16_t unused;
};

struct mg_history {
        struct mg_history_slot raw[MG_HISTORY_RAW_SLOTS];
        struct mg_history_slot minute[MG_HISTORY_MINUTE_SLOTS];
        struct mg_history_slot quarter[MG_HISTORY_QUARTER_SLOTS];
        struct mg_history_round rounds[MG_HISTORY_TRIMS];
        uint64_t latest[_MG_HISTORY_SPAN_MAX]; /* number of the newest slot: usec / its length */
        uint64_t n_rounds;                     /* ever; the ring holds the last of them */
        bool started;
};

/* Bytes; each may be MG_UNKNOWN. */
struct mg_history_sample {
        uint64_t anon_bytes;
        uint64_t live_bytes;
        uint64_t retained_bytes;
        uint64_t trim_above_bytes;
};

struct mg_history_trim {
        uint64_t ended_usec; /* whole seconds */
        uint64_t before_bytes;
        uint64_t after_bytes;
        uint64_t gain_bytes;
        uint64_t expected_bytes;
        uint64_t duration_usec;
        uint64_t pause_usec;
        enum mg_outcome_result result;
        enum mg_reason reason;
};

void history_init(struct mg_history *history);

/* A sample at NOW (monotonic; backward is ignored). An unknown anon_bytes is no sample. */
void history_add(
                struct mg_history *history,
                const struct mg_history_sample *sample,
                uint64_t now_usec);

/* A round that has ended. */
void history_trimmed(struct mg_history *history, const struct mg_outcome *outcome);

size_t history_slots(enum mg_history_span span);
uint64_t history_step_usec(enum mg_history_span span);

/*
 * The slot AGE steps before the newest (0: the newest). Returns false where nothing was seen. *ret_start_usec is when
 * the slot began.
 */
bool history_get(
                const struct mg_history *history,
                enum mg_history_span span,
                size_t age,
                struct mg_history_sample *ret_sample,
                uint64_t *ret_start_usec);

/* Where a walk is: all of it, the oldest first, in the finest steps that there are for each moment. */
struct mg_history_walk {
        enum mg_history_span span;
        size_t age;
};

void history_walk_init(struct mg_history_walk *walk);

/* Returns false at the end. *ret_span is whose step the sample's is; *ret_start_usec grows from call to call. */
bool history_walk_next(
                const struct mg_history *history,
                struct mg_history_walk *walk,
                struct mg_history_sample *ret_sample,
                enum mg_history_span *ret_span,
                uint64_t *ret_start_usec);

/* The trim AGE trims before the last (0: the last). Returns false where there was none, or none is kept. */
bool history_get_trim(
                const struct mg_history *history,
                size_t age,
                struct mg_history_trim *ret_trim);
