/* SPDX-License-Identifier: MIT */
/*
 * The triggers and whom they are for; see pressure.h. Layer: daemon.
 *
 * Triggers are few and change seldom, so the set is derived anew whenever the units it is for have changed, and matched with what is armed.
 */
#include "daemon/pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/provider.h"
#include "daemon/tick.h"
#include "daemon/unit.h"
#include "host/cgroup_tree.h"
#include "host/meminfo.h"
#include "host/psi.h"

/* Each is a descriptor, and on kernels before 6.5 a kernel thread for its cgroup. Those at the top see what the rest would have seen. */
#define TRIGGERS_MAX 256

/* Units are measured outside of the tick so often at most. */
#define EXTRA_TICK_USEC MG_USEC_PER_SEC

/* What failed is tried again, and a place that was gone looked for. */
#define RETRY_USEC MG_USEC_PER_MIN

/* How long the journal is silent about the same place: pressure that lasts is one event. */
#define TELL_PLACE_USEC (10 * MG_USEC_PER_MIN)

/* Room for "PSI of " and a path, which is cut where it is longer. */
#define ORIGIN_TEXT_MAX 512

/* It has under 2 KiB on 6.18. */
#define MEMINFO_TEXT_MAX 8192

struct trigger {
        struct pressure *pressure;
        char *path; /* "": the host */
        int fd;
        sd_event_source *source; /* NULL: could not be armed */
        uint64_t told_usec;      /* 0: never */
        bool is_short; /* the place itself is short of memory, as of when it was last set off */
        bool wanted;
};

struct pressure {
        struct manager *manager;
        struct trigger *triggers[TRIGGERS_MAX];
        size_t n_triggers;
        size_t n_armed;
        uint64_t signature; /* of the units the set is for */
        uint32_t high_permyriad;
        uint64_t retry_usec; /* MG_UNKNOWN: nothing failed */
        bool absent_told;
};

bool pressure_concerns(const struct unit *unit) {
        return unit->n_agents > 0 && unit->config.mode != MG_MODE_OFF;
}

/* Clients of the protocol follow us instead of their own trigger, whatever the configuration says of their unit. */
static bool is_watched(const struct unit *unit) {
        return unit->source == MG_SOURCE_CGROUP && (pressure_concerns(unit) || unit->clients.n > 0);
}

/* ---- triggers ---- */

static void trigger_disarm(struct trigger *trigger) {
        if (trigger->source)
                trigger->pressure->n_armed--;
        trigger->source = sd_event_source_disable_unref(trigger->source);
        file_closep(&trigger->fd);
}

static struct trigger *trigger_free(struct trigger *trigger) {
        if (!trigger)
                return NULL;
        trigger_disarm(trigger);
        free(trigger->path);
        free(trigger);
        return NULL;
}
MG_DEFINE_CLEANUP(struct trigger *, trigger_free)

static bool is_below(const struct unit *unit, const struct trigger *trigger) {
        size_t length = strlen(trigger->path);

        return length == 0 || (unit->path && pressure_is_at(unit->path, trigger->path, length));
}

/* No trigger further down sees the unit: its own, or what has to stand in where that could not be armed. */
static bool is_closest(const struct unit *unit, const struct trigger *trigger) {
        const struct pressure *pressure = trigger->pressure;

        for (size_t i = 0; i < pressure->n_triggers; i++) {
                const struct trigger *other = pressure->triggers[i];

                if (other->source && strlen(other->path) > strlen(trigger->path) &&
                    is_below(unit, other))
                        return false;
        }
        return true;
}

static bool host_is_short(void) {
        char text[MEMINFO_TEXT_MAX];
        uint64_t total, available;

        return file_read_at(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) < 0 ||
               meminfo_parse(text, &total, &available) < 0 ||
               pressure_is_short(total - available, total);
}

static bool cgroup_is_short(const struct manager *manager, const char *path) {
        MG_CLEANUP(file_closep) int dir_fd = cgroup_open_directory(manager->cgroup_root, path);
        struct mg_memory memory;

        return dir_fd < 0 || cgroup_limits(&(struct mg_cgroup){ .dir_fd = dir_fd }, &memory) < 0 ||
               pressure_is_short(memory.current_bytes, MG_MIN(memory.high_bytes, memory.max_bytes));
}

/* Where that cannot be seen it is: pressure is never overlooked. The root has a limit where it is a container's. */
static bool place_is_short(const struct trigger *trigger) {
        const struct manager *manager = trigger->pressure->manager;

        if (trigger->path[0] != '\0')
                return cgroup_is_short(manager, trigger->path);
        return host_is_short() || (manager->use_cgroups && cgroup_is_short(manager, "/"));
}

/*
 * Pressure of a cgroup counts in all above it: it is for the units below only where it began at the place, or where the place stands
 * in for a trigger of the unit's own.
 */
static bool is_meant(const struct unit *unit, const struct trigger *trigger) {
        return is_below(unit, trigger) &&
               (trigger->is_short || (is_watched(unit) && is_closest(unit, trigger)));
}

