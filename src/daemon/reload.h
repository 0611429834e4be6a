/* SPDX-License-Identifier: MIT */
/* The configuration, put in force: at the start, by SIGHUP, by memguardctl reload. Layer: daemon. */
#pragma once

struct manager;

/* Logs what is wrong. Returns 0, or a negative error: the daemon cannot start. */
int reload_at_start(struct manager *manager);

/* SIGHUP: what is wrong is logged, and nobody waits for an answer. */
void reload_by_signal(struct manager *manager);

/* NULL: all are defaults. */
const char *reload_main_file(const struct manager *manager);
