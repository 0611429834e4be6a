/* SPDX-License-Identifier: MIT */
/* The journal's levels and rates, and what is said of the daemon and the host. Layer: daemon. */
#include "daemon/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/journal_entry.h"
#include "daemon/message_ids.h"
#include "host/clock.h"

/*
 * How often a kind may speak in a minute. A host of 300 units that all do the same at once (a reboot, a reload) still
 * gets each kind's lines; a unit that restarts five times a second does not fill the disk.
 */
static const struct event_kind {
        const char *name;
        const char *message_id;
        uint32_t per_minute;
} kinds[] = {
        [MG_EVENT_PLAIN] = { "plain", NULL, 120 },
        [MG_EVENT_START] = { "start", MG_MESSAGE_START, 10 },
        [MG_EVENT_STOP] = { "stop", MG_MESSAGE_STOP, 10 },
        [MG_EVENT_AGENTS] = { "agents", MG_MESSAGE_AGENTS, 12 },
        [MG_EVENT_ALLOCATORS] = { "allocators", MG_MESSAGE_ALLOCATORS, 300 },
        [MG_EVENT_AGENT_PROBLEM] = { "agent-problem", MG_MESSAGE_AGENT_PROBLEM, 30 },
        [MG_EVENT_TRIM] = { "trim", MG_MESSAGE_TRIM, 300 },
        [MG_EVENT_TRIM_FAILED] = { "trim-failed", MG_MESSAGE_TRIM_FAILED, 60 },
        [MG_EVENT_HOLD] = { "hold", MG_MESSAGE_HOLD, 6000 },
        [MG_EVENT_VERDICT] = { "verdict", MG_MESSAGE_VERDICT, 300 },
        [MG_EVENT_MODE] = { "mode", MG_MESSAGE_MODE, 300 },
        [MG_EVENT_BREAKER] = { "breaker", MG_MESSAGE_BREAKER, 60 },
        [MG_EVENT_PINNED] = { "pinned", MG_MESSAGE_PINNED, 60 },
        [MG_EVENT_CONFIG_LOADED] = { "config-loaded", MG_MESSAGE_CONFIG_LOADED, 12 },
        [MG_EVENT_CONFIG_REJECTED] = { "config-rejected", MG_MESSAGE_CONFIG_REJECTED, 12 },
        [MG_EVENT_CONFIG_WARNING] = { "config-warning", MG_MESSAGE_CONFIG_WARNING, 60 },
        [MG_EVENT_SUMMARY] = { "summary", MG_MESSAGE_SUMMARY, 600 },
        [MG_EVENT_NO_PRESSURE] = { "no-pressure", MG_MESSAGE_NO_PRESSURE, 2 },
        [MG_EVENT_PRESSURE] = { "pressure", MG_MESSAGE_PRESSURE, 12 },
        [MG_EVENT_LIVE_OVER_LIMIT] = { "live-over-limit", MG_MESSAGE_LIVE_OVER_LIMIT, 30 },
        [MG_EVENT_CLIENTS_TOLD] = { "clients-told", MG_MESSAGE_CLIENTS_TOLD, 30 },
        [MG_EVENT_PAUSED] = { "paused", MG_MESSAGE_PAUSED, 60 },
        [MG_EVENT_RESUMED] = { "resumed", MG_MESSAGE_RESUMED, 60 },
        [MG_EVENT_STATISTICS_LARGE] = { "statistics-large", MG_MESSAGE_STATISTICS_LARGE, 60 },
        [MG_EVENT_STATE_IGNORED] = { "state-ignored", MG_MESSAGE_STATE_IGNORED, 12 },
        [MG_EVENT_SOURCE] = { "source", MG_MESSAGE_SOURCE, 30 },
        [MG_EVENT_SUPPRESSED] = { "suppressed", MG_MESSAGE_SUPPRESSED, 60 },
};
_Static_assert(MG_ELEMENTS(kinds) == _MG_EVENT_MAX, "a kind of event without a row");

static struct {
        struct mg_sink sink;
        int level;
        struct mg_event_rate rates[_MG_EVENT_MAX];
} journal = {
        .sink = {
                .socket_fd = -EBADF,
                .stderr_fd = 2,
                .target = MG_LOG_TARGET_CONSOLE,
                .identifier = "memguardd",
        },
        .level = LOG_WARNING,
};

void journal_open(int level) {
        sink_init(&journal.sink, "memguardd");
        journal.level = level;
}

void journal_close(void) {
        sink_done(&journal.sink);
}

void journal_set_level(int level) {
        journal.level = level;
}

int journal_level(void) {
        return journal.level;
}

struct mg_sink *journal_sink(void) {
        return &journal.sink;
}

/* ---- admission ---- */

bool event_rate_admit(struct mg_event_rate *rate, uint32_t per_minute, uint64_t now_usec) {
        if (now_usec - rate->window_usec >= MG_USEC_PER_MIN) {
                rate->window_usec = now_usec;
                rate->count = 0;
        }
        if (rate->count >= per_minute) {
                rate->suppressed++;
                return false;
        }
        rate->count++;
        return true;
}