/* Marks the units at the place. Returns whether one of them was not under pressure before. */
static bool mark_units(const struct trigger *trigger, uint64_t now_usec) {
        bool is_news = false;

        for (struct unit *u = unit_first(trigger->pressure->manager); u; u = unit_next(u)) {
                if (!pressure_concerns(u) || !is_meant(u, trigger))
                        continue;
                is_news |= !pressure_is_on(u, now_usec);
                u->pressure.until_usec = now_usec + PRESSURE_LASTS_USEC;
        }
        return is_news;
}

/* As of the last tick: what would come back by the trims that are due now. */
static uint64_t freeable_at(const struct trigger *trigger) {
        uint64_t sum = 0;

        for (struct unit *u = unit_first(trigger->pressure->manager); u; u = unit_next(u)) {
                const struct mg_account *account = &u->decision.account;

                if (pressure_concerns(u) && is_meant(u, trigger) &&
                    u->config.mode == MG_MODE_TRIM && account->known &&
                    account->freeable_bytes >= u->config.min_gain_bytes)
                        sum = mg_add_cap(sum, account->freeable_bytes);
        }
        return sum;
}

static void tell_place(struct trigger *trigger, uint64_t now_usec) {
        const struct unit *unit = NULL;
        char origin[ORIGIN_TEXT_MAX];
        struct mg_text text;
        uint64_t freeable_bytes = freeable_at(trigger);

        if (freeable_bytes == 0 ||
            (trigger->told_usec > 0 && now_usec - trigger->told_usec < TELL_PLACE_USEC))
                return;
        trigger->told_usec = now_usec;
        if (trigger->path[0] != '\0')
                unit = unit_find_key(trigger->pressure->manager, trigger->path, NULL);
        text_init(&text, origin, sizeof(origin));
        text_put(&text, "PSI of ");
        text_put(&text, trigger->path[0] != '\0' ? trigger->path : "the host");
        journal_pressure(&(struct mg_journal_pressure){
                        .unit = unit ? unit_for_journal(unit) : (struct mg_journal_unit){},
                        .origin = origin,
                        .freeable_bytes = freeable_bytes,
        });
}

static void tell_clients(const struct trigger *trigger) {
        struct manager *manager = trigger->pressure->manager;

        if (provider_clients(manager->provider) == 0)
                return;
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                if (u->clients.n > 0 && is_meant(u, trigger))
                        provider_mark(u,
                                      is_closest(u, trigger) ? MG_PRESSURE_OWN : MG_PRESSURE_ABOVE);
        (void) provider_tell(manager->provider);
}

static int on_trigger(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct trigger *trigger = userdata;
        struct pressure *pressure = trigger->pressure;
        uint64_t now_usec = manager_now(pressure->manager);

        if (events & (EPOLLERR | EPOLLHUP)) {
                /* The cgroup is gone; left armed, this would be said without end. */
                trigger_disarm(trigger);
                pressure->retry_usec = MG_MIN(pressure->retry_usec, now_usec + RETRY_USEC);
                return 0;
        }
        trigger->is_short = place_is_short(trigger);
        if (mark_units(trigger, now_usec))
                tick_between(pressure->manager, EXTRA_TICK_USEC);
        tell_clients(trigger);
        tell_place(trigger, now_usec);
        return 0;
}

/* *RET_GONE: it is the cgroup that is missing, not its pressure file. */
static int open_trigger(const struct pressure *pressure, struct trigger *trigger, bool *ret_gone) {
        MG_CLEANUP(file_closep) int dir_fd = -EBADF;
        int r;

        *ret_gone = false;
        if (trigger->path[0] == '\0')
                return psi_arm(AT_FDCWD, MG_PSI_HOST_FILE, pressure->high_permyriad, &trigger->fd);
        dir_fd = cgroup_open_directory(pressure->manager->cgroup_root, trigger->path);
        if (dir_fd < 0) {
                *ret_gone = dir_fd == -ENOENT || dir_fd == -ENODEV;
                return dir_fd;
        }
        r = psi_arm(dir_fd, "memory.pressure", pressure->high_permyriad, &trigger->fd);
        *ret_gone = r == -ENODEV ||
                    (r == -ENOENT && faccessat(dir_fd, "cgroup.procs", F_OK, 0) < 0);
        return r;
}

static int trigger_arm(struct trigger *trigger, bool *ret_gone) {
        struct pressure *pressure = trigger->pressure;
        int r = open_trigger(pressure, trigger, ret_gone);

        if (r < 0)
                return r;
        r =
                        sd_event_add_io(pressure->manager->event, &trigger->source, trigger->fd,
                                        EPOLLPRI, on_trigger, trigger);
        if (r < 0) {
                file_closep(&trigger->fd);
                return r;
        }
        pressure->n_armed++;
        return 0;
}

/* What fails is tried again later, and said once in the daemon's life. */
static void arm_or_tell(struct trigger *trigger, uint64_t now_usec) {
        struct pressure *pressure = trigger->pressure;
        bool gone;
        int r = trigger_arm(trigger, &gone);

        if (r >= 0)
                return;
        pressure->retry_usec = MG_MIN(pressure->retry_usec, now_usec + RETRY_USEC);
        if (gone || pressure->absent_told)
                return;
        pressure->absent_told = true;
        journal_no_pressure(r);
}

