/* SPDX-License-Identifier: MIT */
/*
 * The way to a daemon's bus, for the programs that ask it. The private socket goes by descriptor and not by a D-Bus address,
 * whose escaping libsystemd leaves to its callers. Layer: busclient.
 */
#pragma once

#include <systemd/sd-bus.h>

/*
 * Starts a connection to the private bus of the daemon that runs in DIRECTORY. Never waits: -EAGAIN when the daemon's
 * backlog is full, and authentication is still to come.
 */
int busclient_open_private(const char *directory, sd_bus **ret_bus);

/*
 * A directory that was named is the only place to look; NULL is MG_RUNTIME_DIRECTORY, and the system bus after it. *RET_DESTINATION
 * is who to call there, NULL on a private bus. Errors are the private bus's.
 */
int busclient_open(const char *directory, sd_bus **ret_bus, const char **ret_destination);
