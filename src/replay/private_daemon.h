/* SPDX-License-Identifier: MIT */
/*
 * A memguardd for one run alone: its own runtime directory, its own socket, numbers from /proc. Layer: replay.
 */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

#include "replay/child.h"
#include "replay/sample.h"
#include "replay/variant.h"

struct private_daemon {
        char *directory; /* NULL: there is none */
        char *socket;    /* what MEMGUARD_SOCKET is set to */
        char *ini;
        sd_bus *bus;
        struct child process;
};

#define PRIVATE_DAEMON_NONE \
        { .process = CHILD_NONE }

/*
 * The configuration of VARIANT, checked: a message in *RET_MESSAGE where it is wrong (-EINVAL). The caller frees both. Without
 * settings everything is as in memguard.ini(5), but for Mode=trim.
 */
int private_daemon_ini(const struct variant *variant, char **ret_ini, char **ret_message);

/* Starts PROGRAM with VARIANT's configuration, its log into LOG_FD, and waits until it answers. */
int private_daemon_start(
                struct private_daemon *daemon,
                const char *program,
                const struct variant *variant,
                int log_fd);

/* Sums over the units that have agents: live, trims, the last pause. Nothing changes where it does not answer. */
void private_daemon_measure(struct private_daemon *daemon, struct replay_sample *sample);

/* Ends it, reaps it and removes its directory. */
void private_daemon_stop(struct private_daemon *daemon);
