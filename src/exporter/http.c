/* SPDX-License-Identifier: MIT */
/* The HTTP server; see http.h. Layer: exporter. */
#include "exporter/http.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "base/macros.h"
#include "exporter/clients.h"
#include "host/clock.h"

/* For a request's header and an answer's; the body is shared by all. More is answered with 431. */
#define CONNECTION_MEMORY (16 * (size_t) MG_KIB)

/* Of silence. How long a client may take in all is CLIENT_LIFETIME_USEC. */
#define SILENCE_SEC 10u

struct http {
        struct MHD_Daemon *mhd;
        sd_event *event;
        sd_event_source *io_source;
        sd_event_source *time_source;
        struct clients clients;
        bool again; /* somebody has left: libmicrohttpd takes the next one only when it runs once more */
        http_scrape_handler handler;
        void *userdata;
};

/* ---- answers ---- */

struct MHD_Response *http_response(
                char *body,
                size_t length,
                enum MHD_ResponseMemoryMode mode,
                const char *content_type) {
        struct MHD_Response *response = MHD_create_response_from_buffer(length, body, mode);

        /* One request a connection: so a client's time is a request's, and no scrape is cut off when it is over. */
        if (response &&
            MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES &&
            MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) ==
                            MHD_YES)
                return response;
        if (response)
                MHD_destroy_response(response);
        else if (mode == MHD_RESPMEM_MUST_FREE)
                free(body);
        return NULL;
}

static enum MHD_Result send_text(
                struct MHD_Connection *connection,
                unsigned status,
                const char *text) {
        struct MHD_Response *response =
                        http_response((char *) (uintptr_t) text, strlen(text),
                                      MHD_RESPMEM_PERSISTENT, "text/plain; charset=utf-8");
        enum MHD_Result result;

        if (!response)
                return MHD_NO;
        if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
                (void) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
        result = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
        return result;
}

static enum MHD_Result send_metrics(struct http *http, struct MHD_Connection *connection) {
        const char *accept = MHD_lookup_connection_value(
                        connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
        struct MHD_Response *response = http->handler(exposition_choose(accept), http->userdata);

        if (!response)
                return send_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
        return MHD_queue_response(connection, MHD_HTTP_OK, response);
}

static enum MHD_Result on_request(
                void *userdata,
                struct MHD_Connection *connection,
                const char *url,
                const char *method,
                const char *version,
                const char *upload,
                size_t *upload_size,
                void **request) {
        struct http *http = userdata;

        if (!mg_streq(method, MHD_HTTP_METHOD_GET) && !mg_streq(method, MHD_HTTP_METHOD_HEAD))
                return send_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET or HEAD\n");
        if (mg_streq(url, "/metrics"))
                return send_metrics(http, connection);
        if (mg_streq(url, "/"))
                return send_text(connection, MHD_HTTP_OK, "memguard-exporter: see /metrics\n");
        return send_text(connection, MHD_HTTP_NOT_FOUND, "only /metrics is here\n");
}

/* ---- connections ---- */

static void on_connection(
                void *userdata,
                struct MHD_Connection *connection,
                void **context,
                enum MHD_ConnectionNotificationCode code) {
        struct http *http = userdata;
        const union MHD_ConnectionInfo *info;

        if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
                *context = client_free(&http->clients, *context);
                http->again = true;
                return;
        }
        info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (info)
                *context = client_new(&http->clients, info->connect_fd, clock_now_usec());
}

/* ---- the event loop ---- */

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct http *http = userdata;

        (void) MHD_run(http->mhd);
        return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        struct http *http = userdata;

        (void) MHD_run(http->mhd);
        return 0;
}

/* Before each wait: until when. */
static int on_prepare(sd_event_source *source, void *userdata) {
        struct http *http = userdata;
        uint64_t now = clock_now_usec();
        uint64_t until_usec = clients_sweep(&http->clients, now);
        MHD_UNSIGNED_LONG_LONG wait_msec;

        if (MHD_get_timeout(http->mhd, &wait_msec) == MHD_YES)
                until_usec = MG_MIN(until_usec, now + wait_msec * MG_USEC_PER_MSEC);
        if (MG_TAKE_AS(http->again, false))
                until_usec = now;
        (void) sd_event_source_set_time(http->time_source, until_usec);
        (void) sd_event_source_set_enabled(
                        http->time_source,
                        until_usec == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
        return 0;
}

static int start(struct http *http, int listen_fd) {
        const union MHD_DaemonInfo *info;
        int flags = fcntl(listen_fd, F_GETFL);

        if (flags < 0 || fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return -errno;
        http->mhd = MHD_start_daemon(
                        MHD_USE_EPOLL, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET,
                        listen_fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned) CLIENTS_MAX,
                        MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_SEC,
                        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
                        MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_END);
        if (!http->mhd)
                return -EIO;
        info = MHD_get_daemon_info(http->mhd, MHD_DAEMON_INFO_EPOLL_FD);
        return info ? sd_event_add_io(http->event, &http->io_source, info->epoll_fd, EPOLLIN, on_io,
                                      http)
                    : -EIO;
}

int http_new(sd_event *event,
             int listen_fd,
             http_scrape_handler handler,
             void *userdata,
             struct http **ret_http) {
        struct http *http = calloc(1, sizeof(*http));
        int r;

        if (!http)
                return -ENOMEM;
        http->event = event;
        http->handler = handler;
        http->userdata = userdata;
        clients_init(&http->clients);
        r = sd_event_add_time(event, &http->time_source, CLOCK_MONOTONIC, 0, 1, on_time, http);
        if (r >= 0)
                r = start(http, listen_fd);
        if (r >= 0)
                r = sd_event_source_set_prepare(http->io_source, on_prepare);
        if (r < 0) {
                http_free(http);
                return r;
        }
        *ret_http = http;
        return 0;
}

struct http *http_free(struct http *http) {
        if (!http)
                return NULL;
        sd_event_source_disable_unref(http->io_source);
        sd_event_source_disable_unref(http->time_source);
        if (http->mhd)
                MHD_stop_daemon(http->mhd); /* closes the socket and all connections */
        free(http);
        return NULL;
}
