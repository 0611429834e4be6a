/* SPDX-License-Identifier: MIT */
/*
 * What memguardd says: one function for each kind of event, each with its MESSAGE_ID, fields (section 10 of the
 * design) and one line for people. Layer: daemon; takes plain structs and knows nothing of manager or units.
 *
 * Each kind may log so many entries a minute and no more; what is left out is counted and said once. A level below
 * the one set costs a comparison. No function here waits, allocates or fails. main() must ignore SIGPIPE.
 * One process has one journal, so it is the module's own.
 */
#pragma once

#include "core/policy.h"
#include "core/pressure_client.h"
#include "daemon/journal_record.h"
#include "host/problems.h"

enum mg_event {
        MG_EVENT_PLAIN, /* no MESSAGE_ID */
        MG_EVENT_START,
        MG_EVENT_STOP,
        MG_EVENT_AGENTS,
        MG_EVENT_ALLOCATORS,
        MG_EVENT_AGENT_PROBLEM,
        MG_EVENT_TRIM,
        MG_EVENT_TRIM_FAILED,
        MG_EVENT_HOLD,
        MG_EVENT_VERDICT,
        MG_EVENT_MODE,
        MG_EVENT_BREAKER,
        MG_EVENT_PINNED,
        MG_EVENT_CONFIG_LOADED,
        MG_EVENT_CONFIG_REJECTED,
        MG_EVENT_CONFIG_WARNING,
        MG_EVENT_SUMMARY,
        MG_EVENT_NO_PRESSURE,
        MG_EVENT_PRESSURE,
        MG_EVENT_LIVE_OVER_LIMIT,
        MG_EVENT_CLIENTS_TOLD,
        MG_EVENT_PAUSED,
        MG_EVENT_RESUMED,
        MG_EVENT_STATISTICS_LARGE,
        MG_EVENT_STATE_IGNORED,
        MG_EVENT_SOURCE,
        MG_EVENT_SUPPRESSED,
        _MG_EVENT_MAX,
};

/* How much one kind has said in the current minute. */
struct mg_event_rate {
        uint64_t window_usec; /* when the minute began */
        uint32_t count;
        uint64_t suppressed;
};

/* First thing in main(). Before it, entries go to stderr, from warning on. */
void journal_open(int level);
void journal_close(void);

/* Entries less urgent than LEVEL are not made. */
void journal_set_level(int level);
int journal_level(void);

/* Where they go: for LogControl1, and for tests, which point it elsewhere. */
struct mg_sink *journal_sink(void);

static inline bool journal_wants(int level) {
        return level <= journal_level();
}

/* Pure: may one more entry be made at NOW? If not, it is counted. */
bool event_rate_admit(struct mg_event_rate *rate, uint32_t per_minute, uint64_t now_usec);

/* How many were left out in a minute that has ended: to be said now, once. */
uint64_t event_rate_take_suppressed(struct mg_event_rate *rate, uint64_t now_usec);

/* The unit an entry is about. NAME NULL: none. */
struct mg_journal_unit {
        const char *name;
        bool user; /* of a user manager */
};

/* Without a MESSAGE_ID. UNIT may be NULL. No line end in FORMAT. */
void journal_log(int level, const struct mg_journal_unit *unit, const char *format, ...)
                MG_PRINTF(3, 4);

/* The same with ": Permission denied" and ERRNO=; returns ERROR (negative errno). */
int journal_errno(int level, int error, const struct mg_journal_unit *unit, const char *format, ...)
                MG_PRINTF(4, 5);

struct mg_journal_start {
        const char *hierarchy; /* "unified", ... */
        const char *source;    /* "cgroup", "proc" */
        const char *allocator; /* "jemalloc 5.3.0" */
        const char *config;    /* the main file, or NULL: defaults */
        size_t units;
        size_t agents;
        bool psi;
        bool paused;
};
void journal_start(const struct mg_journal_start *event);

struct mg_journal_stop {
        uint64_t uptime_usec;
        uint64_t trims;
        uint64_t trimmed_bytes;
};
void journal_stop(const struct mg_journal_stop *event);

/* Agents come and go in bursts: one line for what happened since the last. */
struct mg_journal_agents {
        size_t connected;
        size_t lost;
        size_t agents; /* now */
        size_t units;  /* that have at least one */
};
void journal_agents(const struct mg_journal_agents *event);

/* Once for each process, at debug where its unit said the same before: what allocators were found and how they are set up, like "jemalloc 5.3.0 (narenas:8,background_thread:false)". */
struct mg_journal_allocators {
        struct mg_journal_unit unit;
        pid_t pid;
        const char *command;
        const char *agent_version;
        const char *text;
        bool again;
};
void journal_allocators(const struct mg_journal_allocators *event);

struct mg_journal_agent_problem {
        struct mg_journal_unit unit;
        pid_t pid; /* 0: unknown */
        const char *command;
        const char *who; /* NULL: the agent */
        const char *problem; /* "did not answer within 10s", "sent a malformed message: connection closed" */
};
void journal_agent_problem(const struct mg_journal_agent_problem *event);

