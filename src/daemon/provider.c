/* SPDX-License-Identifier: MIT */
/* The socket of the memory-pressure protocol, and who is told what; see provider.h. Layer: daemon. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "core/account.h"
#include "daemon/identity.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/notify.h"
#include "daemon/provider_client.h"
#include "daemon/runtime_dir.h"
#include "daemon/tick.h"
#include "daemon/unit.h"
#include "host/bus_api.h"

#define BACKLOG 4096

/* Connections taken in one go. */
#define ACCEPT_BATCH 64

/* The kernel's numbers may lag by two seconds, and the program has to wake up first. */
#define SETTLE_USEC (3 * MG_USEC_PER_SEC)

/* A service may connect while it sets itself up, and send its token only when its event loop begins. */
#define SILENCE_USEC (2 * MG_USEC_PER_MIN)

size_t provider_clients(const struct provider *provider) {
        return provider ? provider->n_clients : 0;
}

size_t provider_bytes(const struct provider *provider) {
        return provider_clients(provider) * sizeof(struct pressure_client);
}

/* ---- the socket ---- */

static size_t limit_of(const struct provider *provider) {
        return provider->manager->settings.pressure_clients;
}

static void listen_while(struct provider *provider, bool on) {
        if (provider->listen_source)
                (void) sd_event_source_set_enabled(
                                provider->listen_source, on ? SD_EVENT_ON : SD_EVENT_OFF);
}

static enum mg_pressure_admission admit(
                const struct provider *provider,
                const struct peer_credentials *credentials) {
        struct mg_pressure_crowd crowd = {
                .all = provider->n_clients,
                .trusted = credentials->uid == 0 || credentials->uid == getuid(),
        };

        MG_LIST_FOREACH(entry, &provider->clients) {
                crowd.of_process += client_of(entry)->pid == credentials->pid;
                crowd.of_user += client_of(entry)->uid == credentials->uid;
        }
        return pressure_client_admit(&crowd, limit_of(provider));
}

/* The store comes first: from here on no end of ours is a hang-up on the client. */
static void welcome(struct provider *provider, int fd) {
        MG_CLEANUP(file_closep) int owned = fd;
        struct peer_credentials credentials;

        if (credentials_of_peer(owned, &credentials) < 0)
                return;
        if (admit(provider, &credentials) == MG_PRESSURE_TOO_MANY) {
                client_tell_problem(credentials.pid, "has too many connections: one more refused");
                return;
        }
        notify_store_descriptor(owned, PROVIDER_CLIENT_NAME);
        (void) client_new(provider, MG_TAKE_FD(owned), false);
}

static void tell_full(struct provider *provider) {
        if (provider->full_told)
                return;
        provider->full_told = true;
        journal_log(LOG_NOTICE, NULL,
                    "%zu programs follow memory pressure, all that PressureClients= allows: more have to wait",
                    provider->n_clients);
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct provider *provider = userdata;

        for (int i = 0; i < ACCEPT_BATCH && provider->n_clients < limit_of(provider); i++) {
                int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (connection >= 0) {
                        welcome(provider, connection);
                        continue;
                }
                if (errno == EINTR || errno == ECONNABORTED)
                        continue;
                if (errno != EAGAIN) { /* no descriptors: until the next tick, or this would spin */
                        journal_errno(LOG_WARNING, -errno, NULL,
                                      "Cannot accept clients of memory pressure for now");
                        listen_while(provider, false);
                }
                return 0;
        }
        if (provider->n_clients >= limit_of(provider)) {
                tell_full(provider);
                listen_while(provider, false);
        }
        return 0;
}

static int make_socket(struct provider *provider) {
        const char *directory = provider->manager->options.runtime_directory;
        int r = runtime_dir_listen(
                        directory, MG_PRESSURE_SOCKET, SOCK_STREAM, 0666, BACKLOG,
                        &provider->listen_fd);

        if (r < 0)
                return journal_errno(
                                LOG_WARNING, r, NULL, "Cannot listen on %s/%s", directory,
                                MG_PRESSURE_SOCKET);
        provider->own_socket = true;
        if (!provider->manager->options.by_hand)
                journal_log(LOG_WARNING, NULL,
                            "PressureClients= is set, but memguard-pressure.socket is not enabled: "
                            "programs that start while memguard.service is stopped will find no socket");
        return 0;
}

static int add_listener(struct provider *provider) {
        int r;

        if (provider->listen_source)
                return 0;
        if (provider->listen_fd < 0) {
                r = make_socket(provider);
                if (r < 0)
                        return r;
        }
        return sd_event_add_io(
                        provider->manager->event, &provider->listen_source, provider->listen_fd,
                        EPOLLIN, on_connection, provider);
}

void provider_listen(struct provider *provider) {
        bool has_room = provider->n_clients < limit_of(provider);

        provider->full_told &= !has_room;
        listen_while(provider, has_room);
}

void provider_configure(struct provider *provider) {
        if (!provider)
                return;
        if (limit_of(provider) > 0)
                (void) add_listener(provider);
        provider_listen(provider);
}

