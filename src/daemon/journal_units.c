/* SPDX-License-Identifier: MIT */
/* What the journal says of units and their agents. Layer: daemon. */
#include <errno.h>
#include <inttypes.h>

#include "daemon/journal.h"
#include "daemon/journal_entry.h"

static void put_pid(struct mg_record *record, pid_t pid) {
        if (pid > 0)
                record_u64(record, "MEMGUARD_PID", (uint64_t) pid);
}

static void say_process(struct mg_record *record, pid_t pid, const char *command) {
        if (pid > 0)
                record_say(record, "%s[%d]: ", command ? command : "process", (int) pid);
}

/* ---- agents ---- */

void journal_allocators(const struct mg_journal_allocators *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_ALLOCATORS, event->again ? LOG_DEBUG : LOG_INFO))
                return;
        entry_unit(&record, &event->unit);
        put_pid(&record, event->pid);
        record_string(&record, "MEMGUARD_COMMAND", event->command);
        record_string(&record, "MEMGUARD_AGENT_VERSION", event->agent_version);
        say_process(&record, event->pid, event->command);
        record_say(&record, "%s", event->text);
        entry_end(&record);
}

void journal_agent_problem(const struct mg_journal_agent_problem *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_AGENT_PROBLEM, LOG_WARNING))
                return;
        entry_unit(&record, &event->unit);
        put_pid(&record, event->pid);
        record_string(&record, "MEMGUARD_COMMAND", event->command);
        say_process(&record, event->pid, event->command);
        record_say(&record, "%s %s", event->who ?: "the agent", event->problem);
        entry_end(&record);
}

void journal_statistics_large(const struct mg_journal_statistics_large *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_STATISTICS_LARGE, LOG_NOTICE))
                return;
        entry_unit(&record, &event->unit);
        put_pid(&record, event->pid);
        record_u64(&record, "MEMGUARD_ANON_BYTES", event->rss_anon_bytes);
        record_u64(&record, "MEMGUARD_COST_USEC", event->cost_usec);
        say_process(&record, event->pid, event->command);
        record_say(&record, "first met with a heap of ");
        record_say_size(&record, event->rss_anon_bytes);
        record_say(&record, ": asked for statistics once, which took ");
        record_say_duration(&record, event->cost_usec);
        entry_end(&record);
}

/* ---- trims ---- */

static void put_outcome(struct mg_record *record, const struct mg_journal_trim *event) {
        const struct mg_outcome *outcome = event->outcome;

        put_pid(record, event->pid);
        record_string(record, "MEMGUARD_REASON", reason_to_string(outcome->reason));
        record_u64(record, "MEMGUARD_RETAINED_BYTES", event->retained_bytes);
        record_u64(record, "MEMGUARD_BEFORE_BYTES", outcome->before_bytes);
        record_u64(record, "MEMGUARD_AFTER_BYTES", outcome->after_bytes);
        record_u64(record, "MEMGUARD_EXPECTED_BYTES", outcome->expected_bytes);
        record_u64(record, "MEMGUARD_PAUSE_USEC", outcome->pause_usec);
        record_u64(record, "MEMGUARD_MINOR_FAULTS", outcome->minor_faults);
        record_u64(record, "MEMGUARD_PROCESSES_ASKED", outcome->n_asked);
        record_u64(record, "MEMGUARD_PROCESSES_ANSWERED", outcome->n_answered);
        record_u64(record, "TRIMMED_BYTES", outcome_gain(outcome));
        record_u64(record, "TRIMMED_USEC", outcome->duration_usec);
}

