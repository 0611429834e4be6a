/* SPDX-License-Identifier: MIT */
/* Finding memguard's own parts. Layer: replay. */
#include "replay/places.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "host/cleanup.h"

static const struct {
        const char *name;
        const char *variable;
        const char *in_build; /* from the program's directory in a build tree */
        const char *installed;
} places[] = {
        [PLACE_MEMGUARDD] = { "memguardd", "MEMGUARDD", "../daemon/memguardd",
                              MG_SBINDIR "/memguardd" },
        [PLACE_AGENT] = { "libmemguard-preload.so", "MEMGUARD_PRELOAD",
                          "../agent/libmemguard-preload.so", MG_LIBDIR "/libmemguard-preload.so" },
        [PLACE_TRIM_EVERY] = { "libmemguard-trim-every.so", "MEMGUARD_TRIM_EVERY_LIBRARY",
                               "libmemguard-trim-every.so",
                               MG_LIBDIR "/memguard/libmemguard-trim-every.so" },
};
_Static_assert(MG_ELEMENTS(places) == _PLACE_MAX, "a place is missing");

const char *place_name(enum place place) {
        return places[place].name;
}

static int try(const char *path, char **ret_path) {
        char whole[PATH_MAX];

        if (!realpath(path, whole))
                return -errno;
        *ret_path = strdup(whole);
        return *ret_path ? 0 : -ENOMEM;
}

static int try_build(const char *name, char **ret_path) {
        char own[PATH_MAX];
        MG_CLEANUP(freep) char *path = NULL;
        ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

        if (n <= 0)
                return -ENOENT;
        own[n] = '\0';
        *strrchr(own, '/') = '\0';
        if (asprintf(&path, "%s/%s", own, name) < 0)
                return -ENOMEM;
        return try(path, ret_path);
}

int place_find(enum place place, const char *given, char **ret_path) {
        const char *variable = getenv(places[place].variable);

        if (given)
                return try(given, ret_path);
        if (variable && *variable)
                return try(variable, ret_path);
        int r = try_build(places[place].in_build, ret_path);
        if (r < 0 && r != -ENOMEM)
                r = try_build(places[place].name, ret_path);
        if (r < 0 && r != -ENOMEM)
                r = try(places[place].installed, ret_path);
        return r;
}
