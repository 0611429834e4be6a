/* SPDX-License-Identifier: MIT */
/* See told.h. Layer: daemon; pure. */
#include "daemon/told.h"

/* FNV-1a, the NUL included, so that "ab" "c" is not "a" "bc". */
static uint64_t hash_add(uint64_t hash, const char *text) {
        const unsigned char *at = (const unsigned char *) text;

        do
                hash = (hash ^ *at) * UINT64_C(1099511628211);
        while (*at++ != '\0');
        return hash;
}

bool told_before(struct told *told, const char *whom, const char *text) {
        uint64_t hash = hash_add(hash_add(UINT64_C(14695981039346656037), whom), text);
        uint64_t *slot = &told->hash[hash % TOLD_SLOTS];

        if (*slot == hash)
                return true;
        *slot = hash;
        return false;
}
