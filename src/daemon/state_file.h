/* SPDX-License-Identifier: MIT */
/*
 * One unit's files: its policy state in the runtime directory, for a restart of the daemon, and its costs in the state
 * directory, for a reboot. A file a unit, so that a damaged one costs its own unit alone. Layer: daemon; logs nothing.
 */
#pragma once

struct unit;

/*
 * Only a file of this very life of the unit counts: the same boot and cgroup inode, or, where there is no cgroup, at least one
 * of the same processes. Returns 0, -ENOENT (none), -ESTALE (of another life) or what is wrong with it.
 */
int state_file_load(struct unit *unit);
int state_file_save(const struct unit *unit);
void state_file_remove(const struct unit *unit);

/* By the unit's name alone. Saving does nothing where nothing has been learned. */
int cost_file_load(struct unit *unit);
int cost_file_save(const struct unit *unit);

/* Removes what nobody will read any more: files not written for AGE_USEC. */
void state_files_purge(int dir_fd, unsigned long long age_usec);
