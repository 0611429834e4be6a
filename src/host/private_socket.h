/* SPDX-License-Identifier: MIT */
/*
 * The way to a daemon's private bus socket. By descriptor and not by a D-Bus address, whose escaping libsystemd leaves to
 * its callers. Layer: host.
 */
#pragma once

/* Connects to the bus socket in DIRECTORY. Never waits: -EAGAIN when the daemon's backlog is full. */
int private_socket_connect(const char *directory, int *ret_fd);
