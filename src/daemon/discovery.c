/* SPDX-License-Identifier: MIT */
/* Finding units; see discovery.h. */
#include "daemon/discovery.h"

#include <errno.h>

#include "base/macros.h"
#include "daemon/identity.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/systemd_units.h"
#include "daemon/tick.h"
#include "daemon/unit.h"

/* With systemd's own word for system units the walk only finds those of user managers. */
#define WALK_INTERVAL_USEC         MG_USEC_PER_MIN
#define WALK_TICKS                 12 /* once a minute at IntervalSec=5s, and oftener only with it */
#define WALK_INTERVAL_SYSTEMD_USEC (5 * MG_USEC_PER_MIN)
#define WALK_ACCURACY_USEC         MG_USEC_PER_SEC

/* What is at PATH itself: cgroups below a unit's own are its own business. */
static int identify(
                const struct manager *manager,
                const char *path,
                struct process_unit *ret_found) {
        int r = unit_of_cgroup(path, manager->own_unit_path, ret_found);

        return r < 0 || !mg_streq(ret_found->path, path) ? -ENXIO : 0;
}

static int get_unit(
                struct manager *manager,
                const struct process_unit *found,
                struct unit **ret_unit) {
        struct unit_identity identity = {
                .name = found->name,
                .path = found->path,
                .user = found->user,
                .user_uid = found->user_uid,
        };

        return unit_get(manager, &identity, ret_unit);
}

/*
 * A cgroup without a process is no unit yet, as whoever has a tree of cgroups can make empty ones without end. A unit that is known
 * stays one while it is empty: it may be between two processes.
 */
static int visit_cgroup(void *userdata, const char *path) {
        struct manager *manager = userdata;
        struct unit *unit = unit_find_key(manager, path, NULL);
        struct process_unit found;

        if (!unit) {
                if (identify(manager, path, &found) < 0 ||
                    cgroup_is_empty(manager->cgroup_root, path))
                        return 0;
                int r = get_unit(manager, &found, &unit);
                if (r < 0)
                        return r == -ENOMEM ? r : 0;
        }
        unit->mark = manager->discovery_mark;
        return 0;
}

/*
 * Units measured by their cgroup notice their own end in the tick; the others by being missed here, unless a walk that was cut short
 * has left them out.
 */
static void drop_missed(struct manager *manager) {
        MG_LIST_FOREACH_SAFE(entry, &manager->units) {
                struct unit *unit = unit_of(entry);

                if (unit->path && unit->source == MG_SOURCE_PROC &&
                    unit->mark != manager->discovery_mark && unit_open_cgroup(unit) == -ENOENT)
                        unit_end(unit);
        }
}

/* Once, until a walk is whole again. */
static void tell_cut(struct manager *manager, bool cut) {
        if (cut && !manager->walk_cut)
                journal_log(LOG_WARNING, NULL,
                            "More cgroups in %s than are looked through (%u, and %u of one user, "
                            "container or service): units among those beyond are not found",
                            manager->cgroup_root, MG_CGROUP_WALK_MAX, MG_CGROUP_TREE_MAX);
        manager->walk_cut = cut;
}

static void walk(struct manager *manager) {
        int r;

        manager->discovery_mark++;
        r = manager->use_cgroups ? cgroup_walk(manager->cgroup_root, visit_cgroup, manager)
                                 : discovery_walk_processes(manager);
        tell_cut(manager, r == -E2BIG);
        if (r < 0 && r != -E2BIG)
                journal_errno(LOG_WARNING, r, NULL, "Cannot look for units in %s",
                              manager->use_cgroups ? manager->cgroup_root : "/proc");
        else if (manager->use_cgroups)
                drop_missed(manager);
}

static uint64_t walk_interval(const struct manager *manager) {
        if (manager->use_cgroups && manager->systemd && systemd_units_available(manager->systemd))
                return WALK_INTERVAL_SYSTEMD_USEC;
        return MG_MIN(manager->settings.interval_usec * WALK_TICKS, WALK_INTERVAL_USEC);
}

static int on_walk(sd_event_source *source, uint64_t usec, void *userdata) {
        struct manager *manager = userdata;

        walk(manager);
        (void) sd_event_source_set_time_relative(source, walk_interval(manager));
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        return 0;
}

static void on_unit_changed(void *userdata, const struct systemd_unit *known) {
        struct manager *manager = userdata;
        struct unit *unit = unit_find_key(manager, known->cgroup_path, NULL);
        struct process_unit found;

        /* Where nothing but agents' processes can be measured, a unit without one would be an empty row. */
        if (!unit && (!manager->use_cgroups || identify(manager, known->cgroup_path, &found) < 0 ||
                      get_unit(manager, &found, &unit) < 0))
                return;
        unit->mark = manager->discovery_mark;
        unit->sets_agent = known->sets_agent;
        unit->forbids_unix = known->forbids_unix;
        unit_set_systemd(unit, known->invocation_id, known->activity, known->watchdog_usec);
}

static void on_unit_removed(void *userdata, const char *name) {
        struct manager *manager = userdata;
        struct unit *unit = unit_find(manager, name);

        if (!unit || !unit->path || unit->user)
                return;
        /* The news may be older than what is there by now: the unit may have been started again. */
        if (!tick_refresh(unit, false) ||
            (unit->source == MG_SOURCE_PROC && unit->n_processes == 0))
                unit_end(unit);
}

/* Without systemd's word nobody knows what is being started or stopped: what was said last may not be true any more. */
static void on_systemd_available(void *userdata, bool available) {
        struct manager *manager = userdata;

        if (available)
                return;
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                u->activity = MG_ACTIVITY_ACTIVE;
}

int discovery_start(struct manager *manager) {
        static const struct systemd_units_callbacks callbacks = {
                .changed = on_unit_changed,
                .removed = on_unit_removed,
                .available = on_systemd_available,
        };
        int r;

        if (!manager->options.by_hand) {
                r = systemd_units_new(manager->event, NULL, &callbacks, manager, &manager->systemd);
                if (r < 0)
                        journal_errno(LOG_WARNING, r, NULL, "Cannot ask systemd about units");
        }
        walk(manager);
        return sd_event_add_time_relative(
                        manager->event, &manager->discovery_source, CLOCK_MONOTONIC,
                        walk_interval(manager), WALK_ACCURACY_USEC, on_walk, manager);
}

void discovery_stop(struct manager *manager) {
        manager->systemd = systemd_units_free(manager->systemd);
        manager->discovery_source = sd_event_source_disable_unref(manager->discovery_source);
}