/* ---- the set of them ---- */

static struct trigger *find_trigger(
                const struct pressure *pressure,
                const struct mg_pressure_place *place) {
        for (size_t i = 0; i < pressure->n_triggers; i++) {
                struct trigger *trigger = pressure->triggers[i];

                if (strlen(trigger->path) == place->length &&
                    memcmp(trigger->path, place->path, place->length) == 0)
                        return trigger;
        }
        return NULL;
}

static int add_trigger(struct pressure *pressure, const struct mg_pressure_place *place) {
        MG_CLEANUP(trigger_freep) struct trigger *trigger = calloc(1, sizeof(*trigger));

        if (!trigger || pressure->n_triggers == TRIGGERS_MAX)
                return -ENOMEM;
        trigger->pressure = pressure;
        trigger->fd = -EBADF;
        trigger->wanted = true;
        trigger->path = strndup(place->path, place->length);
        if (!trigger->path)
                return -ENOMEM;
        pressure->triggers[pressure->n_triggers++] = MG_TAKE(trigger);
        return 0;
}

static void drop_unwanted(struct pressure *pressure) {
        size_t kept = 0;

        for (size_t i = 0; i < pressure->n_triggers; i++) {
                struct trigger *trigger = pressure->triggers[i];

                if (trigger->wanted)
                        pressure->triggers[kept++] = trigger;
                else
                        trigger_free(trigger);
        }
        pressure->n_triggers = kept;
}

/* Room is made before new ones come, so that the limit holds at every moment. */
static int match(struct pressure *pressure, const struct mg_pressure_place *places, size_t n) {
        int r = 0;

        for (size_t i = 0; i < pressure->n_triggers; i++)
                pressure->triggers[i]->wanted = false;
        for (size_t i = 0; i < n; i++) {
                struct trigger *trigger = find_trigger(pressure, &places[i]);

                if (trigger)
                        trigger->wanted = true;
        }
        drop_unwanted(pressure);
        for (size_t i = 0; i < n && r >= 0; i++)
                if (!find_trigger(pressure, &places[i]))
                        r = add_trigger(pressure, &places[i]);
        return r;
}

static int derive(struct pressure *pressure) {
        const struct manager *manager = pressure->manager;
        struct mg_pressure_place places[TRIGGERS_MAX];
        const char **paths = calloc(manager->n_units + 1, sizeof(*paths));
        size_t n = 0;
        int r;

        if (!paths)
                return -ENOMEM;
        for (const struct unit *u = unit_first(manager); u; u = unit_next(u))
                if (is_watched(u))
                        paths[n++] = u->path;
        n = pressure_plan(paths, n, places, TRIGGERS_MAX);
        r = match(pressure, places, n);
        free(paths);
        return r;
}

static void arm_all(struct pressure *pressure, uint64_t now_usec) {
        pressure->retry_usec = MG_UNKNOWN;
        for (size_t i = 0; i < pressure->n_triggers; i++)
                if (!pressure->triggers[i]->source)
                        arm_or_tell(pressure->triggers[i], now_usec);
}

/* Another value as soon as another unit, or the same with another cgroup, is concerned. Order does not matter. */
static uint64_t signature_of(const struct manager *manager) {
        uint64_t sum = 1;

        for (const struct unit *u = unit_first(manager); u; u = unit_next(u))
                if (is_watched(u))
                        sum += ((uintptr_t) u ^ u->cgroup.inode) * UINT64_C(0x9e3779b97f4a7c15);
        return sum;
}

void pressure_follow(struct pressure *pressure, uint64_t now_usec) {
        uint32_t high_permyriad = pressure->manager->settings.pressure_high_permyriad;
        uint64_t signature = signature_of(pressure->manager);

        if (signature == pressure->signature && high_permyriad == pressure->high_permyriad &&
            now_usec < pressure->retry_usec)
                return;
        if (high_permyriad != pressure->high_permyriad)
                for (size_t i = 0; i < pressure->n_triggers; i++)
                        trigger_disarm(pressure->triggers[i]);
        pressure->high_permyriad = high_permyriad;
        if (derive(pressure) >= 0)
                pressure->signature = signature;
        arm_all(pressure, now_usec);
}

/* ---- all of it ---- */

bool pressure_is_armed(const struct pressure *pressure) {
        return pressure && pressure->n_armed > 0;
}

int pressure_new(struct manager *manager, struct pressure **ret_pressure) {
        struct pressure *pressure = calloc(1, sizeof(*pressure));

        if (!pressure)
                return -ENOMEM;
        pressure->manager = manager;
        pressure->retry_usec = MG_UNKNOWN;
        pressure_follow(pressure, manager_now(manager));
        *ret_pressure = pressure;
        return 0;
}

struct pressure *pressure_free(struct pressure *pressure) {
        if (!pressure)
                return NULL;
        for (size_t i = 0; i < pressure->n_triggers; i++)
                trigger_free(pressure->triggers[i]);
        free(pressure);
        return NULL;
}
