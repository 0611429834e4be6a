/* SPDX-License-Identifier: MIT */
/* The agent's answers: one request in, one reply out. Layer: agent. */
#pragma once

#include "agent/look.h"
#include "proto/proto.h"

struct mg_server {
        struct mg_look look;
        const char *mode;   /* preload, linked, event-loop */
        const char *thread; /* follow, always, never */
};

void serve_init(struct mg_server *server, const char *mode, const char *thread);

/* The first message of a connection. */
void serve_hello(struct mg_server *server, struct mg_message *ret_message);

/*
 * Serves REQUEST. Returns 1 with RET_REPLY filled (its texts live until the next call), 0 when there is nothing to
 * answer (an "unsupported" that was sent to us).
 */
int serve_request(
                struct mg_server *server,
                const struct mg_message *request,
                struct mg_message *ret_reply);
