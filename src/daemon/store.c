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
#include "daemon/cleanup.h"
#include "daemon/costs.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/store_file.h"
#include "daemon/unit.h"

#define COSTS_FILE  "costs"
#define PAUSES_FILE "paused"
/* A line of this file stands for everything: no unit has such a name. */
#define EVERYTHING "*"

#define FILE_MAX (4 * MG_MIB)

struct store {
        struct costs costs;
        char *pauses; /* lines: names of paused units, those not loaded too; or NULL */
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
        int r = store_file_read(manager->state_dir_fd, COSTS_FILE, FILE_MAX, &text, &length);

        if (r >= 0)
                r = strlen(text) == length ? costs_decode(&manager->store->costs, text) : -EBADMSG;
        if (r < 0 && r != -ENOENT)
                journal_state_ignored(COSTS_FILE, strerror(-r));
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
                        store_file_read(manager->state_dir_fd, PAUSES_FILE, FILE_MAX,
                                        &manager->store->pauses, &length);

        if (r < 0 && r != -ENOENT)
                journal_state_ignored(PAUSES_FILE, strerror(-r));
        manager->paused_by_hand = has_line(manager->store->pauses, EVERYTHING);
}

int store_open(struct manager *manager) {
        manager->store = calloc(1, sizeof(*manager->store));
        if (!manager->store)
                return -ENOMEM;
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

void store_load_costs(struct unit *unit) {
        costs_recall(&unit->manager->store->costs, unit->name, &unit->policy);
}

void store_load_unit(struct unit *unit) {
        unit->paused = has_line(unit->manager->store->pauses, unit->name);
        store_load_costs(unit);
}

void store_save_unit(struct unit *unit) {
        unit->state_dirty = false;
}

void store_forget_unit(struct unit *unit) {
        unit->state_dirty = false;
}

void store_save_costs(struct manager *manager) {
        MG_CLEANUP(freep) char *text = NULL;
        size_t length;
        int r = 0;

        if (manager->state_dir_fd < 0)
                return;
        for (struct unit *u = unit_first(manager); u && r >= 0; u = unit_next(u))
                r = costs_remember(&manager->store->costs, u->name, &u->policy);
        if (r >= 0)
                r = costs_encode(&manager->store->costs, &text, &length);
        if (r >= 0)
                r = store_file_replace(manager->state_dir_fd, COSTS_FILE, text, length);
        if (r < 0)
                tell_failure(manager, "learned costs", r);
}

/* Names that were paused before and are not loaded now stay paused, unless everything was resumed. */
static int print_pauses(const struct manager *manager, bool keep_unloaded, FILE *file) {
        const char *at = keep_unloaded ? manager->store->pauses : NULL;

        if (manager->paused_by_hand)
                fputs(EVERYTHING "\n", file);
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                if (u->paused)
                        fprintf(file, "%s\n", u->name);
        while (at && *at) {
                MG_CLEANUP(freep) char *name = strndup(at, strcspn(at, "\n"));

                if (!name)
                        return -ENOMEM;
                if (!mg_streq(name, EVERYTHING) && name[0] && !unit_find(manager, name))
                        fprintf(file, "%s\n", name);
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
                return -EROFS;
        r = store_file_replace(manager->state_dir_fd, PAUSES_FILE, text, length);
        if (r < 0)
                tell_failure(manager, "what is paused", r);
        return r;
}

void store_save_all(struct manager *manager) {
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                store_save_unit(u);
        store_save_costs(manager);
}
