/* SPDX-License-Identifier: MIT */
/* What the files of the bus server share. Layer: daemon; for bus*.c alone. */
#pragma once

#include <systemd/sd-bus.h>

#include "base/list.h"
#include "daemon/bus.h"
#include "daemon/bus_units.h"
#include "daemon/unit_facts.h"

/* After the agents and the tick: who asks often must not make memguard late. */
#define BUS_PRIORITY (SD_EVENT_PRIORITY_NORMAL + 10)

struct bus_server {
        struct manager *manager;

        /* peer to peer */
        int listen_fd;
        bool socket_own; /* not handed over by the service manager */
        sd_event_source *listen_source;
        sd_event_source *listen_retry_source; /* no descriptor was free: later */
        struct mg_list peers;
        size_t n_peers;

        /* the system bus */
        sd_bus *system;
        sd_event_source *system_retry_source;
        uint64_t system_retry_usec;
        bool system_refused; /* the policy does not let us have the name: said once */
        bool system_ready;   /* the name is ours */

        struct unit_facts facts; /* of the object that is being read */
        uint64_t n_lists;        /* answers that list units by name: see struct unit.listed */

        /* calls that wait for polkit */
        struct mg_list authorizations;
        size_t n_authorizations;
        sd_bus_message *granted; /* the one that runs now, with its blessing */
};

/* Gives a connection all objects and interfaces there are. */
int bus_publish(struct bus_server *server, sd_bus *bus);

/* org.freedesktop.LogControl1, so that `systemctl service-log-level memguard.service` works. */
int bus_publish_log_control(struct bus_server *server, sd_bus *bus);

/* org.memguard1.Unit, an object for each unit, and ObjectManager. */
int bus_publish_units(struct bus_server *server, sd_bus *bus);
int bus_unit_path(const struct unit *unit, char **ret_path);

/* The name is ours: from now on changes are told. */
void bus_signals_begin(struct bus_server *server);

/* Serves listen_fd. */
int bus_peers_start(struct bus_server *server);
void bus_peers_done(struct bus_server *server);

void bus_system_start(struct bus_server *server);
/* Lets go of the bus and comes back to it in a moment; may be called from its own handlers. */
void bus_system_leave(struct bus_server *server);
void bus_system_done(struct bus_server *server);

/* Sets the error NoSuchUnit. */
int bus_find_unit(
                struct bus_server *server,
                const char *name,
                sd_bus_error *error,
                struct unit **ret_unit);

/*
 * Whether CALL's sender may do ACTION (to UNIT; "": to everything). 1: yes. 0: polkit has been asked and HANDLER will run again
 * when it says yes, so the caller returns 1 and does nothing. Negative: no, with the error set.
 */
int bus_authorize(
                struct bus_server *server,
                sd_bus_message *call,
                const char *action,
                const char *unit,
                sd_bus_message_handler_t handler,
                sd_bus_error *error);
/* Of the system bus, before that is closed: those who wait will not be answered. */
void bus_polkit_forget(struct bus_server *server);

/*
 * The reply to CALL, or a list of ELEMENT that dict_end() closes: for MG_CLEANUP(bus_drop_reply). An error sticks like any
 * other of a dictionary.
 */
struct dict bus_begin_reply(sd_bus_message *call);
struct dict bus_begin_list(sd_bus_message *call, const char *element);
void bus_drop_reply(struct dict *dict);

/* Sends what was written, unless an error stuck; returns what a method handler does. */
int bus_send_reply(struct dict *dict);

/* The methods; USERDATA is the server. */
int bus_get_host(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_list_units(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_list_processes(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_get_history(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_explain(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_advise(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_get_log_level(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_trim_unit(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_reload(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_pause(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_resume(sd_bus_message *call, void *userdata, sd_bus_error *error);
int bus_set_log_level(sd_bus_message *call, void *userdata, sd_bus_error *error);