uint64_t event_rate_take_suppressed(struct mg_event_rate *rate, uint64_t now_usec) {
        if (rate->suppressed == 0 || now_usec - rate->window_usec < MG_USEC_PER_MIN)
                return 0;
        return MG_TAKE_AS(rate->suppressed, 0);
}

static void tell_suppressed(struct mg_record *record, uint64_t now_usec) {
        for (size_t i = 0; i < MG_ELEMENTS(kinds); i++) {
                uint64_t suppressed = event_rate_take_suppressed(&journal.rates[i], now_usec);

                if (suppressed == 0)
                        continue;
                record_init(record, LOG_NOTICE, MG_MESSAGE_SUPPRESSED);
                record_string(record, "MEMGUARD_EVENT", kinds[i].name);
                record_u64(record, "MEMGUARD_COUNT", suppressed);
                record_say(record,
                           "%" PRIu64 " more messages of kind '%s' were left out (at most %" PRIu32
                           " a minute)",
                           suppressed, kinds[i].name, kinds[i].per_minute);
                entry_end(record);
        }
}

bool entry_begin(struct mg_record *record, enum mg_event event, int level) {
        uint64_t now_usec;

        if (!journal_wants(level))
                return false;
        now_usec = clock_now_usec();
        if (journal_wants(LOG_NOTICE))
                tell_suppressed(record, now_usec);
        if (!event_rate_admit(&journal.rates[event], kinds[event].per_minute, now_usec))
                return false;
        record_init(record, level, kinds[event].message_id);
        return true;
}

void entry_end(struct mg_record *record) {
        sink_send(&journal.sink, record);
}

static bool is_systemd_unit(const char *name) {
        const char *suffix = strrchr(name, '.');

        return suffix && (mg_streq(suffix, ".service") || mg_streq(suffix, ".scope"));
}

void entry_unit(struct mg_record *record, const struct mg_journal_unit *unit) {
        if (!unit || !unit->name)
                return;
        record_string(record, "MEMGUARD_UNIT", unit->name);
        if (is_systemd_unit(unit->name))
                record_string(record,
                              unit->user ? "OBJECT_SYSTEMD_USER_UNIT" : "OBJECT_SYSTEMD_UNIT",
                              unit->name);
        record_say(record, "%s: ", unit->name);
}

void entry_say_count(struct mg_record *record, uint64_t count, const char *noun) {
        record_say(record, "%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
}

void entry_say_slope(struct mg_record *record, int64_t bytes_per_hour) {
        bool falling = bytes_per_hour < 0;

        record_say(record, ", slope %s", falling ? "-" : "+");
        record_say_size(record, falling ? -(uint64_t) bytes_per_hour : (uint64_t) bytes_per_hour);
        record_say(record, "/h");
}

/* ---- plain entries ---- */

void journal_log(int level, const struct mg_journal_unit *unit, const char *format, ...) {
        struct mg_record record;
        va_list arguments;

        if (!entry_begin(&record, MG_EVENT_PLAIN, level))
                return;
        entry_unit(&record, unit);
        va_start(arguments, format);
        record_say_va(&record, format, arguments);
        va_end(arguments);
        entry_end(&record);
}

int journal_errno(
                int level,
                int error,
                const struct mg_journal_unit *unit,
                const char *format,
                ...) {
        struct mg_record record;
        va_list arguments;

        if (!entry_begin(&record, MG_EVENT_PLAIN, level))
                return error;
        entry_unit(&record, unit);
        record_i64(&record, "ERRNO", -(int64_t) error);
        va_start(arguments, format);
        record_say_va(&record, format, arguments);
        va_end(arguments);
        record_say(&record, ": %s", strerror(-error));
        entry_end(&record);
        return error;
}

/* ---- the daemon ---- */

void journal_start(const struct mg_journal_start *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_START, LOG_INFO))
                return;
        record_string(&record, "MEMGUARD_VERSION", MG_VERSION);
        record_string(&record, "MEMGUARD_HIERARCHY", event->hierarchy);
        record_string(&record, "MEMGUARD_SOURCE", event->source);
        record_string(&record, "MEMGUARD_ALLOCATOR", event->allocator);
        record_u64(&record, "MEMGUARD_UNITS", event->units);
        record_u64(&record, "MEMGUARD_AGENTS", event->agents);
        record_say(&record,
                   "memguard " MG_VERSION
                   ": cgroup hierarchy %s, source %s, allocator %s, PSI %s, ",
                   event->hierarchy, event->source, event->allocator, event->psi ? "on" : "off");
        entry_say_count(&record, event->units, "unit");
        record_say(&record, ", ");
        entry_say_count(&record, event->agents, "agent");
        record_say(&record, ", configuration %s", event->config ? event->config : "by default");
        if (event->paused)
                record_say(&record, ", paused: nothing will be trimmed");
        entry_end(&record);
}

