/* SPDX-License-Identifier: MIT */
/*
 * What outlives the daemon: each unit's policy state and history (runtime directory), its costs and what an operator has paused (state
 * directory). Layer: daemon.
 *
 * Files are replaced whole or not at all. A damaged one is reported, left aside and costs what it held; a full disk
 * costs the saving, never the daemon. What is paused is synced, as an operator relies on it; all else is not, since the loop
 * must not wait for a disk. Costs and pauses go by unit_label(): names repeat in containers and users' managers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct manager;
struct unit;

/* Reads what the state directory holds. Returns 0 or -ENOMEM: anything else costs only what was kept. */
int store_open(struct manager *manager);
void store_close(struct manager *manager);

/* What is known of a new unit by its label: paused, costs. And, once its identity is complete, its policy state and history. */
void store_load_unit(struct unit *unit);
void store_load_state(struct unit *unit);

/* After a round, and at the end; and from the once-a-minute part of the tick, when the last time is long ago. */
void store_save_unit(struct unit *unit);
void store_save_old(struct unit *unit, uint64_t now_usec);
void store_tick(struct manager *manager, uint64_t now_usec);
void store_save_all(struct manager *manager);

/* The unit has ended, or begun a new life: nobody may take its old state for the new one's. */
void store_forget_unit(struct unit *unit);

/* Returns -errno when the pause may not outlive the daemon. KEEP_UNLOADED: units that are not here now stay paused. */
int store_save_pauses(struct manager *manager, bool keep_unloaded);
