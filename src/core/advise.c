/* SPDX-License-Identifier: MIT */
/*
 * Advice as a list of rules, each of which looks at one thing and may add one piece. The effects
 * claimed are those of six loads measured under seven allocators (2026-11, glibc 2.36, jemalloc 5.3.0, mimalloc 2.0.9 and
 * 3.4.3, gperftools 2.10, 2 CPUs), quoted with each rule. Layer: core; pure.
 */
#include "core/advise.h"

#include "base/text.h"

static const char *const kind_names[] = {
        [MG_ADVICE_NOTHING] = "nothing",
        [MG_ADVICE_ENROLL] = "enroll",
        [MG_ADVICE_MODE_TRIM] = "mode-trim",
        [MG_ADVICE_ARENA_MAX] = "arena-max",
        [MG_ADVICE_MMAP_THRESHOLD] = "mmap-threshold",
        [MG_ADVICE_BACKGROUND_THREAD] = "background-thread",
        [MG_ADVICE_OTHER_ALLOCATOR] = "other-allocator",
        [MG_ADVICE_RESTART] = "restart",
        [MG_ADVICE_MAX_PAUSE] = "max-pause",
        [MG_ADVICE_WATCHDOG] = "watchdog",
        [MG_ADVICE_HUGE_PAGES] = "huge-pages",
        [MG_ADVICE_LOOK_INSIDE] = "look-inside",
        [MG_ADVICE_NOT_MALLOC] = "not-malloc",
};
_Static_assert(MG_ELEMENTS(kind_names) == _MG_ADVICE_KIND_MAX, "a kind of advice has no name");

static const char *const confidence_names[] = {
        [MG_CONFIDENCE_LOW] = "low",
        [MG_CONFIDENCE_MEDIUM] = "medium",
        [MG_CONFIDENCE_HIGH] = "high",
};
_Static_assert(MG_ELEMENTS(confidence_names) == _MG_CONFIDENCE_MAX, "a confidence has no name");

static const char *const allocator_names[] = {
        [MG_ALLOCATOR_GLIBC] = "glibc",
        [MG_ALLOCATOR_JEMALLOC] = "jemalloc",
        [MG_ALLOCATOR_TCMALLOC] = "tcmalloc",
        [MG_ALLOCATOR_MIMALLOC] = "mimalloc",
};

const char *advice_kind_to_string(enum mg_advice_kind kind) {
        return kind_names[kind];
}

const char *confidence_to_string(enum mg_confidence confidence) {
        return confidence_names[confidence];
}

int advice_allocator_from_string(const char *name, size_t length) {
        for (size_t i = MG_ALLOCATOR_GLIBC; i < MG_ELEMENTS(allocator_names); i++)
                if (strlen(allocator_names[i]) == length &&
                    memcmp(allocator_names[i], name, length) == 0)
                        return (int) i;
        return MG_ALLOCATOR_OTHER;
}

/* What the rules look at and fill. */
struct advisor {
        const struct mg_unit_config *config;
        const struct mg_unit_sample *sample;
        const struct mg_policy_state *state;
        const struct mg_decision *decision;
        const struct mg_advice_facts *facts;
        enum mg_verdict verdict;
        struct mg_advice *advice;
        size_t n_advice;
};

static void add(struct advisor *a,
                enum mg_advice_kind kind,
                enum mg_confidence confidence,
                uint64_t gain_bytes,
                uint64_t value) {
        if (a->n_advice < MG_ADVICE_MAX)
                a->advice[a->n_advice++] = (struct mg_advice){
                        .kind = kind,
                        .confidence = confidence,
                        .gain_bytes = gain_bytes,
                        .value = value,
                };
}

static bool is_worth_it(const struct advisor *a, uint64_t bytes) {
        return bytes >= MG_MAX(a->config->min_gain_bytes, MG_MIB);
}

static void advise_growth(struct advisor *a) {
        if (a->verdict == MG_VERDICT_LEAK_SUSPECTED)
                add(a, MG_ADVICE_LOOK_INSIDE, MG_CONFIDENCE_HIGH, 0, 0);
        else if (a->verdict == MG_VERDICT_LIVE_GROWTH)
                add(a, MG_ADVICE_LOOK_INSIDE, MG_CONFIDENCE_MEDIUM, 0, 0);
        else if (a->verdict == MG_VERDICT_NOT_MALLOC)
                add(a, MG_ADVICE_NOT_MALLOC, MG_CONFIDENCE_HIGH, 0, 0);
}

/* What it would have brought was counted with each trim that would have been. */
static void advise_consent(struct advisor *a) {
        const struct mg_policy_state *state = a->state;

        if (a->config->mode == MG_MODE_OBSERVE && state->would_trim > 0)
                add(a, MG_ADVICE_MODE_TRIM, MG_CONFIDENCE_MEDIUM,
                    state->would_trim_bytes / state->would_trim, 0);
}

