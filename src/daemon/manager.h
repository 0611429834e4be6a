/* SPDX-License-Identifier: MIT */
/*
 * The whole daemon in one object: the event loop, the configuration in force, all units, peers and running
 * rounds. It owns everything below; there is one, made by main() and freed last. The functions here are what
 * the sd-bus server needs; the wiring itself is in the modules named by the members. Layer: daemon.
 *
 * Single-threaded. Times are CLOCK_MONOTONIC microseconds (manager_now()); the wall clock appears
 * only where something is shown.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/list.h"
#include "core/schedule.h"
#include "host/cgroup.h"
#include "host/config.h"
#include "host/problems.h"

#include "daemon/options.h"
#include "daemon/told.h"

struct bus_server;
struct peer;
struct pressure;
struct provider;
struct self;
struct store;
struct systemd_units;
struct trim_result;
struct unit;
struct unit_tree;

/* Buckets of the unit table; hosts have tens to a few thousand units. */
#define UNIT_BUCKETS 512

struct manager {
        struct options options;
        sd_event *event;

        /* configuration in force */
        struct mg_config *config;
        struct mg_daemon_config settings; /* of [Daemon], a copy */
        int log_level;                    /* in force: option, then `log-level`, then LogLevel= */
        bool paused;                      /* `memguardctl pause --all` or Paused=yes */
        bool paused_by_hand;

        /* the host */
        char cgroup_root[512];
        enum mg_hierarchy hierarchy;
        bool use_cgroups; /* units may have source cgroup; else everything is summed from /proc */
        char own_unit_path
                        [512]; /* the daemon's own unit: whoever shares it is in no unit of its own; "" */

        /* units */
        struct mg_list units; /* struct unit.all, in order of discovery */
        struct unit *unit_table[UNIT_BUCKETS];
        size_t n_units;
        struct unit_tree *trees;       /* that others than root make units in */
        bool walk_cut;                 /* the last walk met more cgroups than it visits */
        struct systemd_units *systemd; /* NULL: no systemd D-Bus, the tree is walked */
        sd_event_source *discovery_source;
        uint64_t discovery_mark;

        /* peers */
        struct mg_list peers;     /* struct peer.all */
        struct mg_list graveyard; /* closed ones */
        sd_event_source *graveyard_source;
        size_t n_peers;
        size_t max_peers;      /* by RLIMIT_NOFILE */
        int agent_fd;          /* the listening socket */
        bool agent_socket_own; /* made here, not by systemd: unlinked at the end */
        sd_event_source *listen_source;
        sd_event_source *listen_retry_source; /* after EMFILE */
        uint64_t late_replies;                /* of all peers that ever were */
        uint64_t hellos;
        uint64_t hello_window_usec; /* the last seconds' hellos, to spread first statistics */
        uint32_t hello_window_count;

        /* ticks and rounds */
        uint64_t tick_due_usec;
        sd_event_source *extra_source; /* for units that wish to be ticked before their time */
        uint64_t extra_tick_usec;      /* the last one */
        uint64_t ticks;
        uint64_t released_usec;  /* when the daemon gave its own free memory back */
        uint64_t last_slow_usec; /* when the once-a-minute part ran last */
        uint64_t trimmed_bytes;  /* by rounds since the start */
        uint64_t trims;
        struct mg_list rounds; /* struct trim_round.all */
        size_t n_rounds;
        struct mg_process_sample *samples; /* scratch of the tick: room for the largest unit */
        size_t samples_room;
        struct mg_candidate *candidates; /* scratch of the tick: room for every unit */
        size_t candidates_room;

        /* agents that came and went since the last line about it */
        uint32_t agents_connected;
        uint32_t agents_lost;
        uint64_t agents_told_usec;   /* of that line; 0: none yet */
        struct told allocators_told; /* of the line about each process's allocators */

        /* the rest of the daemon */
        int bus_fd; /* a listening socket for the bus that systemd made; -EBADF: bus_server_new() makes its own */
        int lock_fd;
        int runtime_dir_fd;
        int units_dir_fd; /* policy states, in the runtime directory */
        int state_dir_fd; /* -EBADF: no state directory; costs and pauses are not kept */
        char boot_id[40];
        struct store *store;
        struct bus_server *bus;
        struct self *self;
        struct pressure *pressure;
        struct provider *provider; /* of the memory-pressure protocol */
        uint64_t started_usec;
};

int manager_new(struct options *options, struct manager **ret_manager);
struct manager *manager_free(struct manager *manager);
MG_DEFINE_CLEANUP(struct manager *, manager_free)

/* Runs until SIGTERM or SIGINT. Returns the exit status. */
int manager_run(struct manager *manager);

/* The event loop's idea of now, monotonic. */
uint64_t manager_now(const struct manager *manager);

/*
 * Reads the configuration again and puts it in force. PROBLEMS gets warnings too. Returns 0, or -EINVAL with the
 * old configuration still in force, or -ENOMEM.
 */
int manager_reload(struct manager *manager, struct mg_problems *problems);

/*
 * The emergency switch, kept over a restart. UNIT NULL: everything. Resuming a unit also closes its breaker. Returns 0, or
 * -errno: it is in force, but could not be written, so the next daemon may not know of it.
 */
int manager_set_paused(struct manager *manager, struct unit *unit, bool paused);

/* `paused` follows from Paused= and from what an operator said. */
void manager_apply_paused(struct manager *manager);

/* syslog's level; until the next reload that changes LogLevel=. */
void manager_set_log_level(struct manager *manager, int level);

struct manager_counts {
        uint32_t units;
        uint32_t trimming; /* units in Mode=trim with an agent, not paused */
        uint32_t observing;
        uint32_t no_agent;
        uint32_t agents;
        uint64_t history_bytes;
};
void manager_count(const struct manager *manager, struct manager_counts *ret_counts);
