/* SPDX-License-Identifier: MIT */
/*
 * The agent socket: accepting, and who may have how many connections. Layer: daemon.
 *
 * Descriptors are what a crowd can take from the daemon, so they are shared out: a limit in all, a quarter of it for
 * each user but root and the daemon's own, and a few for each process. When the kernel has none left the
 * socket is not watched for a second, or the loop would spin on it.
 */
#include "daemon/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "daemon/identity.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/peer_io.h"

/* Connections taken in one go: others have their turn between two helpings of a crowd. */
#define ACCEPT_BATCH 64

/* One with an agent and its successor (after exec), and some that are being closed. */
#define PEERS_PER_PROCESS 4

#define HELLO_TIMEOUT_USEC   (10 * MG_USEC_PER_SEC)
#define ACCEPT_RETRY_USEC    MG_USEC_PER_SEC
#define DEADLINE_ACCURACY_US (100 * MG_USEC_PER_MSEC)

/* NULL: welcome. Else why not. */
static const char *refuse(
                const struct manager *manager,
                const struct peer_credentials *credentials) {
        size_t of_process = 0;
        size_t of_user = 0;

        if (manager->n_peers >= manager->max_peers)
                return "is one too many on this host: refused";
        MG_LIST_FOREACH(entry, &manager->peers) {
                const struct peer *other = MG_CONTAINER_OF(entry, struct peer, all);

                of_process += other->pid == credentials->pid;
                of_user += other->uid == credentials->uid;
        }
        if (of_process >= PEERS_PER_PROCESS)
                return "has too many connections: one more refused";
        if (credentials->uid != 0 && credentials->uid != getuid() &&
            of_user >= MG_MAX(manager->max_peers / 4, (size_t) 16))
                return "is one too many of its user: refused";
        return NULL;
}

static int add_sources(struct peer *peer) {
        struct manager *manager = peer->manager;
        int r;

        r = sd_event_add_io(manager->event, &peer->io_source, peer->fd, EPOLLIN, peer_on_io, peer);
        if (r < 0)
                return r;
        return sd_event_add_time(
                        manager->event, &peer->deadline_source, CLOCK_MONOTONIC,
                        manager_now(manager) + HELLO_TIMEOUT_USEC, DEADLINE_ACCURACY_US,
                        peer_on_deadline, peer);
}

void peer_accept(struct manager *manager, int fd) {
        struct peer_credentials credentials;
        MG_CLEANUP(file_closep) int owned = fd;
        const char *why;
        struct peer *peer;

        if (credentials_of_peer(owned, &credentials) < 0)
                return;
        why = refuse(manager, &credentials);
        if (why) {
                journal_agent_problem(&(struct mg_journal_agent_problem){ .pid = credentials.pid,
                                                                          .problem = why });
                return;
        }
        peer = calloc(1, sizeof(*peer));
        if (!peer)
                return;
        peer->manager = manager;
        peer->pid = credentials.pid;
        peer->uid = credentials.uid;
        peer->start_time = credentials.start_time;
        peer->fd = MG_TAKE_FD(owned);
        peer->stats_cost_usec = MG_UNKNOWN;
        peer->stats_cost_bytes = MG_UNKNOWN;
        list_append(&manager->peers, &peer->all);
        manager->n_peers++;
        if (add_sources(peer) < 0)
                peer_close(peer, "out of memory");
}

static int on_listen_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        struct manager *manager = userdata;

        (void) sd_event_source_set_enabled(manager->listen_source, SD_EVENT_ON);
        return 0;
}

static void pause_listening(struct manager *manager, int error) {
        journal_errno(LOG_WARNING, error, NULL, "Cannot accept agents for a second");
        if (sd_event_source_set_time_relative(manager->listen_retry_source, ACCEPT_RETRY_USEC) <
                            0 ||
            sd_event_source_set_enabled(manager->listen_retry_source, SD_EVENT_ONESHOT) < 0)
                return;
        (void) sd_event_source_set_enabled(manager->listen_source, SD_EVENT_OFF);
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct manager *manager = userdata;

        for (int i = 0; i < ACCEPT_BATCH; i++) {
                int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (connection >= 0) {
                        peer_accept(manager, connection);
                        continue;
                }
                if (errno == EINTR || errno == ECONNABORTED)
                        continue;
                if (errno != EAGAIN)
                        pause_listening(manager, -errno);
                break;
        }
        return 0;
}

int peer_listen(struct manager *manager) {
        int r;

        r = sd_event_add_time(
                        manager->event, &manager->listen_retry_source, CLOCK_MONOTONIC, 0, 0,
                        on_listen_retry, manager);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(manager->listen_retry_source, SD_EVENT_OFF);
        if (r < 0)
                return r;
        return sd_event_add_io(
                        manager->event, &manager->listen_source, manager->agent_fd, EPOLLIN,
                        on_connection, manager);
}
