/* SPDX-License-Identifier: MIT */
/*
 * Peer to peer clients on RUNTIME/bus, each an sd_bus of its own. Layer: daemon. The socket is for everyone, so
 * everything that a client can pile up here is bounded: connections, the size of a request (sd-bus itself would take 128 MiB),
 * and answers it does not fetch, in number and in bytes. Who exceeds one loses that connection.
 *
 * The busses are driven by hand instead of by sd_bus_attach_event(), so that what one step of a stranger's bus has
 * allocated can be seen: nothing else tells how large a message sd-bus is waiting for, or what those are that wait to be sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "daemon/bus_server.h"
#include "daemon/journal.h"
#include "daemon/self.h"

#define PEERS_MAX      128
#define PEERS_PER_USER 8
#define REQUEST_MAX    (1 * MG_MIB) /* the largest request is a list of unit names */
/* The kernel doubles it; sd-bus itself would make it 8 MiB where it may. */
#define SOCKET_SIZE     (128 * 1024)
#define UNSENT_MAX      3 /* answers waiting, beyond what the socket holds */
#define UNSENT_MAX_ROOT 64
/* A unit's row is some 3 KiB. One answer may be larger; a second one is then not begun before most of the first is fetched. */
#define HELD_MAX          (4 * MG_MIB)
#define LISTEN_RETRY_USEC MG_USEC_PER_SEC

struct bus_peer {
        struct mg_list all; /* server->peers */
        struct bus_server *server;
        sd_bus *bus;
        sd_event_source *io_source;
        sd_event_source *time_source;
        uid_t uid;
        int64_t held_bytes; /* what its steps have allocated and not freed: requests that come in, answers that wait */
        bool trusted;       /* root, or the daemon's own user */
        bool dispatched;    /* in the current step: a whole message came in */
        const char *doomed; /* why it is to be disconnected; NULL: it is not */
};

static struct bus_peer *peer_free(struct bus_peer *peer) {
        if (!peer)
                return NULL;
        list_remove(&peer->all);
        peer->server->n_peers--;
        sd_event_source_disable_unref(peer->io_source);
        sd_event_source_disable_unref(peer->time_source);
        /* Closed, not flushed: flushing waits for the client. */
        sd_bus_close_unref(peer->bus);
        free(peer);
        return NULL;
}
MG_DEFINE_CLEANUP(struct bus_peer *, peer_free)

/* A whole message has come in; its handler runs after this. */
static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        struct bus_peer *peer = userdata;
        uint64_t unsent = 0;

        peer->dispatched = true;
        if (sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", "Disconnected"))
                peer->doomed = "went away";
        (void) sd_bus_get_n_queued_write(peer->bus, &unsent);
        if (unsent > (peer->trusted ? UNSENT_MAX_ROOT : UNSENT_MAX) ||
            (!peer->trusted && unsent > 0 && peer->held_bytes > (int64_t) HELD_MAX))
                peer->doomed = "does not read its answers";
        return peer->doomed ? 1 : 0;
}

static void step(struct bus_peer *peer) {
        int64_t grown_bytes = -self_net_allocated();
        int r;

        peer->dispatched = false;
        r = sd_bus_process(peer->bus, NULL);
        grown_bytes += self_net_allocated();
        peer->held_bytes += grown_bytes;
        if (r < 0 && !peer->doomed)
                peer->doomed = "broke the protocol, or off";
        if (!peer->trusted && !peer->dispatched && grown_bytes > (int64_t) REQUEST_MAX)
                peer->doomed = "sent too large a request";
        if (!peer->doomed)
                return;
        journal_log(LOG_DEBUG, NULL, "bus client of uid %u disconnected: %s", (unsigned) peer->uid,
                    peer->doomed);
        peer_free(peer);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        step(userdata);
        return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        step(userdata);
        return 0;
}

