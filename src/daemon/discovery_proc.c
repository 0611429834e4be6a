/* SPDX-License-Identifier: MIT */
/*
 * Finding processes where no cgroup holds them together: /proc is walked now and then for the members of units that
 * matter, which are those with an agent and those that the configuration names. Layer: daemon.
 */
#include "daemon/discovery.h"

#include <errno.h>

#include "base/macros.h"
#include "daemon/identity.h"
#include "daemon/manager.h"
#include "daemon/process.h"
#include "daemon/store.h"
#include "daemon/unit.h"
#include "host/proc.h"

/* Of one unit; more than this are a fork bomb or a build, not a service. */
#define PROCESSES_MAX 1024

static bool has_own_section(const struct manager *manager, const struct process_unit *found) {
        struct mg_unit_config config;
        struct mg_origins origins;

        config_unit(manager->config, found->name, found->path[0] ? found->path : NULL, &config,
                    &origins);
        return origins.own_section && config.mode != MG_MODE_OFF;
}

static int get_unit(
                struct manager *manager,
                const struct process_unit *found,
                struct unit **ret_unit) {
        const char *path = found->path[0] ? found->path : NULL;

        *ret_unit = unit_find_key(manager, path, found->name);
        /* An executable's name is a weak bond: where agents speak up, only theirs are the unit. */
        if (*ret_unit)
                return path || (*ret_unit)->n_agents == 0 ? 0 : -ENXIO;
        if (!has_own_section(manager, found))
                return -ENXIO;
        return unit_get(manager,
                        &(struct unit_identity){
                                        .name = found->name,
                                        .path = path,
                                        .user = found->user,
                                        .user_uid = found->user_uid,
                        },
                        ret_unit);
}

int discovery_add_process(struct unit *unit, pid_t pid, uid_t uid) {
        struct process *process;
        struct mg_proc proc;
        int r = proc_open("/proc", pid, &proc);

        if (r < 0)
                return r;
        if (unit->n_processes >= PROCESSES_MAX || process_find(unit, pid, proc.start_time))
                r = -EEXIST;
        else
                r = process_new(unit, &proc, uid, &process);
        if (r < 0) {
                proc_close(&proc);
                return r;
        }
        if (unit->source == MG_SOURCE_PROC)
                store_load_state(unit);
        return 0;
}

static int visit_process(void *userdata, pid_t pid) {
        struct manager *manager = userdata;
        struct mg_proc_status status;
        struct process_unit found;
        struct unit *unit;

        /* Kernel threads and zombies have no memory to look at. */
        if (proc_status("/proc", pid, &status) < 0 || status.swap_bytes == MG_UNKNOWN)
                return 0;
        if (unit_of_process(pid, status.uid, manager->own_unit_path, &found) < 0 ||
            get_unit(manager, &found, &unit) < 0)
                return 0;
        return discovery_add_process(unit, pid, status.uid) == -ENOMEM ? -ENOMEM : 0;
}

int discovery_walk_processes(struct manager *manager) {
        return proc_walk("/proc", visit_process, manager);
}
