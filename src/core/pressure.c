/* SPDX-License-Identifier: MIT */
/* See pressure.h. Layer: core; pure. */
#include "core/pressure.h"

/* Section 5 of the design: the unit stands still for so much of the last ten seconds ... */
#define FULL_PERMYRIAD 4000

/* ... and of the pages that reclaim looks at it gets fewer than half. */
#define STEAL_PERMYRIAD 5000

/* The kernel throttles at MemoryHigh=, so that usage stays about there: from nine tenths on it counts as reached. */
#define REACHED_NUMERATOR   9
#define REACHED_DENOMINATOR 10

/* How long the place N levels below the root is in PATH; 0 where PATH is not that deep. */
static size_t length_at_level(const char *path, size_t level) {
        const char *at = path;

        for (; level > 0 && *at == '/'; level--)
                do
                        at++;
                while (*at != '\0' && *at != '/');
        return level == 0 ? (size_t) (at - path) : 0;
}

bool pressure_is_at(const char *path, const char *place, size_t length) {
        return strncmp(path, place, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static bool is_planned(
                const struct mg_pressure_place *places,
                size_t n_places,
                const char *path,
                size_t length) {
        for (size_t i = n_places; i > 0; i--)
                if (places[i - 1].length == length && memcmp(places[i - 1].path, path, length) == 0)
                        return true;
        return false;
}

/* Returns whether any path is that deep. */
static bool plan_level(
                const char *const *paths,
                size_t n_paths,
                size_t level,
                struct mg_pressure_place *places,
                size_t max,
                size_t *n_places) {
        bool found = false;

        for (size_t i = 0; i < n_paths && *n_places < max; i++) {
                size_t length = length_at_level(paths[i], level);

                if (length < 2) /* "/" alone is the root once more */
                        continue;
                found = true;
                if (!is_planned(places, *n_places, paths[i], length))
                        places[(*n_places)++] = (struct mg_pressure_place){ paths[i], length };
        }
        return found;
}

size_t pressure_plan(
                const char *const *paths,
                size_t n_paths,
                struct mg_pressure_place *places,
                size_t max) {
        size_t n = 0;

        if (max == 0)
                return 0;
        places[n++] = (struct mg_pressure_place){ "", 0 };
        for (size_t level = 1; plan_level(paths, n_paths, level, places, max, &n); level++)
                ;
        return n;
}

bool pressure_is_short(uint64_t used_bytes, uint64_t limit_bytes) {
        return limit_bytes != MG_UNKNOWN && used_bytes >= mg_scale(limit_bytes, 3, 4);
}

bool pressure_is_poor_reclaim(
                const struct mg_pressure_reading *before,
                const struct mg_pressure_reading *now) {
        uint64_t scanned = mg_sub_floor(now->pgscan, before->pgscan);
        uint64_t stolen = mg_sub_floor(now->pgsteal, before->pgsteal);

        if (before->high_events == MG_UNKNOWN || now->high_events == MG_UNKNOWN ||
            now->high_events <= before->high_events)
                return false;
        if (now->full_permyriad == MG_UNKNOWN || now->full_permyriad <= FULL_PERMYRIAD)
                return false;
        if (before->pgscan == MG_UNKNOWN || now->pgscan == MG_UNKNOWN ||
            before->pgsteal == MG_UNKNOWN || now->pgsteal == MG_UNKNOWN)
                return false;
        /* Nothing scanned: without swap the kernel does not even look at anonymous pages. */
        return scanned == 0 || stolen < mg_scale(scanned, STEAL_PERMYRIAD, 10000);
}

bool pressure_is_live_over_limit(
                const struct mg_decision *decision,
                const struct mg_memory *memory) {
        uint64_t usage = memory->current_bytes;

        if (!decision->pressure_alert || memory->high_bytes == MG_UNKNOWN)
                return false;
        if (usage == MG_UNKNOWN)
                usage = decision->account.anon_bytes;
        return usage >= mg_scale(memory->high_bytes, REACHED_NUMERATOR, REACHED_DENOMINATOR) &&
               decision->account.live_bytes >= memory->high_bytes / 2;
}