/* Before each wait: what the bus waits for. */
static int on_prepare(sd_event_source *source, void *userdata) {
        struct bus_peer *peer = userdata;
        uint64_t until_usec = UINT64_MAX;
        int events = sd_bus_get_events(peer->bus);

        if (events < 0 || sd_bus_get_timeout(peer->bus, &until_usec) < 0)
                until_usec = events = 0; /* it is closing: the next step says so */
        (void) sd_event_source_set_io_events(source, (uint32_t) events);
        (void) sd_event_source_set_time(peer->time_source, until_usec);
        (void) sd_event_source_set_enabled(
                        peer->time_source,
                        until_usec == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
        return 0;
}

static int drive_bus(struct bus_peer *peer) {
        sd_event *event = peer->server->manager->event;
        /* A duplicate: sd-bus closes its own when the connection ends, which would pull it out of the event loop's hands. */
        MG_CLEANUP(file_closep) int fd = fcntl(sd_bus_get_fd(peer->bus), F_DUPFD_CLOEXEC, 3);
        int r;

        if (fd < 0)
                return -errno;
        r = sd_event_add_io(event, &peer->io_source, fd, EPOLLIN, on_io, peer);
        if (r < 0)
                return r;
        r = sd_event_source_set_io_fd_own(peer->io_source, true);
        if (r < 0)
                return r;
        (void) MG_TAKE_FD(fd);
        r = sd_event_add_time(event, &peer->time_source, CLOCK_MONOTONIC, 0, 1, on_time, peer);
        if (r >= 0)
                r = sd_event_source_set_prepare(peer->io_source, on_prepare);
        if (r >= 0)
                r = sd_event_source_set_priority(peer->io_source, BUS_PRIORITY);
        if (r >= 0)
                r = sd_event_source_set_priority(peer->time_source, BUS_PRIORITY);
        return r;
}

/* What waits in the kernel is the daemon's memory too. */
static int limit_socket(const struct bus_peer *peer) {
        int size = SOCKET_SIZE;

        return setsockopt(sd_bus_get_fd(peer->bus), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0
                               ? -errno
                               : 0;
}

/* Takes over FD in any case. */
static int open_bus(struct bus_peer *peer, int fd) {
        sd_id128_t id;
        int r = sd_bus_new(&peer->bus);

        if (r >= 0)
                r = sd_bus_set_fd(peer->bus, fd, fd);
        if (r < 0) {
                close(fd);
                return r;
        }
        r = sd_id128_randomize(&id);
        if (r >= 0)
                r = sd_bus_set_server(peer->bus, true, id);
        if (r >= 0)
                r = sd_bus_negotiate_creds(peer->bus, true, SD_BUS_CREDS_UID | SD_BUS_CREDS_EUID);
        if (r >= 0)
                r = sd_bus_set_description(peer->bus, "peer");
        if (r >= 0)
                r = sd_bus_start(peer->bus);
        if (r >= 0)
                r = limit_socket(peer);
        if (r >= 0)
                r = sd_bus_add_filter(peer->bus, NULL, on_message, peer);
        if (r >= 0)
                r = bus_publish(peer->server, peer->bus);
        return r < 0 ? r : drive_bus(peer);
}

static bool has_room_for(const struct bus_server *server, uid_t uid) {
        size_t n = 0;

        MG_LIST_FOREACH(entry, &server->peers) {
                n += MG_CONTAINER_OF(entry, struct bus_peer, all)->uid == uid;
        }
        return n < PEERS_PER_USER && server->n_peers < PEERS_MAX;
}

/* Takes over FD. */
static int peer_new(struct bus_server *server, int fd) {
        MG_CLEANUP(file_closep) int owned_fd = fd;
        MG_CLEANUP(peer_freep) struct bus_peer *peer = NULL;
        struct ucred creds;
        socklen_t size = sizeof(creds);
        bool trusted;
        int r;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &creds, &size) < 0)
                return -errno;
        trusted = creds.uid == 0 || creds.uid == getuid();
        if (!trusted && !has_room_for(server, creds.uid))
                return -EUSERS;
        peer = calloc(1, sizeof(*peer));
        if (!peer)
                return -ENOMEM;
        peer->server = server;
        peer->uid = creds.uid;
        peer->trusted = trusted;
        list_append(&server->peers, &peer->all);
        server->n_peers++;
        r = open_bus(peer, MG_TAKE_FD(owned_fd));
        if (r < 0)
                return r;
        (void) MG_TAKE(peer);
        return 0;
}

static int on_listen_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        struct bus_server *server = userdata;

        (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_ON);
        return 0;
}

/* A listening socket stays readable while nobody can accept: without a pause the loop would spin. */
static void pause_listening(struct bus_server *server) {
        (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_OFF);
        server->listen_retry_source = sd_event_source_disable_unref(server->listen_retry_source);
        (void) sd_event_add_time_relative(
                        server->manager->event, &server->listen_retry_source, CLOCK_MONOTONIC,
                        LISTEN_RETRY_USEC, 0, on_listen_retry, server);
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct bus_server *server = userdata;
        int r, peer_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (peer_fd < 0) {
                if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                        pause_listening(server);
                return 0;
        }
        r = peer_new(server, peer_fd);
        if (r < 0)
                journal_errno(LOG_DEBUG, r, NULL, "a bus client was turned away");
        return 0;
}

int bus_peers_start(struct bus_server *server) {
        int r =
                        sd_event_add_io(server->manager->event, &server->listen_source,
                                        server->listen_fd, EPOLLIN, on_connection, server);
        if (r >= 0)
                r = sd_event_source_set_priority(server->listen_source, BUS_PRIORITY);
        return r;
}

void bus_peers_done(struct bus_server *server) {
        server->listen_retry_source = sd_event_source_disable_unref(server->listen_retry_source);
        server->listen_source = sd_event_source_disable_unref(server->listen_source);
        file_closep(&server->listen_fd);
        while (!list_is_empty(&server->peers))
                peer_free(MG_CONTAINER_OF(server->peers.next, struct bus_peer, all));
}
