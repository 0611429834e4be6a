/* SPDX-License-Identifier: MIT */
/* Units: found, made, restarted, let go; see unit.h. */
#include "daemon/unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/hash.h"
#include "daemon/bus.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/peer.h"
#include "daemon/process.h"
#include "daemon/store.h"
#include "daemon/trim.h"
#include "daemon/unit_tree.h"
#include "host/memory_stat.h"

/* Names are no secret and buckets no attack: a unit's name takes root, or a user manager, to choose. */
static size_t bucket_of(const char *key) {
        return hash_add(MG_HASH_INIT, key, strlen(key)) % UNIT_BUCKETS;
}

static const char *key_of(const struct unit *unit) {
        return unit->path ?: unit->name;
}

struct unit *unit_find_key(const struct manager *manager, const char *path, const char *name) {
        const char *key = path ?: name;

        for (struct unit *u = manager->unit_table[bucket_of(key)]; u; u = u->next_in_bucket)
                if (!u->path == !path && mg_streq(key_of(u), key))
                        return u;
        return NULL;
}

/*
 * systemd's names are unique among the units that have nothing but slices above them. All others (of a user's manager, of a
 * systemd in a container) go by their cgroup.
 */
static bool has_unique_name(const struct unit *unit) {
        return !unit->path || (!unit->user && unit_name_tree_length(unit->path) == 0);
}

const char *unit_label(const struct unit *unit) {
        return has_unique_name(unit) ? unit->name : unit->path;
}

struct unit *unit_find(const struct manager *manager, const char *name_or_path) {
        struct unit *other = NULL;

        if (name_or_path[0] == '/')
                return unit_find_key(manager, name_or_path, NULL);
        for (struct unit *u = unit_first(manager); u; u = unit_next(u)) {
                if (!mg_streq(u->name, name_or_path))
                        continue;
                if (has_unique_name(u))
                        return u;
                other = other ?: u;
        }
        return other;
}

struct unit *unit_find_label(const struct manager *manager, const char *label) {
        struct unit *unit = unit_find(manager, label);

        return unit && mg_streq(unit_label(unit), label) ? unit : NULL;
}

struct unit *unit_first(const struct manager *manager) {
        return list_is_empty(&manager->units) ? NULL : unit_of(manager->units.next);
}

struct unit *unit_next(const struct unit *unit) {
        struct mg_list *next = unit->all.next;

        return next == &unit->manager->units ? NULL : unit_of(next);
}

struct mg_journal_unit unit_for_journal(const struct unit *unit) {
        return (struct mg_journal_unit){ .name = unit->name, .user = unit->user };
}

static int reserve_candidates(struct manager *manager, size_t needed) {
        struct mg_candidate *candidates;
        size_t room = MG_MAX(needed, manager->candidates_room * 2);

        if (needed <= manager->candidates_room)
                return 0;
        candidates = reallocarray(manager->candidates, room, sizeof(*candidates));
        if (!candidates)
                return -ENOMEM;
        manager->candidates = candidates;
        manager->candidates_room = room;
        return 0;
}

static void close_cgroup(struct unit *unit) {
        if (unit->cgroup.dir_fd >= 0)
                cgroup_close(&unit->cgroup);
        unit->cgroup = (struct mg_cgroup){
                .dir_fd = -EBADF,
                .stat_fd = -EBADF,
                .swap_fd = -EBADF,
        };
}

int unit_open_cgroup(struct unit *unit) {
        const struct manager *manager = unit->manager;
        int r;

        close_cgroup(unit);
        unit->source = MG_SOURCE_PROC;
        memory_unknown(&unit->memory);
        if (!unit->path || !manager->use_cgroups)
                return 0;
        r = cgroup_open(manager->cgroup_root, unit->path, &unit->cgroup);
        if (r >= 0) {
                unit->source = MG_SOURCE_CGROUP;
                return 0;
        }
        close_cgroup(unit);
        if (r == -ENOENT || r == -ENODEV)
                return -ENOENT;
        /* For want of descriptors or memory a unit is left for later, not taken for one without a cgroup. */
        if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
                return r;
        journal_errno(LOG_DEBUG, r, &(struct mg_journal_unit){ unit->name, unit->user },
                      "Measured through /proc, its cgroup has no memory.stat");
        return 0;
}

static void forget(struct unit *unit) {
        struct manager *manager = unit->manager;

        policy_init(&unit->policy);
        history_init(&unit->history);
        unit->tally = (struct mg_tally){};
        unit->decision = (struct mg_decision){};
        unit->decided = false;
        unit->sampled = false;
        unit->due_since_usec = MG_UNKNOWN;
        unit->checkpoint_at_usec = MG_UNKNOWN;
        unit->cpu_usage_usec = MG_UNKNOWN;
        unit->pressure = (struct unit_pressure){};
        unit->last_round_wall_usec = 0;
        unit->summary_day = 0;
        unit->summary_trims = 0;
        unit->summary_trimmed_bytes = 0;
        unit->summary_would_trim = 0;
        unit->created_usec = manager_now(manager);
        unit->saved_usec = unit->created_usec;
}

static void link_unit(struct unit *unit) {
        struct manager *manager = unit->manager;
        struct unit **bucket = &manager->unit_table[bucket_of(key_of(unit))];

        unit->next_in_bucket = *bucket;
        *bucket = unit;
        list_append(&manager->units, &unit->all);
        manager->n_units++;
}