/* The pause that a trim of the whole unit would need, with a quarter on top. */
static void advise_pause(struct advisor *a) {
        uint64_t longest = 0;
        uint64_t held_bytes = 0;

        for (size_t i = 0; i < a->sample->n_processes; i++) {
                const struct mg_process_sample *process = &a->sample->processes[i];
                uint64_t pause = policy_predict_pause(a->state, process);
                uint64_t reach = account_process_reach(process);

                if (reach == 0 || pause == MG_UNKNOWN || pause <= a->config->max_pause_usec)
                        continue;
                longest = MG_MAX(longest, pause);
                held_bytes = mg_add_cap(held_bytes, reach);
        }
        if (a->state->breaker_open)
                longest = MG_MAX(longest, a->state->last_pause_usec);
        held_bytes = MG_MIN(held_bytes, a->decision->account.freeable_bytes);
        if (a->state->breaker_open || is_worth_it(a, held_bytes))
                add(a, MG_ADVICE_MAX_PAUSE,
                    a->state->trims > 0 ? MG_CONFIDENCE_HIGH : MG_CONFIDENCE_LOW, held_bytes,
                    mg_scale(longest, 5, 4));
        if (a->decision->reason == MG_REASON_WATCHDOG) {
                uint64_t pause = MG_MAX(
                                a->state->last_pause_usec, a->decision->predicted_pause_usec);

                add(a, MG_ADVICE_WATCHDOG, MG_CONFIDENCE_HIGH, a->decision->expected_bytes,
                    mg_scale(pause, 4, 1));
        }
}

static void advise_huge_pages(struct advisor *a) {
        if (a->state->refilled)
                add(a, MG_ADVICE_HUGE_PAGES, MG_CONFIDENCE_HIGH, a->state->last_gain_bytes, 0);
}

/*
 * RSS/live with one arena for each CPU: threads per request 9.4 -> 4.85, and 4.6 -> 1.02 after a trim; drifting LRU 1.51 -> 1.26 after
 * a trim. So about half of what is pinned, and most of what retention adds. No measurable cost on 2 CPUs.
 */
static void advise_arenas(struct advisor *a) {
        const struct mg_account *account = &a->decision->account;
        const struct mg_advice_facts *facts = a->facts;

        if (facts->allocator != MG_ALLOCATOR_GLIBC || facts->tuned || facts->cpus == 0 ||
            facts->arenas == MG_UNKNOWN || facts->arenas <= facts->cpus ||
            !is_worth_it(a, account->retained_bytes / 2))
                return;
        if (a->verdict == MG_VERDICT_RETENTION || a->verdict == MG_VERDICT_PINNED)
                add(a, MG_ADVICE_ARENA_MAX,
                    facts->arenas >= 4 * facts->cpus ? MG_CONFIDENCE_MEDIUM : MG_CONFIDENCE_LOW,
                    account->retained_bytes / 2, facts->cpus);
}

/*
 * Blocks of several MiB that come and go at once: trims bring nothing that lasts, and a fixed threshold gave 1.00 where the dynamic
 * one gave 6.2, at 2.5 times the run time. Only where the free chunks are that large.
 */
static void advise_mmap_threshold(struct advisor *a) {
        const struct mg_account *account = &a->decision->account;
        uint64_t chunks = a->facts->free_chunks;

        if (a->facts->allocator != MG_ALLOCATOR_GLIBC || a->facts->tuned || chunks == 0 ||
            chunks == MG_UNKNOWN || account->retained_bytes / chunks < MG_MIB ||
            a->state->backoff_reason != MG_REASON_REGROWTH || a->state->backoff_usec == 0)
                return;
        if (is_worth_it(a, account->retained_bytes))
                add(a, MG_ADVICE_MMAP_THRESHOLD, MG_CONFIDENCE_LOW, account->retained_bytes,
                    128 * MG_KIB);
}

/* Idle jemalloc never decays by itself; with the threads 128 -> 4 MiB in 11 s. */
static void advise_background_thread(struct advisor *a) {
        const struct mg_account *account = &a->decision->account;

        if (a->facts->allocator == MG_ALLOCATOR_JEMALLOC && !a->facts->background_thread &&
            a->config->jemalloc_background_thread != MG_YES &&
            is_worth_it(a, account->freeable_bytes))
                add(a, MG_ADVICE_BACKGROUND_THREAD, MG_CONFIDENCE_MEDIUM, account->freeable_bytes,
                    0);
}

/* mimalloc 2 and a tcmalloc full of small blocks keep what other threads freed; jemalloc and mimalloc 3 do not. */
static void advise_allocator(struct advisor *a) {
        if (a->decision->reason == MG_REASON_CANNOT_TRIM &&
            is_worth_it(a, a->decision->account.retained_bytes))
                add(a, MG_ADVICE_OTHER_ALLOCATOR, MG_CONFIDENCE_LOW,
                    a->decision->account.retained_bytes / 2, 0);
}