/* ---- telling ---- */

void provider_mark(struct unit *unit, enum mg_pressure_cause cause) {
        struct unit_clients *clients = &unit->clients;
        uint64_t now_usec = manager_now(unit->manager);

        if (clients->n == 0 ||
            !pressure_unit_is_told(
                            cause, &unit->config, unit->manager->paused || unit->paused,
                            clients->above_usec, now_usec))
                return;
        clients->due = true;
        clients->cause = cause;
}

/* What there is before the first byte: the ones after it, until its effect has been looked at, are part of the same. */
static void remember_before(struct unit *unit) {
        struct unit_clients *clients = &unit->clients;

        if (clients->told_usec > 0)
                return;
        (void) tick_measure(unit, true);
        clients->before_bytes = account_footprint(&unit->memory);
        clients->n_told = 0;
}

static void count_told(struct unit *unit, uint64_t now_usec) {
        struct unit_clients *clients = &unit->clients;

        clients->n_told++;
        if (clients->told_usec > 0)
                return;
        clients->told_usec = now_usec;
        clients->told_cause = clients->cause;
}

static void unmark(struct provider *provider, uint64_t now_usec) {
        for (struct unit *u = unit_first(provider->manager); u; u = unit_next(u)) {
                struct unit_clients *clients = &u->clients;

                if (clients->due && clients->cause == MG_PRESSURE_ABOVE)
                        clients->above_usec = now_usec;
                clients->due = false;
        }
}

size_t provider_tell(struct provider *provider) {
        uint64_t now_usec = manager_now(provider->manager);
        size_t n = 0;

        for (struct unit *u = unit_first(provider->manager); u; u = unit_next(u))
                if (u->clients.due)
                        remember_before(u);
        MG_LIST_FOREACH(entry, &provider->clients) {
                struct pressure_client *client = client_of(entry);

                if (!client->unit || !client->unit->clients.due ||
                    !client_tell(client, client->unit->clients.cause, now_usec))
                        continue;
                count_told(client->unit, now_usec);
                n++;
        }
        unmark(provider, now_usec);
        return n;
}

size_t provider_tell_unit(struct provider *provider, struct unit *unit) {
        if (!provider || unit->clients.n == 0)
                return 0;
        provider_mark(unit, MG_PRESSURE_BY_HAND);
        return provider_tell(provider);
}

/* ---- the tick ---- */

static void tell_effect(struct unit *unit, uint64_t now_usec) {
        struct unit_clients *clients = &unit->clients;

        if (clients->told_usec == 0 || now_usec - clients->told_usec < SETTLE_USEC)
                return;
        journal_clients_told(&(struct mg_journal_clients_told){
                        .unit = unit_for_journal(unit),
                        .cause = clients->told_cause,
                        .clients = clients->n_told,
                        .before_bytes = clients->before_bytes,
                        .after_bytes = account_footprint(&unit->memory),
                        .min_gain_bytes = unit->config.min_gain_bytes,
        });
        clients->told_usec = 0;
}

static void look_after(struct pressure_client *client, uint64_t now_usec) {
        if (client->state.accepted && !client->unit)
                client_place(client);
        if (client->silent && now_usec - client->since_usec >= SILENCE_USEC)
                client_complain_of_silence(client);
}

void provider_tick(struct provider *provider, uint64_t now_usec) {
        if (provider->n_silent > 0 || provider->n_unplaced > 0)
                MG_LIST_FOREACH(entry, &provider->clients)
                        look_after(client_of(entry), now_usec);
        if (provider->n_clients > 0)
                for (struct unit *u = unit_first(provider->manager); u; u = unit_next(u))
                        tell_effect(u, now_usec);
        provider_listen(provider);
}

void provider_forget_unit(struct provider *provider, const struct unit *unit) {
        if (!provider || unit->clients.n == 0)
                return;
        MG_LIST_FOREACH(entry, &provider->clients)
                if (client_of(entry)->unit == unit)
                        client_unplace(client_of(entry));
}

/* ---- all of it ---- */

int provider_new(
                struct manager *manager,
                int listen_fd,
                const int *clients,
                size_t n_clients,
                struct provider **ret_provider) {
        struct provider *provider = calloc(1, sizeof(*provider));

        if (!provider) {
                file_closep(&listen_fd);
                return -ENOMEM;
        }
        provider->manager = manager;
        provider->listen_fd = listen_fd;
        list_init(&provider->clients);
        for (size_t i = 0; i < n_clients; i++)
                (void) client_new(provider, clients[i], true);
        provider_configure(provider);
        *ret_provider = provider;
        return 0;
}

struct provider *provider_free(struct provider *provider) {
        if (!provider)
                return NULL;
        provider->listen_source = sd_event_source_disable_unref(provider->listen_source);
        while (!list_is_empty(&provider->clients))
                client_free(client_of(provider->clients.next));
        if (provider->own_socket)
                (void) unlinkat(provider->manager->runtime_dir_fd, MG_PRESSURE_SOCKET, 0);
        file_closep(&provider->listen_fd);
        free(provider);
        return NULL;
}