static void say_outcome(struct mg_record *record, const struct mg_outcome *outcome) {
        record_say(record, "trimmed ");
        record_say_size(record, outcome_gain(outcome));
        record_say(record, " of ");
        record_say_size(record, outcome->expected_bytes);
        record_say(record, ": anon ");
        record_say_size(record, outcome->before_bytes);
        record_say(record, " -> ");
        record_say_size(record, outcome->after_bytes);
        record_say(record, ", worst pause ");
        record_say_duration(record, outcome->pause_usec);
        if (outcome->n_answered < outcome->n_asked)
                record_say(record, ", %" PRIu32 " of %" PRIu32 " processes did not answer",
                           outcome->n_asked - outcome->n_answered, outcome->n_asked);
        if (outcome->n_refused > 0)
                record_say(record, ", %" PRIu32 " of %" PRIu32 " processes refused",
                           outcome->n_refused, outcome->n_asked);
        if (outcome->by_hand)
                record_say(record, " (by hand)");
}

static void journal_trim_failed(const struct mg_journal_trim *event) {
        struct mg_record record;
        bool refused = event->outcome->n_refused > 0;

        if (!entry_begin(&record, MG_EVENT_TRIM_FAILED, LOG_WARNING))
                return;
        entry_unit(&record, &event->unit);
        put_outcome(&record, event);
        record_say(&record, "nothing trimmed: of %" PRIu32 " processes asked none %s",
                   event->outcome->n_asked, refused ? "could or would" : "answered");
        entry_end(&record);
}

void journal_trim(const struct mg_journal_trim *event) {
        const struct mg_outcome *outcome = event->outcome;
        struct mg_record record;

        if (outcome->n_answered == 0 || outcome->n_refused >= outcome->n_answered) {
                journal_trim_failed(event);
                return;
        }
        if (!entry_begin(&record, MG_EVENT_TRIM, LOG_INFO))
                return;
        entry_unit(&record, &event->unit);
        put_outcome(&record, event);
        say_outcome(&record, outcome);
        entry_end(&record);
}

/* ---- decisions ---- */

static void put_account(struct mg_record *record, const struct mg_account *account) {
        record_u64(record, "MEMGUARD_ANON_BYTES", account->anon_bytes);
        if (!account->known)
                return;
        record_u64(record, "MEMGUARD_LIVE_BYTES", account->live_bytes);
        record_u64(record, "MEMGUARD_RETAINED_BYTES", account->retained_bytes);
        record_u64(record, "MEMGUARD_FREEABLE_BYTES", account->freeable_bytes);
        record_u64(record, "MEMGUARD_PINNED_BYTES", account->pinned_bytes);
        record_u64(record, "MEMGUARD_OTHER_BYTES", account->other_bytes);
}

static void say_account(struct mg_record *record, const struct mg_account *account) {
        record_say(record, "anon ");
        record_say_size(record, account->anon_bytes);
        if (!account->known)
                return;
        record_say(record, ", live ");
        record_say_size(record, account->live_bytes);
        record_say(record, ", freeable ");
        record_say_size(record, account->freeable_bytes);
        record_say(record, ", pinned ");
        record_say_size(record, account->pinned_bytes);
        record_say(record, ", other ");
        record_say_size(record, account->other_bytes);
}

void journal_hold(const struct mg_journal_hold *event) {
        const struct mg_decision *decision = event->decision;
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_HOLD, LOG_DEBUG))
                return;
        entry_unit(&record, &event->unit);
        record_string(&record, "MEMGUARD_REASON", reason_to_string(decision->reason));
        record_u64(&record, "MEMGUARD_TRIM_ABOVE_BYTES", decision->trim_above_bytes);
        put_account(&record, &decision->account);
        record_say(&record, "held: %s (", reason_describe(decision->reason));
        say_account(&record, &decision->account);
        if (decision->hold_until_usec > event->now_usec) {
                record_say(&record, ", for another ");
                record_say_duration(&record, decision->hold_until_usec - event->now_usec);
        }
        record_say(&record, ")");
        entry_end(&record);
}

