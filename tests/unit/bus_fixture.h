/* SPDX-License-Identifier: MIT */
/*
 * A whole manager with units made by hand, for tests of what it says on D-Bus: on its own socket and, with a private bus
 * daemon, on the system bus. What the manager has to do for a client it does in turn() alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "bus_daemon.h"
#include "daemon/manager.h"
#include "daemon/unit.h"
#include "host/bus_api.h"

#define NOBODY 65534

/* The path and interface of calls. */
#define MANAGER                MG_BUS_PATH, MG_BUS_INTERFACE
#define LOG_CONTROL_PROPERTIES "/org/freedesktop/LogControl1", "org.freedesktop.DBus.Properties"

extern struct manager *manager;
extern char config_path[64];
extern struct bus_daemon bus_daemon;

void write_config(const char *text);

/* For cmocka. With a system bus: its policy file is conf/org.memguard1.conf. */
int setup_manager(void **state);
int teardown_manager(void **state);
int setup_system(void **state);
int teardown_system(void **state);

/* Runs the event loop so many times, for half a millisecond at most each. */
void turn(int times);

struct unit *make_unit(const char *name);

/* Of the manager's own socket; EVENT NULL: in no loop. */
int connect_socket(void);
sd_bus *connect_bus(sd_event *event);

/* Of the private bus daemon. NULL: it failed. */
sd_bus *connect_system(sd_event *event);

/* Until the manager has its name. BUS is in no loop. */
void wait_for_name(sd_bus *bus);

/* The most that the manager had allocated (self_net_allocated()) while a command or a child ran last. */
extern int64_t most_allocated;

/* Runs COMMAND by the shell, as this user and with the private bus for its system bus, while the manager's loop turns. */
int run_command(const char *command);

/* Runs CHILD in a process of user nobody while the manager's loop turns. Returns its exit status. Needs root. */
int run_as_nobody(int (*child)(void));
