/* SPDX-License-Identifier: MIT */
/*
 * What a unit looked like: ten minutes in steps of five seconds, an hour by minute, a day by quarter hour, in rings of
 * fixed size. Each slot holds the lowest footprint seen in it (a floor, like the trend's) with what was live and
 * retained at that moment, and what trims brought. KiB in 32 bits reach 4 TiB. Layer: core; pure; fixed memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MG_HISTORY_UNKNOWN UINT32_MAX

struct mg_history_slot {
        uint32_t anon_kib; /* MG_HISTORY_UNKNOWN: nothing was seen in this slot */
        uint32_t live_kib;
        uint32_t retained_kib;
        uint32_t trimmed_kib;
};

enum mg_history_span {
        MG_HISTORY_RAW,     /* 120 x 5 s */
        MG_HISTORY_MINUTE,  /* 60 x 1 min */
        MG_HISTORY_QUARTER, /* 96 x 15 min */
        _MG_HISTORY_SPAN_MAX,
};

#define MG_HISTORY_RAW_SLOTS     120
#define MG_HISTORY_MINUTE_SLOTS  60
#define MG_HISTORY_QUARTER_SLOTS 96

struct mg_history {
        struct mg_history_slot raw[MG_HISTORY_RAW_SLOTS];
        struct mg_history_slot minute[MG_HISTORY_MINUTE_SLOTS];
        struct mg_history_slot quarter[MG_HISTORY_QUARTER_SLOTS];
        uint64_t latest[_MG_HISTORY_SPAN_MAX]; /* number of the newest slot: usec / its length */
        bool started;
};

void history_init(struct mg_history *history);

/* A sample at NOW (monotonic; backward is ignored). Bytes may be MG_UNKNOWN. */
void history_add(
                struct mg_history *history,
                uint64_t anon_bytes,
                uint64_t live_bytes,
                uint64_t retained_bytes,
                uint64_t now_usec);

/* A trim that ended at NOW brought GAIN_BYTES. */
void history_trimmed(struct mg_history *history, uint64_t gain_bytes, uint64_t now_usec);

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
                struct mg_history_slot *ret_slot,
                uint64_t *ret_start_usec);
