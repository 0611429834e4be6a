/* SPDX-License-Identifier: MIT */
/*
 * The agent's connection to the daemon: connects when it is due, says hello, answers, tries again. Driven by its owner
 * (the agent's thread, or memguard_dispatch()), which waits and tells it when. Every failure is quiet. Layer: agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/serve.h"
#include "agent/settings.h"

struct mg_client {
        struct mg_server server;
        char socket_path[sizeof(((struct mg_settings *) 0)->socket_path)];
        int socket_fd;
        bool shared_table; /* descriptors are the program's too: each use checks the cookie first */
        uint64_t cookie;
        uint64_t connection;  /* counts sockets: tells one from the next under the same number */
        uint64_t due_at_usec; /* the next attempt to connect */
        uint64_t backoff_usec;
        uint64_t random;
        uint64_t tokens; /* news that may be sent at once */
        uint64_t tokens_at_usec;
};

/* Does not connect yet: the first attempt is due DELAY_USEC from NOW. */
void client_init(
                struct mg_client *client,
                const struct mg_settings *settings,
                const char *mode,
                uint64_t now_usec);

/* Ends the connection. */
void client_close(struct mg_client *client);

/* In a forked child: the connection is the parent's and goes on; only a copy of its descriptor, if there is one, is closed. */
void client_forget(struct mg_client *client);

/*
 * Does what is due by itself: connects, sends news. Returns in how many microseconds to call again at the
 * latest; MG_UNKNOWN: not before something comes in.
 */
uint64_t client_run(struct mg_client *client, uint64_t now_usec);

/* Reads and answers one request, when there is one. Returns 1 when it did, 0 when nothing was there. */
int client_receive(struct mg_client *client, uint64_t now_usec);

/* The waiting time after a failed attempt: doubles up to a minute, with a random half. Pure. */
uint64_t client_next_backoff(uint64_t *backoff_usec, uint64_t *random);
