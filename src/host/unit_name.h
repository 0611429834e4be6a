/* SPDX-License-Identifier: MIT */
/*
 * From a cgroup path to the unit it belongs to. Layer: host; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define MG_UNIT_NAME_MAX 256

struct mg_unit_name {
        char unit[MG_UNIT_NAME_MAX]; /* "nginx.service", unescaped as systemd shows it; printable ASCII only */
        size_t path_length; /* of the unit's own cgroup: the prefix of the path */
        bool user;          /* a unit of a user manager */
        uid_t user_uid;     /* of that manager, when user */
};

/*
 * The deepest .service or .scope component; below user@N.service units belong to the user manager, and user@N.service
 * itself counts only for processes in none of these. Returns 0, or -ENXIO: in no unit (a slice, a container's own tree, "/").
 */
int unit_name_from_cgroup(const char *path, struct mg_unit_name *ret_name);

/* Whether this component of a cgroup path is a unit: ends in .service or .scope. */
bool unit_name_is_unit(const char *component, size_t length);

/*
 * How much of cgroup PATH is a tree that was handed to somebody: a user's manager, a container, a service with Delegate=. That
 * is the first component which is no slice, when there is something below it. 0: the host's own manager made this cgroup.
 */
size_t unit_name_tree_length(const char *path);

/* Whether this component of a cgroup path ends in .slice. */
bool unit_name_is_slice(const char *component, size_t length);

/* "redis-server.process", or "redis-server@1000.process" for a second user's: processes outside every unit. EXECUTABLE may be a path. */
void unit_name_for_process(
                const char *executable,
                uid_t uid,
                uid_t own_uid,
                char ret_name[static MG_UNIT_NAME_MAX]);