/* Survivors scattered by the free lists: 33-56 times live under every allocator, until the process is a new one. */
static void advise_restart(struct advisor *a) {
        if (a->verdict == MG_VERDICT_PINNED && is_worth_it(a, a->decision->account.pinned_bytes))
                add(a, MG_ADVICE_RESTART, MG_CONFIDENCE_HIGH, a->decision->account.pinned_bytes, 0);
}

size_t advise_unit(
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                const struct mg_policy_state *state,
                const struct mg_decision *decision,
                const struct mg_advice_facts *facts,
                struct mg_advice *advice) {
        struct advisor a = {
                .config = config,
                .sample = sample,
                .state = state,
                .decision = decision,
                .facts = facts,
                .verdict = state->verdict.verdict,
                .advice = advice,
        };

        if (decision->reason == MG_REASON_NO_AGENT) {
                add(&a, MG_ADVICE_ENROLL, MG_CONFIDENCE_LOW, MG_UNKNOWN, 0);
                return a.n_advice;
        }
        advise_growth(&a);
        advise_consent(&a);
        advise_pause(&a);
        advise_huge_pages(&a);
        advise_background_thread(&a);
        advise_arenas(&a);
        advise_mmap_threshold(&a);
        advise_allocator(&a);
        advise_restart(&a);
        if (a.n_advice == 0)
                add(&a, MG_ADVICE_NOTHING,
                    verdict_says_nothing(a.verdict) ? MG_CONFIDENCE_LOW : MG_CONFIDENCE_HIGH, 0, 0);
        return a.n_advice;
}

/* "%b": the gain; "%n" and "%t": the value as a number and as a time. */
static const char *const templates[] = {
        [MG_ADVICE_NOTHING] = "Nothing to change.",
        [MG_ADVICE_ENROLL] =
                        "No process of this unit has an agent, so nothing is known of its heaps: load one "
                        "with \"memguardctl enroll\".",
        [MG_ADVICE_MODE_TRIM] = "Set Mode=trim: each trim would have given back about %b.",
        [MG_ADVICE_ARENA_MAX] =
                        "Set Environment=MALLOC_ARENA_MAX=%n: glibc spreads the heap over far more arenas than "
                        "there are CPUs; about %b less after a restart of the unit.",
        [MG_ADVICE_MMAP_THRESHOLD] =
                        "If memory matters more than speed, set Environment=GLIBC_TUNABLES="
                        "glibc.malloc.mmap_threshold=%n: large blocks then go back at once, about %b; "
                        "programs that churn such blocks took up to 2.5 times as long.",
        [MG_ADVICE_BACKGROUND_THREAD] =
                        "Set JemallocBackgroundThread=yes: an idle jemalloc gives nothing back by itself; "
                        "about %b.",
        [MG_ADVICE_OTHER_ALLOCATOR] =
                        "The allocator in use gives nothing back from outside: with jemalloc or mimalloc 3 about "
                        "%b less.",
        [MG_ADVICE_RESTART] =
                        "Small live blocks hold the pages around them, and no allocator can move them: a restart at a "
                        "quiet time gives back about %b.",
        [MG_ADVICE_MAX_PAUSE] =
                        "MaxPause= holds trims back: MaxPause=%t would allow them, for about %b. A thread that "
                        "allocates may then wait as long.",
        [MG_ADVICE_WATCHDOG] =
                        "WatchdogSec= is too short for a trim: from WatchdogSec=%t on it would be made, for about %b.",
        [MG_ADVICE_HUGE_PAGES] =
                        "Transparent huge pages fill up what trims empty, about %b each time: use madvise "
                        "instead of always for this unit.",
        [MG_ADVICE_LOOK_INSIDE] =
                        "The program itself holds more and more: no allocator setting and no trim changes that. Look "
                        "at its caches and for what it never frees.",
        [MG_ADVICE_NOT_MALLOC] =
                        "What grows is outside the heaps that malloc serves: look at its garbage collector, stacks or "
                        "mappings.",
};
_Static_assert(MG_ELEMENTS(templates) == _MG_ADVICE_KIND_MAX, "a kind of advice has no text");

const char *advise_text(const struct mg_advice *advice, char *buffer) {
        struct mg_text text;

        text_init(&text, buffer, MG_ADVICE_TEXT_MAX);
        for (const char *at = templates[advice->kind]; *at; at++) {
                if (*at != '%') {
                        text_put_char(&text, *at);
                        continue;
                }
                at++;
                if (*at == 'b')
                        text_put_size(&text, advice->gain_bytes);
                else if (*at == 'n')
                        text_put_u64(&text, advice->value);
                else
                        text_put_duration(&text, advice->value);
        }
        return buffer;
}
