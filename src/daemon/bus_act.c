/* SPDX-License-Identifier: MIT */
/* The methods of org.memguard1.Manager that act. Layer: daemon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/bus_server.h"
#include "daemon/journal.h"
#include "host/bus_api.h"
#include "host/cleanup.h"

/* A call whose answer waits for the end of the round. Owned by the round's handler, which comes exactly once. */
struct pending_trim {
        sd_bus_message *call;
};

static struct pending_trim *pending_trim_free(struct pending_trim *pending) {
        sd_bus_message_unref(pending->call);
        free(pending);
        return NULL;
}
MG_DEFINE_CLEANUP(struct pending_trim *, pending_trim_free)

static int reply_trimmed(const struct pending_trim *pending, const struct trim_result *result) {
        if (result->status == TRIM_GONE)
                return sd_bus_reply_method_errorf(
                                pending->call, MG_BUS_ERROR_NO_SUCH_UNIT, "%s went away meanwhile",
                                result->unit);
        MG_CLEANUP(bus_drop_reply) struct dict dict = bus_begin_reply(pending->call);
        bus_trim_result(&dict, result, &result->survey);
        return bus_send_reply(&dict);
}

/* The client may be gone by now: nobody reads the answer, and nobody minds. */
static void on_trimmed(void *userdata, const struct trim_result *result) {
        MG_CLEANUP(pending_trim_freep) struct pending_trim *pending = userdata;
        int r = reply_trimmed(pending, result);

        if (r < 0)
                journal_errno(LOG_DEBUG, r, NULL, "the answer to a trim by hand found nobody");
}

static int start_trim(sd_bus_message *call, struct unit *unit, bool dry_run) {
        MG_CLEANUP(pending_trim_freep) struct pending_trim *pending = calloc(1, sizeof(*pending));
        int r;

        if (!pending)
                return -ENOMEM;
        pending->call = sd_bus_message_ref(call);
        r = trim_by_hand(unit, dry_run, on_trimmed, pending);
        if (r < 0)
                return r;
        (void) MG_TAKE(pending);
        return 1;
}

int bus_trim_unit(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct unit *unit = NULL;
        const char *name;
        int dry_run;
        int r = sd_bus_message_read(call, "sb", &name, &dry_run);

        if (r < 0)
                return r;
        r = bus_find_unit(userdata, name, error, &unit);
        if (r < 0)
                return r;
        /* To ask what a trim would bring is reading. */
        if (!dry_run) {
                r =
                                bus_authorize(userdata, call, MG_BUS_ACTION_TRIM, unit_label(unit),
                                              bus_trim_unit, error);
                if (r <= 0)
                        return r < 0 ? r : 1;
        }
        r = start_trim(call, unit, dry_run);
        if (r == -EBUSY)
                return sd_bus_error_setf(
                                error, MG_BUS_ERROR_NOT_NOW, "%s is being trimmed already", name);
        return r;
}

static int set_config_error(sd_bus_error *error, const struct mg_problems *problems) {
        MG_CLEANUP(freep) char *message = NULL;
        size_t length;
        FILE *file = open_memstream(&message, &length);

        if (!file)
                return -ENOMEM;
        for (size_t i = 0; i < problems->n_items; i++) {
                char line[MG_PROBLEM_MAX];

                fprintf(file, "%s%s", i > 0 ? "\n" : "", problem_format(&problems->items[i], line));
        }
        if (fclose(file) != 0)
                return -ENOMEM;
        return sd_bus_error_set(error, MG_BUS_ERROR_CONFIG_INVALID, message);
}

int bus_reload(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        struct bus_server *server = userdata;
        int r = bus_authorize(server, call, MG_BUS_ACTION_RELOAD, "", bus_reload, error);

        if (r <= 0)
                return r < 0 ? r : 1;
        r = manager_reload(server->manager, &problems);
        if (r == -EINVAL)
                return set_config_error(error, &problems);
        if (r < 0)
                return r;
        MG_CLEANUP(bus_drop_reply) struct dict dict = bus_begin_list(call, "s");
        for (size_t i = 0; i < problems.n_items; i++) {
                char line[MG_PROBLEM_MAX];

                dict_item(&dict, problem_format(&problems.items[i], line));
        }
        dict_end(&dict);
        return bus_send_reply(&dict);
}

static uid_t sender_uid(sd_bus_message *call) {
        sd_bus_creds *creds = NULL;
        uid_t uid = (uid_t) -1;

        if (sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID, &creds) >= 0)
                (void) sd_bus_creds_get_euid(creds, &uid);
        sd_bus_creds_unref(creds);
        return uid;
}

static int set_unsaved_error(sd_bus_error *error, const char *unit, bool paused, int r) {
        return sd_bus_error_setf(
                        error, MG_BUS_ERROR_NOT_SAVED,
                        "%s is %s now, but this could not be written (%s): it will not outlast a restart of memguardd",
                        unit[0] != '\0' ? unit : "Everything", paused ? "paused" : "resumed",
                        strerror(-r));
}

static int set_paused(sd_bus_message *call, void *userdata, sd_bus_error *error, bool paused) {
        const char *action = paused ? MG_BUS_ACTION_PAUSE : MG_BUS_ACTION_RESUME;
        struct bus_server *server = userdata;
        struct mg_journal_unit about = {};
        struct unit *unit = NULL;
        const char *name;
        int r = sd_bus_message_read(call, "s", &name);

        if (r >= 0 && name[0] != '\0')
                r = bus_find_unit(server, name, error, &unit);
        if (r < 0)
                return r;
        r =
                        bus_authorize(server, call, action, unit ? unit_label(unit) : "",
                                      paused ? bus_pause : bus_resume, error);
        if (r <= 0)
                return r < 0 ? r : 1;
        if (unit)
                about = (struct mg_journal_unit){ .name = unit->name, .user = unit->user };
        r = manager_set_paused(server->manager, unit, paused);
        if (paused)
                journal_paused(&about, sender_uid(call));
        else
                journal_resumed(&about, sender_uid(call));
        if (r < 0)
                return set_unsaved_error(error, name, paused, r);
        return sd_bus_reply_method_return(call, "");
}

int bus_pause(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return set_paused(call, userdata, error, true);
}

int bus_resume(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        return set_paused(call, userdata, error, false);
}

int bus_set_log_level(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct bus_server *server = userdata;
        const char *name;
        int level, r = sd_bus_message_read(call, "s", &name);

        if (r < 0)
                return r;
        level = log_level_from_string(name);
        if (level < 0)
                return sd_bus_error_setf(
                                error, SD_BUS_ERROR_INVALID_ARGS,
                                "Unknown log level '%s': emerg alert crit err warning notice info debug",
                                name);
        manager_set_log_level(server->manager, level);
        return sd_bus_reply_method_return(call, "");
}
