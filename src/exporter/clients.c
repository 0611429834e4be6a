/* SPDX-License-Identifier: MIT */
/* HTTP clients by age; see clients.h. Layer: exporter. */
#include "exporter/clients.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/macros.h"

static struct client *client_of(struct mg_list *entry) {
        return MG_CONTAINER_OF(entry, struct client, by_age);
}

static void hang_up(struct client *client) {
        if (client->fd >= 0)
                (void) shutdown(client->fd, SHUT_RDWR);
        client->fd = -EBADF;
}

void clients_init(struct clients *clients) {
        *clients = (struct clients){};
        list_init(&clients->by_age);
}

/* The oldest that still has its connection: the others are on their way out. */
static void make_room(struct clients *clients) {
        MG_LIST_FOREACH(entry, &clients->by_age) {
                if (client_of(entry)->fd < 0)
                        continue;
                hang_up(client_of(entry));
                return;
        }
}

struct client *client_new(struct clients *clients, int fd, uint64_t now_usec) {
        struct client *client = calloc(1, sizeof(*client));

        if (!client) {
                (void) shutdown(fd, SHUT_RDWR);
                return NULL;
        }
        client->fd = fd;
        client->since_usec = now_usec;
        if (clients->n + 1 >= CLIENTS_MAX)
                make_room(clients);
        list_append(&clients->by_age, &client->by_age);
        clients->n++;
        return client;
}

struct client *client_free(struct clients *clients, struct client *client) {
        if (!client)
                return NULL;
        list_remove(&client->by_age);
        clients->n--;
        free(client);
        return NULL;
}

uint64_t clients_sweep(struct clients *clients, uint64_t now_usec) {
        MG_LIST_FOREACH(entry, &clients->by_age) {
                struct client *client = client_of(entry);
                uint64_t until_usec = client->since_usec + CLIENT_LIFETIME_USEC;

                if (client->fd < 0)
                        continue;
                if (until_usec > now_usec)
                        return until_usec;
                hang_up(client);
        }
        return UINT64_MAX;
}