/* A finished round: trimmed, or, when no process answered, failed. */
struct mg_journal_trim {
        struct mg_journal_unit unit;
        const struct mg_outcome *outcome;
        uint64_t retained_bytes; /* before */
        pid_t pid;               /* of the process that gave most; 0: unknown */
};
void journal_trim(const struct mg_journal_trim *event);

/* At debug; cheap when debug is off. */
struct mg_journal_hold {
        struct mg_journal_unit unit;
        const struct mg_decision *decision;
        uint64_t now_usec; /* monotonic, to say how long a cool-down still takes */
};
void journal_hold(const struct mg_journal_hold *event);

struct mg_journal_verdict {
        struct mg_journal_unit unit;
        enum mg_verdict before;
        enum mg_verdict after;
        const struct mg_account *account;
        const struct mg_slope *slope; /* of anon; NULL: not known yet */
};
void journal_verdict(const struct mg_journal_verdict *event);

struct mg_journal_mode {
        struct mg_journal_unit unit;
        enum mg_mode before;
        enum mg_mode after;
        const char *file; /* where it was set; NULL: the default */
        unsigned line;
};
void journal_mode(const struct mg_journal_mode *event);

struct mg_journal_breaker {
        struct mg_journal_unit unit;
        uint64_t pause_usec;
        uint64_t max_pause_usec;
        pid_t pid; /* the process that took so long; 0: unknown */
};
void journal_breaker(const struct mg_journal_breaker *event);

struct mg_journal_pinned {
        struct mg_journal_unit unit;
        uint64_t gain_bytes;
        uint64_t expected_bytes;
        uint64_t backoff_usec;
        enum mg_reason reason; /* MG_REASON_PINNED, _REGROWTH, _REFILLED, _UNREACHABLE: whose back-off it is */
};
void journal_pinned(const struct mg_journal_pinned *event);

struct mg_journal_config {
        const struct mg_problems *problems; /* NULL: none */
        size_t files;
};
/* One line when it is in force, and one for each warning. */
void journal_config_loaded(const struct mg_journal_config *event);
/* One entry with a line for each problem. AT_START: the daemon ends; else the old one stays in force. */
void journal_config_rejected(const struct mg_problems *problems, bool at_start);

/* Once a day for each unit with something to tell. */
struct mg_journal_summary {
        struct mg_journal_unit unit;
        enum mg_mode mode;
        enum mg_verdict verdict;
        uint64_t trims; /* of the day, as the rest */
        uint64_t trimmed_bytes;
        uint64_t would_trim;
        uint64_t pause_usec; /* the longest */
        uint64_t anon_bytes; /* now */
        uint64_t live_bytes;
        int64_t slope_bytes_per_hour;
        bool slope_known;
};
void journal_summary(const struct mg_journal_summary *event);

/* PSI cannot be used: said once. ERROR is why (-EOPNOTSUPP, -EPERM, -ENOENT). */
void journal_no_pressure(int error);

struct mg_journal_pressure {
        struct mg_journal_unit unit; /* name NULL: the host */
        const char *origin;          /* "PSI of system.slice", "memory.high" */
        uint64_t freeable_bytes;
};
void journal_pressure(const struct mg_journal_pressure *event);

/* MemoryHigh= is exceeded by live memory: no trim can help. */
struct mg_journal_live_over_limit {
        struct mg_journal_unit unit;
        uint64_t live_bytes;
        uint64_t anon_bytes;
        uint64_t high_bytes;
};
void journal_live_over_limit(const struct mg_journal_live_over_limit *event);

/* Clients of the memory-pressure protocol were told; at info where that brought MIN_GAIN or an operator asked for it, else at debug. */
struct mg_journal_clients_told {
        struct mg_journal_unit unit;
        enum mg_pressure_cause cause;
        size_t clients;
        uint64_t before_bytes;
        uint64_t after_bytes;
        uint64_t min_gain_bytes;
};
void journal_clients_told(const struct mg_journal_clients_told *event);

/* By an operator. UNIT's name NULL: everything. SENDER_UID: who. */
void journal_paused(const struct mg_journal_unit *unit, uid_t sender_uid);
void journal_resumed(const struct mg_journal_unit *unit, uid_t sender_uid);

/* A heap first met large is asked for statistics once, whatever that costs. */
struct mg_journal_statistics_large {
        struct mg_journal_unit unit;
        pid_t pid;
        const char *command;
        uint64_t rss_anon_bytes;
        uint64_t cost_usec;
};
void journal_statistics_large(const struct mg_journal_statistics_large *event);

/* A damaged or foreign file, which held LOST ("history"), is left aside. FILE may be the name of the unit that it was for. */
void journal_state_ignored(const char *file, const char *lost, const char *why);

/* A unit (name NULL: the host) is measured through /proc instead of its cgroup. */
void journal_source(const struct mg_journal_unit *unit, enum mg_source source, const char *why);
