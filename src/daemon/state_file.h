/* SPDX-License-Identifier: MIT */
/*
 * A unit's policy state and its history over a restart of the daemon: two files a unit in the runtime directory, so that a damaged one
 * costs its own unit alone. Layer: daemon; logs nothing.
 */
#pragma once

struct unit;

/*
 * Only a file of this very life of the unit counts: the same boot and cgroup inode, or, where there is no cgroup, at least one
 * of the same processes. Returns 0, -ENOENT (none), -ESTALE (of another life) or what is wrong with it.
 */
int state_file_load(struct unit *unit);
int state_file_save(const struct unit *unit);

/* The same for its history; what the unit has of one already goes on top. */
int history_file_load(struct unit *unit);
int history_file_save(const struct unit *unit);

/* Both. */
void state_files_remove(const struct unit *unit);

/* Removes what nobody will read any more: files not written for AGE_USEC. */
void state_files_purge(int dir_fd, unsigned long long age_usec);
