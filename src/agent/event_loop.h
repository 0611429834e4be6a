/* SPDX-License-Identifier: MIT */
/*
 * The agent without a thread: one epoll descriptor, over the socket, a timer and a wake-up, that the program watches in its own event
 * loop. Layer: agent.
 */
#pragma once

#include "agent/settings.h"

/* As the public functions; 0, -EBUSY when open, or what the system said. */
int loop_open(const struct mg_settings *settings);
int loop_get_fd(void);
int loop_dispatch(void);
int loop_close(void);

/* In the child: its copies of the descriptors are closed. */
void loop_after_fork(void);
