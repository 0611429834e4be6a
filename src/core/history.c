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

static const struct mg_history_slot empty_slot = {
        MG_HISTORY_UNKNOWN,
        MG_HISTORY_UNKNOWN,
        MG_HISTORY_UNKNOWN,
        0,
};

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

static uint32_t to_kib(uint64_t bytes) {
        if (bytes == MG_UNKNOWN)
                return MG_HISTORY_UNKNOWN;
        return (uint32_t) MG_MIN(bytes / MG_KIB, (uint64_t) MG_HISTORY_UNKNOWN - 1);
}

void history_add(
                struct mg_history *history,
                uint64_t anon_bytes,
                uint64_t live_bytes,
                uint64_t retained_bytes,
                uint64_t now_usec) {
        for (int span = 0; span < _MG_HISTORY_SPAN_MAX; span++) {
                struct mg_history_slot *slot = advance(history, span, now_usec);

                if (!slot || to_kib(anon_bytes) >= slot->anon_kib)
                        continue;
                slot->anon_kib = to_kib(anon_bytes);
                slot->live_kib = to_kib(live_bytes);
                slot->retained_kib = to_kib(retained_bytes);
        }
        history->started = true;
}

void history_trimmed(struct mg_history *history, uint64_t gain_bytes, uint64_t now_usec) {
        for (int span = 0; span < _MG_HISTORY_SPAN_MAX; span++) {
                struct mg_history_slot *slot = advance(history, span, now_usec);

                if (slot)
                        slot->trimmed_kib = to_kib(
                                        mg_add_cap(slot->trimmed_kib * MG_KIB,
                                                   MG_MIN(gain_bytes, MG_UNKNOWN - 1)));
        }
        history->started = true;
}

bool history_get(
                const struct mg_history *history,
                enum mg_history_span span,
                size_t age,
                struct mg_history_slot *ret_slot,
                uint64_t *ret_start_usec) {
        uint64_t number;

        if (!history->started || age >= spans[span].slots || age > history->latest[span])
                return false;
        number = history->latest[span] - age;
        *ret_slot = ring_of_const(history, span)[number % spans[span].slots];
        *ret_start_usec = number * spans[span].step_usec;
        return ret_slot->anon_kib != MG_HISTORY_UNKNOWN || ret_slot->trimmed_kib > 0;
}
