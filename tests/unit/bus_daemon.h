/* SPDX-License-Identifier: MIT */
/*
 * A private bus daemon for one test program. Skips the program where there is none installed.
 */
#pragma once

#include <sys/types.h>

struct bus_daemon {
        char directory[32];
        char address[64]; /* for sd_bus_set_address() */
        const char *policy; /* a policy file to include, as the system bus would; NULL: everything is allowed */
        pid_t pid;
};

void bus_daemon_start(struct bus_daemon *daemon);

/* It can be started again under the same address. */
void bus_daemon_stop(struct bus_daemon *daemon);
void bus_daemon_done(struct bus_daemon *daemon);