static void unlink_unit(struct unit *unit) {
        struct unit **at = &unit->manager->unit_table[bucket_of(key_of(unit))];

        while (*at && *at != unit)
                at = &(*at)->next_in_bucket;
        if (*at)
                *at = unit->next_in_bucket;
        list_remove(&unit->all);
        unit->manager->n_units--;
}

static struct unit *unit_alloc(struct manager *manager, const struct unit_identity *identity) {
        struct unit *unit = calloc(1, sizeof(*unit));

        if (!unit)
                return NULL;
        unit->manager = manager;
        unit->name = strdup(identity->name);
        unit->path = identity->path ? strdup(identity->path) : NULL;
        unit->user = identity->user;
        unit->user_uid = identity->user_uid;
        unit->cgroup.dir_fd = -EBADF;
        unit->activity = MG_ACTIVITY_ACTIVE;
        unit->watchdog_usec = MG_UNKNOWN;
        list_init(&unit->all);
        list_init(&unit->processes);
        if (unit->name && (unit->path || !identity->path))
                return unit;
        free(unit->name);
        free(unit->path);
        free(unit);
        return NULL;
}

int unit_get(struct manager *manager,
             const struct unit_identity *identity,
             struct unit **ret_unit) {
        struct unit *unit = unit_find_key(manager, identity->path, identity->name);
        struct unit_tree *tree;
        int r;

        if (unit) {
                *ret_unit = unit;
                return 0;
        }
        if (reserve_candidates(manager, manager->n_units + 1) < 0)
                return -ENOMEM;
        r = unit_tree_join(manager, identity->path, &tree);
        if (r < 0)
                return r;
        unit = unit_alloc(manager, identity);
        if (!unit) {
                unit_tree_leave(manager, tree);
                return -ENOMEM;
        }
        unit->tree = tree;
        forget(unit);
        link_unit(unit);
        r = unit_open_cgroup(unit);
        if (r < 0) {
                unit_free(unit);
                return r;
        }
        unit->mark = manager->discovery_mark;
        /* The first minute's readings at the first tick, the following ones scattered over the minute. */
        unit->slow_due_usec = unit->created_usec;
        unit_configure(unit);
        store_load_unit(unit);
        if (unit->source == MG_SOURCE_CGROUP)
                store_load_state(unit); /* else its processes complete its identity */
        *ret_unit = unit;
        return 0;
}

struct unit *unit_free(struct unit *unit) {
        if (!unit)
                return NULL;
        bus_unit_gone(unit->manager->bus, unit);
        trim_cancel(unit);
        provider_forget_unit(unit->manager->provider, unit);
        while (process_first(unit))
                process_free(process_first(unit));
        unlink_unit(unit);
        unit_tree_leave(unit->manager, unit->tree);
        close_cgroup(unit);
        free(unit->name);
        free(unit->path);
        free(unit);
        return NULL;
}

void unit_end(struct unit *unit) {
        store_forget_unit(unit);
        unit_free(unit);
}

void unit_start_afresh(struct unit *unit) {
        trim_cancel(unit);
        forget(unit);
        store_forget_unit(unit);
        unit->state_settled = true;
        unit->history_settled = true;
        store_load_unit(unit);
}

void unit_set_systemd(
                struct unit *unit,
                const char *invocation_id,
                enum mg_activity activity,
                uint64_t watchdog_usec) {
        unit->activity = activity;
        unit->watchdog_usec = watchdog_usec;
        if (mg_streq(unit->invocation_id, invocation_id) ||
            strlen(invocation_id) >= sizeof(unit->invocation_id))
                return;
        /* The first id a unit is given completes its identity, any other one is a new life. */
        if (unit->invocation_id[0] == '\0') {
                memcpy(unit->invocation_id, invocation_id, strlen(invocation_id) + 1);
                return;
        }
        memcpy(unit->invocation_id, invocation_id, strlen(invocation_id) + 1);
        unit_start_afresh(unit);
}

static void tell_mode(const struct unit *unit, enum mg_mode before) {
        const struct mg_origin *origin = &unit->origins.key[MG_KEY_MODE];

        if (!unit->configured || before == unit->config.mode)
                return;
        journal_mode(&(struct mg_journal_mode){
                        .unit = unit_for_journal(unit),
                        .before = before,
                        .after = unit->config.mode,
                        .file = origin->file,
                        .line = origin->line,
        });
}

void unit_configure(struct unit *unit) {
        struct mg_unit_config before = unit->config;

        config_unit(unit->manager->config, unit->name, unit->path, &unit->config, &unit->origins);
        tell_mode(unit, before.mode);
        if (unit->configured &&
            before.jemalloc_background_thread != unit->config.jemalloc_background_thread)
                for (struct process *p = process_first(unit); p; p = process_next(p))
                        if (p->peer)
                                p->peer->tune_pending = true;
        unit->configured = true;
}

static int pids_of_processes(const struct unit *unit, pid_t *pids, size_t max) {
        int n = 0;

        for (struct process *p = process_first(unit); p; p = process_next(p), n++)
                if ((size_t) n < max)
                        pids[n] = p->proc.pid;
        return n;
}

int unit_pids(const struct unit *unit, pid_t *pids, size_t max) {
        if (!unit->path || !unit->manager->use_cgroups)
                return pids_of_processes(unit, pids, max);
        return cgroup_pids(unit->manager->cgroup_root, unit->path, pids, max);
}
