/* SPDX-License-Identifier: MIT */
/*
 * Which units there are: systemd tells over D-Bus where it can; the cgroup tree is walked besides, for what systemd's
 * system bus does not know (user units, a host without systemd). Where numbers come from /proc, /proc is walked. Layer: daemon.
 */
#pragma once

#include <sys/types.h>

struct manager;
struct unit;

/* Walks the tree once, listens to systemd, walks again now and then. */
int discovery_start(struct manager *manager);
void discovery_stop(struct manager *manager);

/* One look through /proc, for hosts whose cgroups tell nothing. */
int discovery_walk_processes(struct manager *manager);

/* A process of UNIT that nobody has spoken for. -EEXIST: it is there already, or there are too many. */
int discovery_add_process(struct unit *unit, pid_t pid, uid_t uid);
