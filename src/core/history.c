/* SPDX-License-Identifier: MIT */
/* The rings of core/history.h. A slot's number is its time divided by its length; its place is that modulo the ring. */
#include "core/history.h"

#include "base/macros.h"

static const struct {
        uint64_t step_usec;
        size_t slots;
} spans[] = {
        [MG_HISTORY_RAW] = { 5 * MG_USEC_PER_SEC, MG_HISTORY_RAW_SLOTS },
        [MG_HISTORY_MINUTE] = { MG_USEC_PER_MIN, MG_HISTORY_MINUTE_SLOTS },
        [MG_HISTORY_QUARTER] = { 15 * MG_USEC_PER_MIN, MG_HISTORY_QUARTER_SLOTS },
};
_Static_assert(MG_ELEMENTS(spans) == _MG_HISTORY_SPAN_MAX, "a span has no length");
_Static_assert(_MG_REASON_MAX <= UINT8_MAX && _MG_OUTCOME_MAX <= UINT8_MAX,
               "a round keeps them in a byte");

/* ---- numbers ---- */

#define PACKED_UNKNOWN UINT16_MAX
#define MANTISSA_BITS  11
#define MANTISSA_ONE   (1u << MANTISSA_BITS)
#define KIB_UNKNOWN    UINT32_MAX

static const struct mg_history_slot empty_slot = {
        PACKED_UNKNOWN,
        PACKED_UNKNOWN,
        PACKED_UNKNOWN,
        PACKED_UNKNOWN,
};

/* 5 bits of exponent, 11 of mantissa whose leading 1 is not stored, like a float's; KiB, rounded. It grows with the value. */
static uint16_t pack(uint64_t bytes) {
        uint64_t kib = bytes / MG_KIB;
        unsigned shift = 0;

        if (bytes == MG_UNKNOWN)
                return PACKED_UNKNOWN;
        while (kib >> shift >= 2 * MANTISSA_ONE)
                shift++;
        if (shift > 0)
                kib += UINT64_C(1) << (shift - 1);
        if (kib >> shift >= 2 * MANTISSA_ONE)
                shift++;
        if (kib < MANTISSA_ONE)
                return (uint16_t) kib;
        uint64_t packed =
                        ((uint64_t) (shift + 1) << MANTISSA_BITS) + ((kib >> shift) - MANTISSA_ONE);
        return (uint16_t) MG_MIN(packed, (uint64_t) PACKED_UNKNOWN - 1);
}

static uint64_t unpack(uint16_t packed) {
        unsigned exponent = packed >> MANTISSA_BITS;
        uint64_t mantissa = packed & (MANTISSA_ONE - 1);

        if (packed == PACKED_UNKNOWN)
                return MG_UNKNOWN;
        return (exponent == 0 ? mantissa : (mantissa + MANTISSA_ONE) << (exponent - 1)) * MG_KIB;
}

static uint32_t to_kib(uint64_t bytes) {
        if (bytes == MG_UNKNOWN)
                return KIB_UNKNOWN;
        return (uint32_t) MG_MIN(bytes / MG_KIB, (uint64_t) KIB_UNKNOWN - 1);
}

static uint64_t from_kib(uint32_t kib) {
        return kib == KIB_UNKNOWN ? MG_UNKNOWN : kib * MG_KIB;
}

static uint32_t cap_u32(uint64_t value) {
        return (uint32_t) MG_MIN(value, (uint64_t) UINT32_MAX);
}

/* ---- samples ---- */

static const struct mg_history_slot *ring_of_const(
                const struct mg_history *history,
                enum mg_history_span span) {
        switch (span) {
        case MG_HISTORY_RAW:
                return history->raw;
        case MG_HISTORY_MINUTE:
                return history->minute;
        case MG_HISTORY_QUARTER:
        case _MG_HISTORY_SPAN_MAX:
                break;
        }
        return history->quarter;
}

static struct mg_history_slot *ring_of(struct mg_history *history, enum mg_history_span span) {
        return (struct mg_history_slot *) ring_of_const(history, span);
}

size_t history_slots(enum mg_history_span span) {
        return spans[span].slots;
}

uint64_t history_step_usec(enum mg_history_span span) {
        return spans[span].step_usec;
}

static void clear_ring(struct mg_history *history, enum mg_history_span span) {
        struct mg_history_slot *ring = ring_of(history, span);

        for (size_t i = 0; i < spans[span].slots; i++)
                ring[i] = empty_slot;
}

void history_init(struct mg_history *history) {
        for (int span = 0; span < _MG_HISTORY_SPAN_MAX; span++) {
                clear_ring(history, span);
                history->latest[span] = 0;
        }
        history->n_rounds = 0;
        history->started = false;
}

