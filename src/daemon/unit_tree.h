/* SPDX-License-Identifier: MIT */
/*
 * Trees of cgroups in which somebody else than root makes units: a user's manager, a container, a service with Delegate=. Who owns
 * one can make directories without end, and each unit costs descriptors and reads in each tick, so a tree may have so many units
 * and no more. Told by the path (unit_name_tree_length()), not by the user whom a path names: who chooses the names below a tree
 * could name any. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define UNITS_PER_TREE 1024

struct manager;

struct unit_tree {
        struct unit_tree *next; /* of manager->trees */
        size_t n_units;
        bool told;   /* that it is full: once, as long as it has units */
        char path[]; /* "/user.slice/user-1000.slice/user@1000.service" */
};

/*
 * Counts one more unit at PATH. *RET_TREE is NULL where it is in no tree. -EUSERS: the tree is full, and the journal has been told;
 * -ENOMEM.
 */
int unit_tree_join(struct manager *manager, const char *path, struct unit_tree **ret_tree);

/* One less; the last one frees it. TREE may be NULL. */
void unit_tree_leave(struct manager *manager, struct unit_tree *tree);
