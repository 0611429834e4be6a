/* SPDX-License-Identifier: MIT */
/*
 * One program that follows the memory-pressure protocol; see provider.h. Layer: daemon.
 *
 * The connection itself remembers what a new daemon has to know of it: an incomplete token stays in the kernel's buffer (it is only
 * peeked at), a complete one is taken out at once, since the end of a socket with something unread in it is an error to the other side
 * and not an end; and that the token was right is kept in the socket's priority, which AF_UNIX has no other use for. Once the token
 * has been dealt with nothing is read any more: all that is waited for is the client's own hang-up.
 */
#include "daemon/provider_client.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/discovery.h"
#include "daemon/identity.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/notify.h"
#include "daemon/unit.h"
#include "host/proc.h"

/* Any priority but that of a new socket, 0; up to 6 are free for all. */
#define ACCEPTED_PRIORITY 1

#define DRAIN_CHUNK  1024
#define DRAIN_CHUNKS 64

void client_tell_problem(pid_t pid, const char *problem) {
        char command[16] = "";

        (void) proc_comm("/proc", pid, command, sizeof(command));
        journal_agent_problem(&(struct mg_journal_agent_problem){
                        .pid = pid,
                        .command = command[0] != '\0' ? command : NULL,
                        .who = "the client of memory pressure",
                        .problem = problem,
        });
}

static void end_silence(struct pressure_client *client) {
        if (client->silent)
                client->provider->n_silent--;
        client->silent = false;
}

void client_complain_of_silence(struct pressure_client *client) {
        end_silence(client);
        client_tell_problem(client->pid, "has sent no token, or half of one: it is told nothing");
}

/* ---- its unit ---- */

static int find_unit(const struct pressure_client *client, struct process_unit *ret_found) {
        struct peer_credentials credentials;
        int r = credentials_of_peer(client->fd, &credentials);

        if (r < 0)
                return r;
        if (credentials.pid != client->pid || credentials.start_time != client->start_time)
                return -ESRCH;
        return unit_of_process(
                        client->pid, client->uid, client->provider->manager->own_unit_path,
                        ret_found);
}

static int get_unit(const struct pressure_client *client, struct unit **ret_unit) {
        struct manager *manager = client->provider->manager;
        struct process_unit found;
        struct unit_identity identity;
        int r = find_unit(client, &found);

        if (r < 0)
                return r;
        identity = (struct unit_identity){
                .name = found.name,
                .path = found.path[0] ? found.path : NULL,
                .user = found.user,
                .user_uid = found.user_uid,
        };
        r = unit_get(manager, &identity, ret_unit);
        if (r < 0)
                return r;
        /* Where numbers are sums over processes, one that nobody has looked for would not be in them. */
        if ((*ret_unit)->source == MG_SOURCE_PROC)
                (void) discovery_add_process(*ret_unit, client->pid, client->uid);
        return 0;
}

void client_place(struct pressure_client *client) {
        struct unit *unit;

        if (client->unit || get_unit(client, &unit) < 0)
                return;
        client->unit = unit;
        client->provider->n_unplaced--;
        unit->clients.n++;
}

void client_unplace(struct pressure_client *client) {
        client->unit->clients.n--;
        client->unit = NULL;
        client->provider->n_unplaced++;
}

/* ---- its token ---- */

static void accept_token(struct pressure_client *client) {
        end_silence(client);
        client->state.accepted = true;
        client->provider->n_unplaced++;
        client_place(client);
}

static void refuse_token(struct pressure_client *client, const char *problem) {
        end_silence(client);
        client_tell_problem(client->pid, problem);
}

/* From here on only its hang-up is of interest. */
static void stop_reading(struct pressure_client *client) {
        (void) sd_event_source_set_io_events(client->source, 0);
}

static bool is_its_own(
                const struct pressure_client *client,
                const struct mg_pressure_token *token) {
        struct process_unit found;

        return find_unit(client, &found) >= 0 && pressure_token_is_of(token, found.name);
}

