/* SPDX-License-Identifier: MIT */
/*
 * What trims and statistics cost, by a unit's label (unit_label()): the one thing learned that is still true after a reboot. A table that the
 * store reads at the start and writes back; units that are not loaded keep their line. Layer: daemon; pure but for malloc.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/policy.h"

/* More names than any host has units: transient scopes must not make the file grow for ever. */
#define COSTS_MAX 4096

struct cost {
        char *name;
        uint64_t pause_usec_per_gib; /* MG_UNKNOWN: not learned, as the others */
        uint64_t pause_usec_per_million_chunks;
        uint64_t statistics_usec;
        uint64_t statistics_bytes;
        uint64_t last_pause_usec;
};

struct costs {
        struct cost *items;
        size_t n_items;
};

void costs_done(struct costs *costs);

/* Returns 0, or -EBADMSG: damaged (*costs is then empty), or -ENOMEM. */
int costs_decode(struct costs *costs, const char *text);

/* The file's text, owned by the caller. */
int costs_encode(const struct costs *costs, char **ret_text, size_t *ret_length);

/*
 * From a unit's policy state into the table (the line that has not changed for longest makes room). Returns whether the table has
 * changed, or -ENOMEM. And back, where something is known.
 */
int costs_remember(struct costs *costs, const char *name, const struct mg_policy_state *state);
void costs_recall(const struct costs *costs, const char *name, struct mg_policy_state *state);
