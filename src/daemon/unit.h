/* SPDX-License-Identifier: MIT */
/*
 * A unit: what an operator names, with everything known and decided about it. Owned by the manager; it owns its
 * processes and its history. Identity is (path, cgroup inode, InvocationID): when one of them changes, the unit
 * starts afresh. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "core/history.h"
#include "core/policy.h"
#include "core/tally.h"
#include "daemon/pressure.h"
#include "daemon/provider.h"
#include "host/cgroup.h"
#include "host/config.h"
#include "host/unit_name.h"
#include "host/why_no_agent.h"

struct manager;
struct process;
struct trim_round;
struct unit_tree;

/* Hex digits of a systemd InvocationID and the NUL. */
#define INVOCATION_ID_SIZE 33

/* What the bus has been told of a unit last; bus_signals.c's alone. Small: a thousand units have one each. */
struct unit_shown {
        uint64_t last_trim_usec;
        uint32_t trims; /* and the bytes, which change with them */
        bool announced;
        bool paused;
        bool breaker;
        uint8_t mode;    /* enum mg_mode */
        uint8_t verdict; /* enum mg_verdict */
        uint8_t reason;  /* enum mg_reason; _MG_REASON_MAX: nothing decided yet */
};

struct unit {
        struct mg_list all; /* manager->units */
        struct unit *next_in_bucket;
        struct manager *manager;

        /* identity */
        char *name; /* "nginx.service", "redis-server.process" */
        char *path; /* of its cgroup; NULL: a pseudo-unit (processes outside every unit) */
        bool user;  /* of a user manager */
        uid_t user_uid;
        struct unit_tree *tree;                 /* that counts it; NULL: none */
        struct mg_cgroup cgroup;                /* held open; dir_fd < 0 where the source is proc */
        char invocation_id[INVOCATION_ID_SIZE]; /* "" without systemd */
        enum mg_source source;

        /* what systemd says; ACTIVE and MG_UNKNOWN without it */
        enum mg_activity activity;
        uint64_t watchdog_usec;
        enum mg_fact sets_agent; /* see struct systemd_unit */
        enum mg_fact forbids_unix;

        /* configuration in force for it */
        struct mg_unit_config config;
        struct mg_origins origins; /* strings are manager->config's */
        bool paused;               /* by `memguardctl pause UNIT` */

        /* measured */
        struct mg_memory memory;
        uint64_t cpu_usage_usec;
        uint64_t checkpoint_at_usec;
        bool tick_wished;
        uint64_t rest_until_usec; /* memory.stat is slow to read: not at every tick */
        struct mg_list processes; /* struct process.by_unit: those with an agent, now or once, and in the proc source all that were found */
        uint32_t n_processes;     /* of that list */
        uint32_t n_agents;        /* of these, connected and past hello */
        uint32_t n_pids; /* in the cgroup, as of the last minute; n_processes where nobody knows */
        bool sampled;    /* memory holds a sample */
        uint64_t slow_due_usec;    /* of the once-a-minute readings, scattered over the minute */
        uint64_t round_lost_bytes; /* of processes that ended during the round: no gain of ours */

        struct unit_pressure pressure;
        struct unit_clients clients;

        /* decided */
        struct mg_policy_state policy;
        struct mg_decision decision; /* of the last tick */
        bool decided;
        uint64_t due_since_usec;       /* a trim waits for its turn; MG_UNKNOWN: none */
        struct trim_round *round;      /* in flight; NULL: none */
        struct mg_tally tally;         /* for the metrics */
        uint64_t last_round_wall_usec; /* realtime of its end; 0: none since the daemon runs */
        uint64_t summary_day;          /* of the last daily summary: days since the unit was met */
        uint64_t summary_trims;        /* counters as of then */
        uint64_t summary_trimmed_bytes;
        uint64_t summary_would_trim;
        uint64_t summary_pause_usec; /* the longest since */

        struct mg_history history;
        struct unit_shown shown;
        uint64_t listed; /* the last answer on the bus that was asked for it by name */
        uint64_t created_usec;
        uint64_t mark; /* of the last discovery that saw it */
        bool configured;
        bool state_settled; /* what an earlier daemon saved has been taken up, or never will be */
        bool history_settled;
        uint64_t saved_usec;
};

/* All a new unit needs to be told apart. PATH NULL: a pseudo-unit. */
struct unit_identity {
        const char *name;
        const char *path;
        bool user;
        uid_t user_uid;
};

/*
 * Finds or makes. A new unit opens its cgroup where the manager uses cgroups, looks up its configuration, its saved
 * state and pause flag. Returns 0, -ENOMEM, -ENOENT when the cgroup is gone already, or -EUSERS when its tree has too many.
 */
int unit_get(struct manager *manager, const struct unit_identity *identity, struct unit **ret_unit);

/* Ends a running round, lets go of the processes and their peers, frees. Returns NULL. */
struct unit *unit_free(struct unit *unit);

/* The same, and what was saved of it too: it is gone from the host. */
void unit_end(struct unit *unit);

/*
 * By the name an operator types, or a cgroup path; NULL: none. Of units of one name the system's own; of those of users and
 * containers the first.
 */
struct unit *unit_find(const struct manager *manager, const char *name_or_path);

/*
 * What it is called where it must be told from all others: its name, or its cgroup path where names may repeat. Borrowed.
 * A system's unit keeps its own when it moves to another slice. And back; NULL: no unit that is here has this one.
 */
const char *unit_label(const struct unit *unit);
struct unit *unit_find_label(const struct manager *manager, const char *label);

/* By exact key: the path, or a pseudo-unit's name. */
struct unit *unit_find_key(const struct manager *manager, const char *path, const char *name);

/* What systemd says of it. A changed INVOCATION_ID ("" for unknown) starts the unit afresh. */
void unit_set_systemd(
                struct unit *unit,
                const char *invocation_id,
                enum mg_activity activity,
                uint64_t watchdog_usec);

/* The other half of source and cgroup: opens it anew. -ENOENT: gone; -EMFILE, -ENFILE, -ENOMEM: not now. */
int unit_open_cgroup(struct unit *unit);

/* Forgets all that was learned of an earlier life: a restart has happened. */
void unit_start_afresh(struct unit *unit);

/* Looks its configuration up again; wakes tune requests that follow from it. */
void unit_configure(struct unit *unit);

/* Its pids, agents or not, into PIDS (room for MAX). Returns how many there are, or -errno. */
int unit_pids(const struct unit *unit, pid_t *pids, size_t max);

/* How the journal names it. */
struct mg_journal_unit;
struct mg_journal_unit unit_for_journal(const struct unit *unit);

static inline struct unit *unit_of(struct mg_list *entry) {
        return MG_CONTAINER_OF(entry, struct unit, all);
}

/* for (struct unit *u = unit_first(m); u; u = unit_next(u)) */
struct unit *unit_first(const struct manager *manager);
struct unit *unit_next(const struct unit *unit);
