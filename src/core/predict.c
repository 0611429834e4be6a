/* SPDX-License-Identifier: MIT */
/*
 * How long another thread could have to wait for a trim, and learning that from what was measured. Layer: core; pure.
 *
 * glibc holds an arena's lock while it walks and returns that arena's free pages; the cost has two terms, bytes given
 * back and chunks that need a madvise() of their own. A sliced allocator pauses for one slice.
 */
#include "base/duty.h"
#include "core/learn.h"

/*
 * Rates for a unit never trimmed before. 2026-11, 2 cores, glibc 2.36, malloc_trim(0) after freeing 1 GiB that had
 * coalesced into one chunk: 60-68 ms on a quiet machine, up to 110 ms beside a compiler; arena tops 20-37 ms for 500 MiB.
 */
#define GENERIC_USEC_PER_GIB UINT64_C(64000)

/*
 * 100,000 free chunks of 10-15 KB in one arena: 370 ms, one madvise() each. With other threads running each
 * interrupts their cores as well (28 us), which is why the rate is learned per unit.
 */
#define GENERIC_USEC_PER_MILLION_CHUNKS UINT64_C(4000000)

/* jemalloc's purge of 1 GiB stalled others up to 96 ms, tcmalloc's release 79 ms. */
#define GENERIC_SLICED_USEC_PER_GIB UINT64_C(96000)

/* The agent releases at most so much between two looks at its deadline, unless an arena is larger. */
#define SLICE_BYTES (64 * MG_MIB)

/* Waking the agent and the empty call: keeps a prediction from being 0. */
#define CALL_USEC UINT64_C(500)

/* One overrun by chance may not make a unit untouchable, nor one lucky call make it look free. */
#define RATE_FACTOR_MAX UINT64_C(64)
#define RATE_FLOOR_PART UINT64_C(16)

#define MILLION   UINT64_C(1000000)
#define PAGE_SIZE (4 * MG_KIB)

struct rates {
        uint64_t usec_per_gib;
        uint64_t usec_per_million_chunks;
};

static struct rates generic_rates(bool sliced) {
        return (struct rates){
                .usec_per_gib = sliced ? GENERIC_SLICED_USEC_PER_GIB : GENERIC_USEC_PER_GIB,
                .usec_per_million_chunks = GENERIC_USEC_PER_MILLION_CHUNKS,
        };
}

static struct rates rates_of(const struct mg_policy_state *state, bool sliced) {
        struct rates rates = generic_rates(sliced);

        if (state->pause_usec_per_gib != MG_UNKNOWN)
                rates.usec_per_gib = state->pause_usec_per_gib;
        if (state->pause_usec_per_million_chunks != MG_UNKNOWN)
                rates.usec_per_million_chunks = state->pause_usec_per_million_chunks;
        return rates;
}

/*
 * The free chunks that hold a whole page, which alone cost a madvise(). Only their number and the bytes
 * retained are known: chunks smaller than a page on average have none (a million of them take 1-2 ms), those of two pages
 * and more have one each, and in between the share rises evenly.
 */
static uint64_t dear_chunks(uint64_t retained_bytes, uint64_t chunks) {
        uint64_t mean;

        if (chunks == 0 || chunks == MG_UNKNOWN)
                return 0;
        mean = retained_bytes / chunks;
        if (mean <= PAGE_SIZE)
                return 0;
        return mg_scale(chunks, MG_MIN(mean - PAGE_SIZE, PAGE_SIZE), PAGE_SIZE);
}

static uint64_t known_arenas(const struct mg_process_sample *process) {
        return process->arenas == 0 || process->arenas == MG_UNKNOWN ? 1 : process->arenas;
}

/* An arena is the largest slice of an allocator that is purged arena by arena. */
static uint64_t slice_of(const struct mg_process_sample *process, uint64_t retained_bytes) {
        uint64_t slice = SLICE_BYTES;

        if (process->arenas != 0 && process->arenas != MG_UNKNOWN)
                slice = MG_MAX(slice, retained_bytes / process->arenas);
        return MG_MIN(slice, retained_bytes);
}

