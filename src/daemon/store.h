/* SPDX-License-Identifier: MIT */
/*
 * What outlives the daemon. In the runtime directory: each unit's policy state, a file a unit, keyed by its identity.
 * In the state directory, over reboots: learned costs by unit name, and what an operator has paused. Layer: daemon.
 *
 * Files are replaced whole or not at all. A damaged one is reported, left aside and costs what it held; a full disk
 * costs the saving, never the daemon. Nothing is synced: the loop must not wait for a disk.
 */
#pragma once

#include <stdbool.h>

struct manager;
struct unit;

/* Reads what the state directory holds. Returns 0 or -ENOMEM: anything else costs only what was kept. */
int store_open(struct manager *manager);
void store_close(struct manager *manager);

/* What is known of the unit from before: paused, costs, policy state (only of this very life of it). */
void store_load_unit(struct unit *unit);
void store_load_costs(struct unit *unit);

void store_save_unit(struct unit *unit);
void store_forget_unit(struct unit *unit);
void store_save_costs(struct manager *manager);

/* Returns -errno when the pause will not outlive the daemon. KEEP_UNLOADED: names of units that are not here now stay paused. */
int store_save_pauses(struct manager *manager, bool keep_unloaded);

/* Everything that changed; at the end of the daemon, and now and then. */
void store_save_all(struct manager *manager);