void journal_verdict(const struct mg_journal_verdict *event) {
        bool leak = event->after == MG_VERDICT_LEAK_SUSPECTED;
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_VERDICT, leak ? LOG_WARNING : LOG_INFO))
                return;
        entry_unit(&record, &event->unit);
        record_string(&record, "MEMGUARD_VERDICT", verdict_to_string(event->after));
        record_string(&record, "MEMGUARD_VERDICT_BEFORE", verdict_to_string(event->before));
        put_account(&record, event->account);
        record_say(&record, "verdict %s (was %s): ", verdict_to_string(event->after),
                   verdict_to_string(event->before));
        say_account(&record, event->account);
        if (event->slope) {
                record_i64(&record, "MEMGUARD_SLOPE_BYTES_PER_HOUR", event->slope->bytes_per_hour);
                entry_say_slope(&record, event->slope->bytes_per_hour);
        }
        entry_end(&record);
}

void journal_mode(const struct mg_journal_mode *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_MODE, LOG_INFO))
                return;
        entry_unit(&record, &event->unit);
        record_string(&record, "MEMGUARD_MODE", mode_to_string(event->after));
        record_string(&record, "MEMGUARD_MODE_BEFORE", mode_to_string(event->before));
        record_string(&record, "MEMGUARD_CONFIG_FILE", event->file);
        record_say(&record, "mode %s (was %s), ", mode_to_string(event->after),
                   mode_to_string(event->before));
        if (event->file)
                record_say(&record, "set at %s:%u", event->file, event->line);
        else
                record_say(&record, "by default");
        entry_end(&record);
}

void journal_breaker(const struct mg_journal_breaker *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_BREAKER, LOG_WARNING))
                return;
        entry_unit(&record, &event->unit);
        put_pid(&record, event->pid);
        record_string(&record, "MEMGUARD_REASON", reason_to_string(MG_REASON_BREAKER));
        record_u64(&record, "MEMGUARD_PAUSE_USEC", event->pause_usec);
        record_u64(&record, "MEMGUARD_MAX_PAUSE_USEC", event->max_pause_usec);
        record_say(&record, "a trim may have held a thread up for ");
        record_say_duration(&record, event->pause_usec);
        record_say(&record, ", MaxPause= is ");
        record_say_duration(&record, event->max_pause_usec);
        record_say(&record, ": only observed from now on, until 'memguardctl resume %s'",
                   event->unit.name);
        entry_end(&record);
}

static const char *const backoff_texts[_MG_REASON_MAX] = {
        [MG_REASON_PINNED] = "the rest is pinned by blocks in use",
        [MG_REASON_REGROWTH] = "the program soon took again what it gave back",
        [MG_REASON_REFILLED] = "huge pages filled the heap again",
        [MG_REASON_UNREACHABLE] = "the agents do not answer",
};

void journal_pinned(const struct mg_journal_pinned *event) {
        const char *text = backoff_texts[event->reason];
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_PINNED, LOG_INFO))
                return;
        entry_unit(&record, &event->unit);
        record_string(&record, "MEMGUARD_REASON", reason_to_string(event->reason));
        record_u64(&record, "TRIMMED_BYTES", event->gain_bytes);
        record_u64(&record, "MEMGUARD_EXPECTED_BYTES", event->expected_bytes);
        record_u64(&record, "MEMGUARD_BACKOFF_USEC", event->backoff_usec);
        record_say_size(&record, event->gain_bytes);
        record_say(&record, " of ");
        record_say_size(&record, event->expected_bytes);
        record_say(&record, " came back, %s; next attempt in ",
                   text ? text : reason_describe(event->reason));
        record_say_duration(&record, event->backoff_usec);
        record_say(&record, " at the earliest");
        entry_end(&record);
}