uint64_t policy_predict_pause(
                const struct mg_policy_state *state,
                const struct mg_process_sample *process) {
        struct rates rates = rates_of(state, process->sliced);
        uint64_t retained = account_process_retained(process);
        uint64_t bytes_usec;
        uint64_t chunks_usec;

        if (retained == MG_UNKNOWN)
                return MG_UNKNOWN;
        if (process->sliced)
                return mg_add_cap(
                                CALL_USEC,
                                mg_scale(slice_of(process, retained), rates.usec_per_gib, MG_GIB));
        bytes_usec = mg_scale(retained, rates.usec_per_gib, MG_GIB);
        chunks_usec =
                        mg_scale(dear_chunks(retained, process->free_chunks),
                                 rates.usec_per_million_chunks, MILLION);
        return mg_add_cap(CALL_USEC, mg_add_cap(bytes_usec, chunks_usec) / known_arenas(process));
}

/* Up at once, down by half the way: a pause predicted too short hurts, one too long only waits. */
static uint64_t adjust_rate(uint64_t rate, uint64_t generic, const struct mg_outcome *outcome) {
        uint64_t measured = mg_scale(rate, outcome->pause_usec, outcome->predicted_pause_usec);
        uint64_t adjusted = measured > rate ? measured : rate - (rate - measured) / 2;

        adjusted = MG_MIN(adjusted, generic * RATE_FACTOR_MAX);
        return MG_MAX(adjusted, generic / RATE_FLOOR_PART);
}

void learn_rates(struct mg_policy_state *state, const struct mg_outcome *outcome) {
        struct rates generic = generic_rates(outcome->sliced);
        struct rates rates = rates_of(state, outcome->sliced);
        uint64_t bytes_usec;
        uint64_t chunks_usec = 0;

        if (outcome->predicted_pause_usec == 0 || outcome->predicted_pause_usec == MG_UNKNOWN)
                return;
        /* One measurement cannot tell two terms apart: it is put down to the larger one. */
        bytes_usec = mg_scale(outcome->asked_bytes, rates.usec_per_gib, MG_GIB);
        if (!outcome->sliced)
                chunks_usec =
                                mg_scale(dear_chunks(outcome->asked_bytes, outcome->free_chunks),
                                         rates.usec_per_million_chunks, MILLION);
        if (chunks_usec > bytes_usec)
                state->pause_usec_per_million_chunks =
                                adjust_rate(rates.usec_per_million_chunks,
                                            generic.usec_per_million_chunks, outcome);
        else
                state->pause_usec_per_gib =
                                adjust_rate(rates.usec_per_gib, generic.usec_per_gib, outcome);
}

static void relax(uint64_t *rate, uint64_t generic) {
        if (*rate != MG_UNKNOWN && *rate > generic)
                *rate = generic + (*rate - generic) / 2;
}

/* A rate that one slow call has taught would hold the next round back, and so never be corrected. */
void learn_relax_rates(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                uint64_t now_usec) {
        if (state->rates_at_usec == MG_UNKNOWN)
                state->rates_at_usec = now_usec; /* they are from before a restart */
        if (mg_sub_floor(now_usec, state->rates_at_usec) <
            MG_MAX(config->cooldown_max_usec, (uint64_t) 1))
                return;
        state->rates_at_usec = now_usec;
        relax(&state->pause_usec_per_gib, GENERIC_SLICED_USEC_PER_GIB);
        relax(&state->pause_usec_per_million_chunks, GENERIC_USEC_PER_MILLION_CHUNKS);
}

void policy_learn_statistics(
                struct mg_policy_state *state,
                uint64_t cost_usec,
                uint64_t rss_bytes) {
        uint64_t predicted = policy_predict_statistics(state, rss_bytes);

        if (cost_usec == MG_UNKNOWN || rss_bytes == MG_UNKNOWN)
                return;
        /* The dearest is kept, and gives way slowly: a cheap child says nothing about its parent. */
        if (predicted != MG_UNKNOWN && cost_usec < predicted)
                cost_usec = predicted - (predicted - cost_usec) / 8;
        state->statistics_usec = cost_usec;
        state->statistics_bytes = rss_bytes;
}

uint64_t policy_predict_statistics(const struct mg_policy_state *state, uint64_t rss_bytes) {
        if (state->statistics_usec == MG_UNKNOWN || rss_bytes == MG_UNKNOWN)
                return MG_UNKNOWN;
        return duty_predict_usec(state->statistics_usec, state->statistics_bytes, rss_bytes);
}
