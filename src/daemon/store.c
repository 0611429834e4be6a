/* SPDX-License-Identifier: MIT */
/* What outlives the daemon; see store.h. */
#include "daemon/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "daemon/costs.h"
#include "daemon/identity.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/state_file.h"
#include "daemon/store_file.h"
#include "daemon/unit.h"
#include "host/cleanup.h"

#define COSTS_FILE  "costs"
#define PAUSES_FILE "paused"
#define UNITS_DIR   "units"

/* A line of the pauses' file that stands for everything: no unit has such a name. */
#define EVERYTHING "*"

#define PAUSES_MAX MG_MIB

/* A full table of the longest paths, each with five numbers of up to 20 digits: what was written can be read. */
#define COSTS_FILE_MAX ((size_t) COSTS_MAX * (UNIT_PATH_MAX + 128))

/* Often enough that a killed daemon forgets little, seldom enough that a thousand units cost nothing. */
#define SAVE_INTERVAL_USEC (5 * MG_USEC_PER_MIN)

/* The table of costs is one file: changes of a minute go into it together. */
#define COSTS_DELAY_USEC MG_USEC_PER_MIN

/* A disk that was full may have room again. */
#define PAUSES_RETRY_USEC MG_USEC_PER_MIN

/* After a restart agents come back within seconds; later what was saved is too old to be taken up. */
#define LOAD_WINDOW_USEC MG_USEC_PER_MIN

/* Units that have not been there for so long may learn anew. */
#define STATE_AGE_USEC (24 * MG_USEC_PER_HOUR)

struct store {
        struct costs costs;
        uint64_t costs_changed_usec; /* MG_UNKNOWN: they are as in the file */
        char *pauses; /* lines: labels of paused units, those not loaded too; or NULL */
        uint64_t pauses_unsaved_usec; /* when they could not be written; MG_UNKNOWN: they are as in the file */
        uint64_t failed_at_usec;
};

/* A full disk is one line an hour, not one for each unit and minute. */
static void tell_failure(struct manager *manager, const char *what, int error) {
        struct store *store = manager->store;
        uint64_t now_usec = manager_now(manager);

        if (store->failed_at_usec != 0 && now_usec - store->failed_at_usec < MG_USEC_PER_HOUR)
                return;
        store->failed_at_usec = now_usec;
        journal_errno(LOG_WARNING, error, NULL, "Cannot save %s", what);
}

static void load_costs(struct manager *manager) {
        MG_CLEANUP(freep) char *text = NULL;
        size_t length;
        int r = store_file_read(manager->state_dir_fd, COSTS_FILE, COSTS_FILE_MAX, &text, &length);

        if (r >= 0)
                r = strlen(text) == length ? costs_decode(&manager->store->costs, text) : -EBADMSG;
        if (r < 0 && r != -ENOENT)
                journal_state_ignored(COSTS_FILE, "table of costs", strerror(-r));
}

/*
 * Each minute, from the tick: a disk that is slow to sync must not hold up the trims of a host in need. A crash of the host
 * may cost the table, which is then told, and learned again.
 */
static void save_costs(struct manager *manager) {
        MG_CLEANUP(freep) char *text = NULL;
        size_t length;
        int r;

        manager->store->costs_changed_usec = MG_UNKNOWN;
        if (manager->state_dir_fd < 0)
                return;
        r = costs_encode(&manager->store->costs, &text, &length);
        if (r >= 0)
                r = store_file_replace(manager->state_dir_fd, COSTS_FILE, text, length, false);
        if (r < 0)
                tell_failure(manager, "learned costs", r);
}

static bool has_line(const char *text, const char *line) {
        size_t length = strlen(line);

        for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
                if (strncmp(at, line, length) == 0 && (at[length] == '\n' || at[length] == '\0'))
                        return true;
        return false;
}

static void load_pauses(struct manager *manager) {
        size_t length;
        int r =
                        store_file_read(manager->state_dir_fd, PAUSES_FILE, PAUSES_MAX,
                                        &manager->store->pauses, &length);

        if (r < 0 && r != -ENOENT)
                journal_state_ignored(PAUSES_FILE, "list of pauses", strerror(-r));
        manager->paused_by_hand = has_line(manager->store->pauses, EVERYTHING);
}

static void open_units_directory(struct manager *manager) {
        int r = 0;

        if (mkdirat(manager->runtime_dir_fd, UNITS_DIR, 0700) < 0 && errno != EEXIST)
                r = -errno;
        if (r >= 0)
                manager->units_dir_fd =
                                openat(manager->runtime_dir_fd, UNITS_DIR,
                                       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (r >= 0 && manager->units_dir_fd < 0)
                r = -errno;
        if (r < 0)
                tell_failure(manager, "what is learned", r);
        else
                state_files_purge(manager->units_dir_fd, STATE_AGE_USEC);
}

static void read_boot_id(struct manager *manager) {
        ssize_t n =
                        file_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", manager->boot_id,
                                     sizeof(manager->boot_id));

        manager->boot_id[n > 0 ? strcspn(manager->boot_id, "\n") : 0] = '\0';
}

int store_open(struct manager *manager) {
        manager->store = calloc(1, sizeof(*manager->store));
        if (!manager->store)
                return -ENOMEM;
        manager->store->costs_changed_usec = MG_UNKNOWN;
        manager->store->pauses_unsaved_usec = MG_UNKNOWN;
        read_boot_id(manager);
        open_units_directory(manager);
        if (manager->state_dir_fd < 0)
                return 0;
        load_costs(manager);
        load_pauses(manager);
        return 0;
}