/* The slot of NOW, with every one that was skipped emptied; NULL when NOW lies before the newest. */
static struct mg_history_slot *advance(
                struct mg_history *history,
                enum mg_history_span span,
                uint64_t now_usec) {
        uint64_t number = now_usec / spans[span].step_usec;
        struct mg_history_slot *ring = ring_of(history, span);

        if (!history->started)
                history->latest[span] = number;
        if (number < history->latest[span])
                return NULL;
        if (number - history->latest[span] >= spans[span].slots)
                clear_ring(history, span);
        else
                for (uint64_t n = history->latest[span] + 1; n <= number; n++)
                        ring[n % spans[span].slots] = empty_slot;
        history->latest[span] = number;
        return &ring[number % spans[span].slots];
}

void history_add(
                struct mg_history *history,
                const struct mg_history_sample *sample,
                uint64_t now_usec) {
        struct mg_history_slot packed = {
                .anon = pack(sample->anon_bytes),
                .live = pack(sample->live_bytes),
                .retained = pack(sample->retained_bytes),
                .trim_above = pack(sample->trim_above_bytes),
        };

        for (int span = 0; span < _MG_HISTORY_SPAN_MAX; span++) {
                struct mg_history_slot *slot = advance(history, span, now_usec);

                if (slot && packed.anon < slot->anon)
                        *slot = packed;
        }
        history->started = true;
}

bool history_get(
                const struct mg_history *history,
                enum mg_history_span span,
                size_t age,
                struct mg_history_sample *ret_sample,
                uint64_t *ret_start_usec) {
        const struct mg_history_slot *slot;
        uint64_t number;

        if (!history->started || age >= spans[span].slots || age > history->latest[span])
                return false;
        number = history->latest[span] - age;
        slot = &ring_of_const(history, span)[number % spans[span].slots];
        if (slot->anon == PACKED_UNKNOWN)
                return false;
        *ret_sample = (struct mg_history_sample){
                .anon_bytes = unpack(slot->anon),
                .live_bytes = unpack(slot->live),
                .retained_bytes = unpack(slot->retained),
                .trim_above_bytes = unpack(slot->trim_above),
        };
        *ret_start_usec = number * spans[span].step_usec;
        return true;
}

void history_walk_init(struct mg_history_walk *walk) {
        walk->span = MG_HISTORY_QUARTER;
        walk->age = spans[MG_HISTORY_QUARTER].slots;
}

/* Where the ring of the next finer steps begins: what is older is left to coarser ones. */
static uint64_t finer_begins_usec(const struct mg_history *history, enum mg_history_span span) {
        enum mg_history_span finer = span - 1;

        if (span == MG_HISTORY_RAW)
                return UINT64_MAX;
        return mg_sub_floor(history->latest[finer], spans[finer].slots - 1) *
               spans[finer].step_usec;
}

bool history_walk_next(
                const struct mg_history *history,
                struct mg_history_walk *walk,
                struct mg_history_sample *ret_sample,
                enum mg_history_span *ret_span,
                uint64_t *ret_start_usec) {
        struct mg_history_sample sample;
        uint64_t start_usec;

        for (;;) {
                if (walk->age == 0) {
                        if (walk->span == MG_HISTORY_RAW)
                                return false;
                        walk->span--;
                        walk->age = spans[walk->span].slots;
                }
                walk->age--;
                if (!history_get(history, walk->span, walk->age, &sample, &start_usec) ||
                    start_usec >= finer_begins_usec(history, walk->span))
                        continue;
                *ret_sample = sample;
                *ret_span = walk->span;
                *ret_start_usec = start_usec;
                return true;
        }
}

/* ---- trims ---- */

void history_trimmed(struct mg_history *history, const struct mg_outcome *outcome) {
        history->rounds[history->n_rounds++ % MG_HISTORY_TRIMS] = (struct mg_history_round){
                .ended_sec = cap_u32(outcome->ended_usec / MG_USEC_PER_SEC),
                .before_kib = to_kib(outcome->before_bytes),
                .after_kib = to_kib(outcome->after_bytes),
                .gain_kib = to_kib(outcome_gain(outcome)),
                .expected_kib = to_kib(outcome->expected_bytes),
                .duration_usec = cap_u32(outcome->duration_usec),
                .pause_usec = cap_u32(outcome->pause_usec),
                .result = (uint8_t) outcome_result(outcome),
                .reason = (uint8_t) outcome->reason,
        };
}

bool history_get_trim(
                const struct mg_history *history,
                size_t age,
                struct mg_history_trim *ret_trim) {
        const struct mg_history_round *round;

        if (age >= MG_HISTORY_TRIMS || age >= history->n_rounds)
                return false;
        round = &history->rounds[(history->n_rounds - 1 - age) % MG_HISTORY_TRIMS];
        *ret_trim = (struct mg_history_trim){
                .ended_usec = round->ended_sec * MG_USEC_PER_SEC,
                .before_bytes = from_kib(round->before_kib),
                .after_bytes = from_kib(round->after_kib),
                .gain_bytes = from_kib(round->gain_kib),
                .expected_bytes = from_kib(round->expected_kib),
                .duration_usec = round->duration_usec,
                .pause_usec = round->pause_usec,
                .result = (enum mg_outcome_result) round->result,
                .reason = (enum mg_reason) round->reason,
        };
        return true;
}
