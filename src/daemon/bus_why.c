/* SPDX-License-Identifier: MIT */
/* Who has no agent, and why; see bus_why.h. */
#include "daemon/bus_why.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "daemon/identity.h"
#include "daemon/manager.h"
#include "daemon/peer.h"
#include "host/agent_version.h"
#include "host/bus_api.h"
#include "host/clock.h"
#include "host/proc.h"
#include "host/why_no_agent.h"

/*
 * On two cores with five times as much to do a process took 1.2 ms (150 of 30 mappings each, 2026-11-30): this is an ordinary host's
 * all of them, and far from the ten seconds that agents and clients wait at least.
 */
#define TIME_TO_SPEND_USEC (500 * MG_USEC_PER_MSEC)

static bool is_known(const struct unit *unit, pid_t pid) {
        for (const struct process *p = process_first(unit); p; p = process_next(p))
                if (p->proc.pid == pid)
                        return true;
        return false;
}

static void add(struct strangers *strangers, const struct unit *unit, pid_t pid) {
        if (strangers->n < STRANGERS_MAX && !is_known(unit, pid))
                strangers->list[strangers->n++] = (struct stranger){ .unit = unit, .pid = pid };
}

static bool is_enough(const struct strangers *strangers) {
        return strangers->n == STRANGERS_MAX || clock_now_usec() >= strangers->until_usec;
}

static bool has_pids(const struct unit *unit) {
        return unit->path && unit->manager->use_cgroups;
}

static void add_from_cgroup(
                struct strangers *strangers,
                const struct unit *unit,
                pid_t *pids,
                size_t max) {
        int n = unit_pids(unit, pids, max);

        for (int i = 0; i < MG_MIN(n, (int) max); i++)
                add(strangers, unit, pids[i]);
}

struct search {
        struct strangers *strangers;
        const struct manager *manager;
        const struct unit *wanted; /* NULL: all */
};

/* Where no cgroup lists a unit's processes, each process is asked for its unit. */
static int visit_process(void *userdata, pid_t pid) {
        struct search *search = userdata;
        struct mg_proc_status status;
        struct process_unit found;

        if (is_enough(search->strangers))
                return 1;
        if (proc_status("/proc", pid, &status) < 0 || status.state == 'Z' ||
            unit_of_process(pid, status.uid, search->manager->own_unit_path, &found) < 0)
                return 0;
        const struct unit *unit = unit_find_key(
                        search->manager, found.path[0] ? found.path : NULL, found.name);
        if (unit && !has_pids(unit) && (!search->wanted || unit == search->wanted))
                add(search->strangers, unit, pid);
        return 0;
}

struct strangers *strangers_find(struct manager *manager, const struct unit *wanted) {
        struct strangers *strangers = malloc(sizeof(*strangers));
        pid_t *pids = calloc(STRANGERS_MAX, sizeof(*pids));
        bool walk = false;

        if (!strangers || !pids) {
                free(strangers);
                free(pids);
                return NULL;
        }
        strangers->n = 0;
        strangers->until_usec = clock_now_usec() + TIME_TO_SPEND_USEC;
        for (const struct unit *u = unit_first(manager); u; u = unit_next(u)) {
                if (wanted && u != wanted)
                        continue;
                if (is_enough(strangers))
                        break;
                if (has_pids(u))
                        add_from_cgroup(strangers, u, pids, STRANGERS_MAX);
                else
                        walk = true;
        }
        free(pids);
        if (walk)
                (void) proc_walk(
                                "/proc", visit_process,
                                &(struct search){
                                                .strangers = strangers,
                                                .manager = manager,
                                                .wanted = wanted,
                                });
        return strangers;
}

/* Without systemd's word: one process of it that was started with the agent shows that the unit is set up for it. */
static enum mg_fact is_configured(const struct unit *unit) {
        for (const struct process *p = process_first(unit); p; p = process_next(p))
                if (p->peer && p->peer->mode && mg_streq(p->peer->mode, "preload"))
                        return MG_FACT_YES;
        return unit->sets_agent;
}

static enum mg_fact is_outdated(const struct peer *peer) {
        if (!peer || !peer->version)
                return MG_FACT_UNKNOWN;
        return agent_version_compare(peer->version, MG_VERSION) < 0 ? MG_FACT_YES : MG_FACT_NO;
}

/* A process in uninterruptible sleep may hold the lock that its maps and its environment are read under. */
static bool is_readable(pid_t pid, uint64_t until_usec) {
        struct mg_proc_status status;

        return clock_now_usec() < until_usec && proc_status("/proc", pid, &status) == 0 &&
               status.state != 'D';
}

static int collect(const struct unit *unit, pid_t pid, struct mg_agent_facts *facts) {
        const char *directory = unit->manager->options.runtime_directory;
        char socket[PATH_MAX];
        char absolute[PATH_MAX];

        if (!realpath(directory, absolute))
                return -errno;
        int n = snprintf(socket, sizeof(socket), "%s/%s", absolute, MG_AGENT_SOCKET);
        if (n < 0 || (size_t) n >= sizeof(socket))
                return -ENAMETOOLONG;
        return why_no_agent_collect("/proc", pid, socket, facts);
}

static void put(struct dict *dict, const char *state, const char *reason) {
        dict_string(dict, "agent", state);
        dict_string(dict, "agent_reason", reason);
}

void bus_why(struct dict *dict,
             const struct unit *unit,
             pid_t pid,
             const struct process *process,
             uint64_t until_usec) {
        const struct peer *peer = process ? process->peer : NULL;
        struct mg_agent_facts facts = {
                .connected = peer ? MG_FACT_YES : MG_FACT_NO,
                .outdated = is_outdated(peer),
                .unit_configured = is_configured(unit),
                .unix_forbidden = unit->forbids_unix,
        };

        if (peer && peer->unresponsive) {
                put(dict, "unresponsive", "a request timed out and nothing was heard since");
                return;
        }
        if (!peer && (!is_readable(pid, until_usec) || collect(unit, pid, &facts) < 0)) {
                put(dict, process ? "lost" : "none", "not looked at");
                return;
        }
        enum mg_agent_state state = why_no_agent(&facts);
        if (process && state == MG_AGENT_CONNECTING)
                put(dict, "lost", "the agent was connected, and is not any more");
        else
                put(dict, agent_state_to_string(state), agent_state_describe(state));
}
