/* SPDX-License-Identifier: MIT */
/*
 * The HTTP server: libmicrohttpd on one listening socket, driven by sd-event; no threads. GET and HEAD of /metrics, a word on /, and
 * nothing else. Whatever a client does is bounded: its header, its time, the number of its like. Layer: exporter.
 */
#pragma once

#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "exporter/exposition.h"

/* The answer to a scrape in FORMAT, which stays the handler's; NULL: there is no memory for one. */
typedef struct MHD_Response *(*http_scrape_handler)(enum exposition_format format, void *userdata);

struct http;

/* A response with its headers, for any number of connections; the caller destroys it. NULL: no memory; a BODY to be freed then is. */
struct MHD_Response *http_response(
                char *body,
                size_t length,
                enum MHD_ResponseMemoryMode mode,
                const char *content_type);

/* Takes over LISTEN_FD, which may be gone when it fails. */
int http_new(sd_event *event,
             int listen_fd,
             http_scrape_handler handler,
             void *userdata,
             struct http **ret_http);
struct http *http_free(struct http *http);