void store_close(struct manager *manager) {
        if (!manager->store)
                return;
        costs_done(&manager->store->costs);
        free(manager->store->pauses);
        free(MG_TAKE(manager->store));
}

/* Returns whether nothing else is to be expected. Of another life so far: the process that proves the contrary may still reconnect. */
static bool settle(const struct unit *unit, int loaded, const char *what) {
        if (loaded < 0 && loaded != -ENOENT && loaded != -ESTALE)
                journal_state_ignored(unit->name, what, strerror(-loaded));
        return loaded != -ESTALE;
}

static bool settle_history(struct unit *unit) {
        int r = history_file_load(unit);

        /* After an upgrade every unit of the host may have one. */
        return settle(unit, r == -EPROTONOSUPPORT ? -ENOENT : r, "history");
}

void store_load_unit(struct unit *unit) {
        unit->paused = has_line(unit->manager->store->pauses, unit_label(unit));
        costs_recall(&unit->manager->store->costs, unit_label(unit), &unit->policy);
}

void store_load_state(struct unit *unit) {
        bool is_young = manager_now(unit->manager) - unit->created_usec < LOAD_WINDOW_USEC;

        if (unit->manager->units_dir_fd < 0 || !is_young)
                return;
        if (!unit->state_settled)
                unit->state_settled = settle(unit, state_file_load(unit), "state");
        if (!unit->history_settled)
                unit->history_settled = settle_history(unit);
}

void store_save_unit(struct unit *unit) {
        struct store *store = unit->manager->store;
        int r = 0;

        unit->state_settled = true;
        unit->history_settled = true;
        unit->saved_usec = manager_now(unit->manager);
        if (unit->manager->units_dir_fd >= 0)
                r = history_file_save(unit);
        if (r < 0)
                tell_failure(unit->manager, "what was seen", r);
        /* What could be learned of a unit without an agent is soon learned again. */
        if (unit->n_agents == 0)
                return;
        if (unit->manager->units_dir_fd >= 0)
                r = state_file_save(unit);
        if (r < 0)
                tell_failure(unit->manager, "what was learned", r);
        if (costs_remember(&store->costs, unit_label(unit), &unit->policy) > 0 &&
            store->costs_changed_usec == MG_UNKNOWN)
                store->costs_changed_usec = unit->saved_usec;
}

static int write_pauses(struct manager *manager, bool sync) {
        struct store *store = manager->store;
        int r = store_file_replace(
                        manager->state_dir_fd, PAUSES_FILE, store->pauses, strlen(store->pauses),
                        sync);

        store->pauses_unsaved_usec = r < 0 ? manager_now(manager) : MG_UNKNOWN;
        if (r < 0)
                tell_failure(manager, "what is paused", r);
        return r;
}

void store_tick(struct manager *manager, uint64_t now_usec) {
        uint64_t changed_usec = manager->store->costs_changed_usec;
        uint64_t unsaved_usec = manager->store->pauses_unsaved_usec;

        if (changed_usec != MG_UNKNOWN && now_usec - changed_usec >= COSTS_DELAY_USEC)
                save_costs(manager);
        if (unsaved_usec != MG_UNKNOWN && now_usec - unsaved_usec >= PAUSES_RETRY_USEC)
                (void) write_pauses(manager, false);
}

void store_save_old(struct unit *unit, uint64_t now_usec) {
        if (now_usec - unit->saved_usec >= SAVE_INTERVAL_USEC)
                store_save_unit(unit);
}

void store_save_all(struct manager *manager) {
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                store_save_unit(u);
        if (manager->store->costs_changed_usec != MG_UNKNOWN)
                save_costs(manager);
        if (manager->store->pauses_unsaved_usec != MG_UNKNOWN)
                (void) write_pauses(manager, true);
}

void store_forget_unit(struct unit *unit) {
        if (unit->manager->units_dir_fd >= 0)
                state_files_remove(unit);
}

/* Units that were paused before and are not loaded now stay paused, unless everything was resumed. */
static int print_pauses(const struct manager *manager, bool keep_unloaded, FILE *file) {
        const char *at = keep_unloaded ? manager->store->pauses : NULL;

        if (manager->paused_by_hand)
                fputs(EVERYTHING "\n", file);
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                if (u->paused)
                        fprintf(file, "%s\n", unit_label(u));
        while (at && *at) {
                MG_CLEANUP(freep) char *label = strndup(at, strcspn(at, "\n"));

                if (!label)
                        return -ENOMEM;
                if (!mg_streq(label, EVERYTHING) && label[0] && !unit_find_label(manager, label))
                        fprintf(file, "%s\n", label);
                at += strcspn(at, "\n");
                at += *at == '\n';
        }
        return 0;
}

int store_save_pauses(struct manager *manager, bool keep_unloaded) {
        char *text = NULL;
        size_t length;
        FILE *file = open_memstream(&text, &length);
        int r;

        if (!file)
                return -ENOMEM;
        r = print_pauses(manager, keep_unloaded, file);
        if (fclose(file) != 0)
                r = -ENOMEM;
        if (r < 0) {
                free(text);
                return r;
        }
        free(manager->store->pauses);
        manager->store->pauses = text;
        if (manager->state_dir_fd < 0)
                return -ENOENT;
        /* Only an operator's command gets here: it may wait for the disk. */
        return write_pauses(manager, true);
}