void journal_stop(const struct mg_journal_stop *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_STOP, LOG_INFO))
                return;
        record_u64(&record, "TRIMMED_BYTES", event->trimmed_bytes);
        record_u64(&record, "MEMGUARD_COUNT", event->trims);
        record_say(&record, "memguard stops after ");
        record_say_duration(&record, event->uptime_usec);
        record_say(&record, ": ");
        entry_say_count(&record, event->trims, "trim");
        record_say(&record, ", ");
        record_say_size(&record, event->trimmed_bytes);
        record_say(&record, " given back");
        entry_end(&record);
}

void journal_agents(const struct mg_journal_agents *event) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_AGENTS, LOG_INFO))
                return;
        record_u64(&record, "MEMGUARD_AGENTS", event->agents);
        record_u64(&record, "MEMGUARD_CONNECTED", event->connected);
        record_u64(&record, "MEMGUARD_LOST", event->lost);
        entry_say_count(&record, event->connected, "agent");
        record_say(&record, " connected, %zu left: now %zu in ", event->lost, event->agents);
        entry_say_count(&record, event->units, "unit");
        entry_end(&record);
}

/* ---- configuration ---- */

static void say_problem(struct mg_record *record, const struct mg_problem *problem) {
        char line[MG_PROBLEM_MAX];

        record_say(record, "%s", problem_format(problem, line));
}

static void journal_config_warning(const struct mg_problem *problem) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_CONFIG_WARNING, LOG_WARNING))
                return;
        record_string(&record, "MEMGUARD_CONFIG_FILE", problem->file);
        record_u64(&record, "MEMGUARD_CONFIG_LINE", problem->line);
        say_problem(&record, problem);
        entry_end(&record);
}

void journal_config_loaded(const struct mg_journal_config *event) {
        struct mg_record record;

        for (size_t i = 0; event->problems && i < event->problems->n_items; i++)
                if (event->problems->items[i].severity == MG_SEVERITY_WARNING)
                        journal_config_warning(&event->problems->items[i]);
        if (!entry_begin(&record, MG_EVENT_CONFIG_LOADED, LOG_INFO))
                return;
        record_u64(&record, "MEMGUARD_COUNT", event->files);
        record_say(&record, "configuration in force: ");
        entry_say_count(&record, event->files, "file");
        entry_end(&record);
}

void journal_config_rejected(const struct mg_problems *problems, bool at_start) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_CONFIG_REJECTED, LOG_ERR))
                return;
        record_u64(&record, "MEMGUARD_COUNT", problems->n_errors);
        record_say(&record, "configuration rejected, %s: ",
                   at_start ? "memguardd does not start" : "the old one stays in force");
        entry_say_count(&record, problems->n_errors, "error");
        for (size_t i = 0; i < problems->n_items; i++)
                if (problems->items[i].severity == MG_SEVERITY_ERROR) {
                        record_say_next_line(&record);
                        say_problem(&record, &problems->items[i]);
                }
        entry_end(&record);
}

/* ---- the host ---- */

void journal_no_pressure(int error) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_NO_PRESSURE, LOG_NOTICE))
                return;
        record_i64(&record, "ERRNO", -(int64_t) error);
        record_say(&record,
                   "pressure information (PSI) cannot be used: %s; thresholds go on without it",
                   strerror(-error));
        entry_end(&record);
}

static void journal_switch(
                enum mg_event event,
                const struct mg_journal_unit *unit,
                uid_t sender_uid,
                const char *text) {
        struct mg_record record;

        if (!entry_begin(&record, event, LOG_NOTICE))
                return;
        entry_unit(&record, unit);
        record_u64(&record, "MEMGUARD_SENDER_UID", sender_uid);
        record_say(&record, "%s by uid %u", text, (unsigned) sender_uid);
        entry_end(&record);
}

void journal_paused(const struct mg_journal_unit *unit, uid_t sender_uid) {
        bool one = unit && unit->name;

        journal_switch(MG_EVENT_PAUSED, unit, sender_uid, one ? "paused" : "all trimming paused");
}

void journal_resumed(const struct mg_journal_unit *unit, uid_t sender_uid) {
        bool one = unit && unit->name;

        journal_switch(MG_EVENT_RESUMED, unit, sender_uid,
                       one ? "resumed" : "all trimming resumed");
}

void journal_state_ignored(const char *file, const char *lost, const char *why) {
        struct mg_record record;

        if (!entry_begin(&record, MG_EVENT_STATE_IGNORED, LOG_WARNING))
                return;
        record_string(&record, "MEMGUARD_STATE_FILE", file);
        record_say(&record, "%s: %s; the %s kept before is not used", file, why, lost);
        entry_end(&record);
}

void journal_source(const struct mg_journal_unit *unit, enum mg_source source, const char *why) {
        struct mg_record record;
        bool proc = source == MG_SOURCE_PROC;

        if (!entry_begin(&record, MG_EVENT_SOURCE, LOG_NOTICE))
                return;
        entry_unit(&record, unit);
        record_string(&record, "MEMGUARD_SOURCE", proc ? "proc" : "cgroup");
        record_say(&record, "measured through %s: %s",
                   proc ? "/proc, process by process" : "its cgroup", why);
        entry_end(&record);
}
