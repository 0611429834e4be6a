/* SPDX-License-Identifier: MIT */
/* What the files of the bus server share. Layer: daemon; for bus*.c alone. */
#pragma once

#include <systemd/sd-bus.h>

#include "base/list.h"
#include "daemon/bus.h"
#include "daemon/bus_units.h"

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
};

/* Gives a connection all objects and interfaces there are. */
int bus_publish(struct bus_server *server, sd_bus *bus);

/* org.freedesktop.LogControl1, so that `systemctl service-log-level memguard.service` works. */
int bus_publish_log_control(struct bus_server *server, sd_bus *bus);

/* Serves listen_fd. */
int bus_peers_start(struct bus_server *server);
void bus_peers_done(struct bus_server *server);

void bus_system_start(struct bus_server *server);
void bus_system_done(struct bus_server *server);

/* Sets the error NoSuchUnit. */
int bus_find_unit(
                struct bus_server *server,
                const char *name,
                sd_bus_error *error,
                struct unit **ret_unit);

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
