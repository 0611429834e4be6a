/* SPDX-License-Identifier: MIT */
/*
 * What the service manager is told: readiness, reloading, the watchdog, one line of status. Nothing happens
 * without $NOTIFY_SOCKET, and no failure here is anybody's business. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/text.h"

/* Serves WatchdogSec= from EVENT's loop as long as that runs. Returns whether there is a watchdog. */
bool notify_watchdog(sd_event *event);

void notify_ready(void);

/* RELOADING=1 with MONOTONIC_USEC=; notify_ready() ends it. */
void notify_reloading(void);
void notify_stopping(void);

/* Into the service manager's store: it comes back as NAME when the daemon is started again. It leaves by itself at the other end's hang-up. */
void notify_store_descriptor(int fd, const char *name);

struct notify_status {
        size_t units;
        size_t trimming;
        size_t observing;
        size_t no_agent;
        uint64_t trimmed_bytes; /* since the start */
        bool paused;
};

/* Sent only when the line differs from the last one. */
void notify_status(const struct notify_status *status);

/* The line itself; pure. */
void notify_format_status(const struct notify_status *status, struct mg_text *text);
