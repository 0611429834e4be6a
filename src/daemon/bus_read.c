/* SPDX-License-Identifier: MIT */
/* The methods of org.memguard1.Manager that read: for everyone. Layer: daemon. */
#include <stdlib.h>

#include "daemon/bus_server.h"
#include "daemon/journal.h"
#include "host/bus_api.h"

/* Each name is looked for among all units: 4096 names among as many took 90 ms of CPU time (2026-12-01), and everybody waits. */
#define NAMES_MAX 1024u

int bus_find_unit(
                struct bus_server *server,
                const char *name,
                sd_bus_error *error,
                struct unit **ret_unit) {
        struct unit *unit = unit_find(server->manager, name);

        if (!unit)
                return sd_bus_error_setf(
                                error, MG_BUS_ERROR_NO_SUCH_UNIT,
                                "No unit %s with a process is known", name);
        *ret_unit = unit;
        return 0;
}

struct dict bus_begin_reply(sd_bus_message *call) {
        struct dict dict = {};

        dict.error = sd_bus_message_new_method_return(call, &dict.message);
        return dict;
}

struct dict bus_begin_list(sd_bus_message *call, const char *element) {
        struct dict dict = bus_begin_reply(call);

        if (dict.error >= 0)
                dict.error = sd_bus_message_open_container(dict.message, 'a', element);
        return dict;
}

void bus_drop_reply(struct dict *dict) {
        sd_bus_message_unref(dict->message);
}

int bus_send_reply(struct dict *dict) {
        int r = dict->error < 0 ? dict->error : sd_bus_send(NULL, dict->message, NULL);

        return r < 0 ? r : 1;
}

int bus_get_host(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        MG_CLEANUP(bus_drop_reply) struct dict dict = bus_begin_reply(call);
        struct bus_server *server = userdata;

        bus_host(&dict, server->manager);
        return bus_send_reply(&dict);
}

static size_t count_strings(char **strings) {
        size_t n = 0;

        while (strings && strings[n])
                n++;
        return n;
}

/* Each unit once, however often it is named: a few bytes of a request must not become a row each. */
static int put_named_units(
                struct dict *dict,
                struct bus_server *server,
                char **names,
                sd_bus_error *error) {
        uint64_t answer = ++server->n_lists;

        for (char **name = names; *name; name++) {
                struct unit *unit = NULL;
                int r = bus_find_unit(server, *name, error, &unit);

                if (r < 0)
                        return r;
                if (unit->listed != answer)
                        bus_unit(dict, unit);
                unit->listed = answer;
        }
        return 0;
}

static void free_strings(char ***strings) {
        for (char **s = *strings; s && *s; s++)
                free(*s);
        free(*strings);
}

int bus_list_units(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        MG_CLEANUP(bus_drop_reply) struct dict dict = bus_begin_list(call, "a{sv}");
        MG_CLEANUP(free_strings) char **names = NULL;
        struct bus_server *server = userdata;
        int r = sd_bus_message_read_strv(call, &names);
        size_t n_names = count_strings(names);

        if (r < 0)
                return r;
        if (n_names > NAMES_MAX)
                return sd_bus_error_setf(
                                error, SD_BUS_ERROR_INVALID_ARGS,
                                "%zu names are more than %u: name none to get all units", n_names,
                                NAMES_MAX);
        if (n_names > 0) {
                r = put_named_units(&dict, server, names, error);
                if (r < 0)
                        return r;
        } else
                for (struct unit *u = unit_first(server->manager); u; u = unit_next(u))
                        bus_unit(&dict, u);
        dict_end(&dict);
        return bus_send_reply(&dict);
}

int bus_list_processes(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        MG_CLEANUP(bus_drop_reply) struct dict dict = bus_begin_list(call, "a{sv}");
        struct bus_server *server = userdata;
        struct unit *unit = NULL;
        const char *name;
        int r = sd_bus_message_read(call, "s", &name);

        if (r >= 0 && name[0] != '\0')
                r = bus_find_unit(server, name, error, &unit);
        if (r < 0)
                return r;
        bus_processes(&dict, server->manager, unit);
        dict_end(&dict);
        return bus_send_reply(&dict);
}

int bus_explain(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        MG_CLEANUP(bus_drop_reply) struct dict dict = bus_begin_reply(call);
        struct unit *unit = NULL;
        const char *name;
        int r = sd_bus_message_read(call, "s", &name);

        if (r >= 0)
                r = bus_find_unit(userdata, name, error, &unit);
        if (r < 0)
                return r;
        bus_explanation(&dict, unit);
        return bus_send_reply(&dict);
}

int bus_get_log_level(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct bus_server *server = userdata;

        return sd_bus_reply_method_return(
                        call, "s", log_level_to_string(server->manager->log_level));
}
