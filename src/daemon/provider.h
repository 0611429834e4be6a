/* SPDX-License-Identifier: MIT */
/*
 * A provider of systemd's memory-pressure protocol: programs that have MEMORY_PRESSURE_WATCH= from a drop-in connect to a stream socket of
 * ours instead of watching their cgroup's memory.pressure, and get a byte when there is pressure on their unit, on what is
 * above it, or when an operator says so. Layer: daemon.
 *
 * What must never happen is a hang-up on a living client: libsystemd's then spins on it for the rest of its life. So nothing here closes a
 * connection that its client has not closed, except where one process or user takes far more than its share: a client with a wrong
 * token is kept and told nothing, those over the limit wait in the kernel's queue, and each connection is given to the
 * service manager's descriptor store before anything else, which keeps it open while the daemon is restarted, stopped or killed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "core/pressure_client.h"

struct manager;
struct provider;
struct unit;

/* FileDescriptorStoreMax= of memguard.service: more cannot be kept over a restart. */
#define PROVIDER_CLIENTS_MAX 1024

/* Names of descriptors between the service manager and the daemon: the listening socket's, and a stored client's. */
#define PROVIDER_LISTEN_NAME "pressure"
#define PROVIDER_CLIENT_NAME "pressure-client"

/* What each unit carries of it; all zero is a fresh one. */
struct unit_clients {
        uint32_t n; /* with the right token */
        bool due;   /* they are to be told next, of CAUSE */
        enum mg_pressure_cause cause;
        uint64_t above_usec; /* when they were last told of pressure above; 0: never */
        uint64_t told_usec;  /* of the byte whose effect is waited for; 0: none is */
        uint64_t before_bytes;
        uint32_t n_told;
        enum mg_pressure_cause told_cause;
};

/*
 * LISTEN_FD (-EBADF: none was handed over) and the N_CLIENTS stored connections become the provider's, whatever this returns. Without
 * PressureClients= nothing is listened to, but clients that are there are served.
 */
int provider_new(
                struct manager *manager,
                int listen_fd,
                const int *clients,
                size_t n_clients,
                struct provider **ret_provider);
struct provider *provider_free(struct provider *provider);

/* PressureClients= may have changed. */
void provider_configure(struct provider *provider);

/* Marks the unit's clients for provider_tell(), where the rules let them be told of CAUSE. */
void provider_mark(struct unit *unit, enum mg_pressure_cause cause);

/* A byte to each client of each unit that is marked. Returns how many have got one. */
size_t provider_tell(struct provider *provider);

/* Both at once, for one unit. NULL: 0. */
size_t provider_tell_unit(struct provider *provider, struct unit *unit);

/* After a tick's units: what became of the last bytes, clients whose unit came back, those that never said who they are. */
void provider_tick(struct provider *provider, uint64_t now_usec);

/* The unit ends. Its clients stay. NULL is allowed. */
void provider_forget_unit(struct provider *provider, const struct unit *unit);

/* Connections, and what they cost in memory; 0 for NULL. */
size_t provider_clients(const struct provider *provider);
size_t provider_bytes(const struct provider *provider);
