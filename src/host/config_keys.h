/* SPDX-License-Identifier: MIT */
/*
 * The keys of memguard.ini: what each is called, what it expects and where it is kept. Layer: host; pure.
 */
#pragma once

#include "host/config.h"
#include "host/config_values.h"

struct mg_config_key {
        const char *name;
        const char *expects; /* ends the sentence "expected ..." */
        const struct mg_value_kind *kind;
        size_t offset; /* of the field, in struct mg_daemon_config or struct mg_unit_config */
        size_t size;
        uint64_t minimum;
        uint64_t maximum;
};

/* [Daemon], in the order of memguard.ini(5). */
#define MG_DAEMON_KEY_COUNT 7
extern const struct mg_config_key daemon_keys[MG_DAEMON_KEY_COUNT];

/* [Default] and the units' sections. */
extern const struct mg_config_key unit_keys[_MG_UNIT_KEY_MAX];

void daemon_config_defaults(struct mg_daemon_config *ret_config);

/* The key called NAME out of KEYS, or NULL. */
const struct mg_config_key *config_key_find(
                const struct mg_config_key *keys,
                size_t n_keys,
                const char *name);

/* The key that NAME was probably meant to be (nearest_name()), or NULL. */
const struct mg_config_key *config_key_nearest(
                const struct mg_config_key *keys,
                size_t n_keys,
                const char *name);

/* CONFIG is the struct that KEY's offset belongs to. Returns 0 or -EINVAL. */
int config_key_read(const struct mg_config_key *key, const char *value, void *config);
const char *config_key_write(
                const struct mg_config_key *key,
                const void *config,
                char *buffer,
                size_t size);
void config_key_copy(const struct mg_config_key *key, const void *from, void *to);