void journal_summary(const struct mg_journal_summary *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_SUMMARY, LOG_INFO))
                return;
        entry_unit(&record, &event->unit);
        record_string(&record, "MEMGUARD_MODE", mode_to_string(event->mode));
        record_string(&record, "MEMGUARD_VERDICT", verdict_to_string(event->verdict));
        record_u64(&record, "MEMGUARD_COUNT", event->trims);
        record_u64(&record, "MEMGUARD_ANON_BYTES", event->anon_bytes);
        record_u64(&record, "MEMGUARD_LIVE_BYTES", event->live_bytes);
        record_u64(&record, "TRIMMED_BYTES", event->trimmed_bytes);
        record_say(&record, "last day: ");
        entry_say_count(&record, event->trims, "trim");
        record_say(&record, " gave back ");
        record_say_size(&record, event->trimmed_bytes);
        if (event->trims > 0) {
                record_say(&record, " (longest pause ");
                record_say_duration(&record, event->pause_usec);
                record_say(&record, ")");
        }
        if (event->would_trim > 0) {
                record_say(&record, ", would have trimmed ");
                entry_say_count(&record, event->would_trim, "time");
        }
        record_say(&record, ", verdict %s, anon ", verdict_to_string(event->verdict));
        record_say_size(&record, event->anon_bytes);
        record_say(&record, ", live ");
        record_say_size(&record, event->live_bytes);
        if (event->slope_known)
                entry_say_slope(&record, event->slope_bytes_per_hour);
        entry_end(&record);
}

/* ---- pressure ---- */

void journal_pressure(const struct mg_journal_pressure *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_PRESSURE, LOG_INFO))
                return;
        entry_unit(&record, &event->unit);
        record_string(&record, "MEMGUARD_REASON", reason_to_string(MG_REASON_PRESSURE));
        record_u64(&record, "MEMGUARD_FREEABLE_BYTES", event->freeable_bytes);
        record_say(&record, "memory pressure (%s): ", event->origin);
        record_say_size(&record, event->freeable_bytes);
        record_say(&record, " are freeable and due now");
        entry_end(&record);
}

void journal_live_over_limit(const struct mg_journal_live_over_limit *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_LIVE_OVER_LIMIT, LOG_WARNING))
                return;
        entry_unit(&record, &event->unit);
        record_u64(&record, "MEMGUARD_ANON_BYTES", event->anon_bytes);
        record_u64(&record, "MEMGUARD_LIVE_BYTES", event->live_bytes);
        record_u64(&record, "MEMGUARD_HIGH_BYTES", event->high_bytes);
        record_say(&record, "MemoryHigh= is ");
        record_say_size(&record, event->high_bytes);
        record_say(&record, " and the program itself holds ");
        record_say_size(&record, event->live_bytes);
        record_say(&record, " of ");
        record_say_size(&record, event->anon_bytes);
        record_say(&record, ": no trim can bring it below");
        entry_end(&record);
}

/* Both are footprints: what is swapped out meanwhile is no gain. */
void journal_clients_told(const struct mg_journal_clients_told *event) {
        bool known = event->before_bytes != MG_UNKNOWN && event->after_bytes != MG_UNKNOWN;
        uint64_t gain = known ? mg_sub_floor(event->before_bytes, event->after_bytes) : 0;
        bool worth_it = event->cause == MG_PRESSURE_BY_HAND || gain >= event->min_gain_bytes;
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_CLIENTS_TOLD, worth_it ? LOG_INFO : LOG_DEBUG))
                return;
        entry_unit(&record, &event->unit);
        record_string(&record, "MEMGUARD_REASON", pressure_cause_to_string(event->cause));
        record_u64(&record, "MEMGUARD_BEFORE_BYTES", event->before_bytes);
        record_u64(&record, "MEMGUARD_AFTER_BYTES", event->after_bytes);
        record_say(&record,
                   "told of memory pressure (%s): ", pressure_cause_to_string(event->cause));
        entry_say_count(&record, event->clients, "client");
        record_say(&record, ", anon and swap ");
        record_say_size(&record, event->before_bytes);
        record_say(&record, " -> ");
        record_say_size(&record, event->after_bytes);
        entry_end(&record);
}
