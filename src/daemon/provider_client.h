/* SPDX-License-Identifier: MIT */
/* One connection of the provider, for the two modules that serve it. Layer: daemon. */
#pragma once

#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/list.h"
#include "daemon/provider.h"

struct provider {
        struct manager *manager;
        struct mg_list clients; /* struct pressure_client.all */
        size_t n_clients;
        size_t n_silent;   /* of these, without a token so far, and not yet told about */
        size_t n_unplaced; /* accepted, but without a unit: it ended, and may come back */
        int listen_fd;
        bool own_socket; /* made here, not by the service manager */
        bool full_told;
        sd_event_source *listen_source;
};

/* Its size is all that a client costs here, beside its event source: nothing it sends is kept. */
struct pressure_client {
        struct mg_list all;
        struct provider *provider;
        struct unit *unit; /* NULL: not accepted, or its unit is gone */
        struct mg_pressure_client state;
        sd_event_source *source;
        int fd;
        pid_t pid;
        uid_t uid;
        uint64_t start_time;
        uint64_t since_usec;
        bool silent; /* counted in n_silent */
};

/* Listens while there is room, again after descriptors were short. */
void provider_listen(struct provider *provider);

/* FD becomes the client's, or is closed. STORED: the service manager has it already. */
int client_new(struct provider *provider, int fd, bool stored);
struct pressure_client *client_free(struct pressure_client *client);

/* Finds the unit of an accepted client. Where it cannot be had, the client stays unplaced. */
void client_place(struct pressure_client *client);

/* The client's unit has ended. */
void client_unplace(struct pressure_client *client);

/* Sends the byte if the rules allow. Returns whether it has got one. */
bool client_tell(struct pressure_client *client, enum mg_pressure_cause cause, uint64_t now_usec);

void client_tell_problem(pid_t pid, const char *problem);

/* It says nothing, or half of a token: said once. */
void client_complain_of_silence(struct pressure_client *client);

static inline struct pressure_client *client_of(struct mg_list *entry) {
        return MG_CONTAINER_OF(entry, struct pressure_client, all);
}
