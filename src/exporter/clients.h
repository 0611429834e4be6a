/* SPDX-License-Identifier: MIT */
/*
 * The HTTP clients by age, so that none stays: each is hung up on when its time is over, and the oldest when there are too many, so
 * that somebody who opens connections and says nothing never keeps a scraper out. The connections are libmicrohttpd's; hanging up
 * is a shutdown(), which it takes for the client's own. Layer: exporter.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define CLIENTS_MAX 64

/* A whole request and its answer over a slow line; Prometheus waits 10 s unless told otherwise. */
#define CLIENT_LIFETIME_USEC (15 * UINT64_C(1000000))

struct client {
        struct mg_list by_age;
        int fd; /* libmicrohttpd's; -EBADF once it was hung up on */
        uint64_t since_usec;
};

struct clients {
        struct mg_list by_age; /* oldest first */
        size_t n;
};

void clients_init(struct clients *clients);

/* NULL: out of memory, and FD was hung up on. */
struct client *client_new(struct clients *clients, int fd, uint64_t now_usec);

/* Its connection is gone. Returns NULL. */
struct client *client_free(struct clients *clients, struct client *client);

/* Hangs up on those whose time is over. Returns when the next one's is; UINT64_MAX: there is none. */
uint64_t clients_sweep(struct clients *clients, uint64_t now_usec);