static void take_token(struct pressure_client *client, const struct mg_pressure_token *token) {
        static const int priority = ACCEPTED_PRIORITY;

        if (!is_its_own(client, token)) {
                refuse_token(client, "has sent the token of another unit: it is told nothing");
                return;
        }
        if (setsockopt(client->fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)) < 0)
                journal_errno(LOG_DEBUG, -errno, NULL, "A client will not be known again");
        accept_token(client);
}

/* A client that has sent more than this, or goes on sending, has itself to blame for what the end will look like. */
static void drain(const struct pressure_client *client) {
        char rest[DRAIN_CHUNK];

        for (int i = 0; i < DRAIN_CHUNKS; i++)
                if (recv(client->fd, rest, sizeof(rest), MSG_DONTWAIT) < (ssize_t) sizeof(rest))
                        break;
}

/* Whatever has been sent is dealt with, and taken out of the socket. */
static void settle(struct pressure_client *client, const struct mg_pressure_token *token) {
        stop_reading(client);
        if (token)
                take_token(client, token);
        else
                refuse_token(client, "has sent what is no token: it is told nothing");
        drain(client);
}

/* One byte more than the longest token: what does not fit is none. */
static void look_at_token(struct pressure_client *client) {
        char bytes[MG_PRESSURE_TOKEN_MAX + 1];
        struct mg_pressure_token token;
        ssize_t n = recv(client->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_PEEK);
        int r;

        if (n <= 0)
                return;
        r = pressure_token_parse(bytes, (size_t) n, &token);
        if (r != 0)
                settle(client, r > 0 ? &token : NULL);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct pressure_client *client = userdata;
        struct provider *provider = client->provider;

        if (events & (EPOLLHUP | EPOLLERR)) {
                client_free(client);
                provider_listen(provider); /* perhaps somebody waits for the place */
                return 0;
        }
        look_at_token(client);
        return 0;
}

/* ---- its life ---- */

static void recognise(struct pressure_client *client) {
        int priority = 0;
        socklen_t length = sizeof(priority);

        if (getsockopt(client->fd, SOL_SOCKET, SO_PRIORITY, &priority, &length) < 0 ||
            priority != ACCEPTED_PRIORITY)
                return;
        stop_reading(client);
        drain(client);
        accept_token(client);
}

int client_new(struct provider *provider, int fd, bool stored) {
        MG_CLEANUP(file_closep) int owned = fd;
        struct peer_credentials credentials = {};
        struct pressure_client *client;
        int r;

        /* One whose process is gone has perhaps left the socket to a child: it is kept, and told nothing. */
        r = credentials_of_peer(owned, &credentials);
        if (r < 0 && !stored)
                return r;
        client = calloc(1, sizeof(*client));
        if (!client)
                return -ENOMEM;
        client->provider = provider;
        client->pid = credentials.pid;
        client->uid = credentials.uid;
        client->start_time = credentials.start_time;
        client->since_usec = manager_now(provider->manager);
        client->fd = MG_TAKE_FD(owned);
        client->silent = true;
        list_append(&provider->clients, &client->all);
        provider->n_clients++;
        provider->n_silent++;
        /* Edge-triggered: half of a token that stays where it is wakes nobody twice. */
        r =
                        sd_event_add_io(provider->manager->event, &client->source, client->fd,
                                        EPOLLIN | EPOLLET, on_io, client);
        if (r < 0) {
                client_free(client);
                return r;
        }
        if (stored)
                recognise(client);
        return 0;
}

struct pressure_client *client_free(struct pressure_client *client) {
        struct provider *provider = client->provider;

        end_silence(client);
        if (client->unit)
                client_unplace(client);
        if (client->state.accepted)
                provider->n_unplaced--;
        sd_event_source_disable_unref(client->source);
        file_closep(&client->fd);
        list_remove(&client->all);
        provider->n_clients--;
        free(client);
        return NULL;
}

/* ---- telling ---- */

bool client_tell(struct pressure_client *client, enum mg_pressure_cause cause, uint64_t now_usec) {
        static const char byte = 1;
        int unread = 0;

        if (ioctl(client->fd, SIOCOUTQ, &unread) < 0 ||
            !pressure_client_is_told(&client->state, cause, (size_t) MG_MAX(unread, 0), now_usec))
                return false;
        if (send(client->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
                return false;
        client->state.told_usec = now_usec;
        return true;
}
