/* SPDX-License-Identifier: MIT */
/*
 * Calling memguardd: the private socket first (works without a bus daemon), else the system bus. An error is printed
 * once, as one line, and comes back as an exit code. Layer: ctl.
 */
#pragma once

#include <jansson.h>
#include <systemd/sd-bus.h>

/*
 * Calls METHOD of org.memguard1.Manager with arguments of sd-bus TYPES ("" for none), and hands out the reply's only value as
 * JSON, NULL where the method returns nothing. The caller owns *ret_reply. Returns an enum ctl_exit.
 */
int client_call(json_t **ret_reply, const char *method, const char *types, ...);

/* The same with one argument of type "as": NAMES ends with NULL. */
int client_call_names(json_t **ret_reply, const char *method, char **names);

/*
 * For who keeps a connection: *ret_destination is NULL peer to peer. Returns an enum ctl_exit, after the line that explains it.
 */
int client_open(sd_bus **ret_bus, const char **ret_destination);

/* Prints what a call failed by: ERROR where it is set, else R, a negative errno. Returns an enum ctl_exit. */
int client_report(const sd_bus_error *error, int r);
