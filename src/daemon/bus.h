/* SPDX-License-Identifier: MIT */
/*
 * The daemon's D-Bus interface, src/host/bus_api.h: peer to peer on the runtime directory's socket "bus" (works
 * without a bus daemon), and as org.memguard1 on the system bus when there is one. Layer: daemon.
 *
 * Reading is for everyone who can reach the socket, acting for root and the daemon's own user. A client that floods,
 * sleeps or vanishes costs its own connection: connections and each one's unsent bytes are bounded, and nothing here waits.
 */
#pragma once

#include "daemon/manager.h"

struct bus_server;

/*
 * Listens on the manager's bus_fd (taken over) or, where that is unset, on "bus" in its runtime directory, and unless started by
 * hand tries the system bus in the background. An absent system bus is no error.
 */
int bus_server_new(struct manager *manager, struct bus_server **ret_server);
struct bus_server *bus_server_free(struct bus_server *server);

/* After each tick: tells the system bus what has changed since the last one. */
void bus_tick(struct bus_server *server);

/* While UNIT is still there. SERVER NULL: nobody is listening (yet, or any more). */
void bus_unit_gone(struct bus_server *server, struct unit *unit);
