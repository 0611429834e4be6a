/* SPDX-License-Identifier: MIT */
/* See told.h. Layer: daemon; pure. */
#include "daemon/told.h"

#include <string.h>

#include "base/hash.h"

bool told_before(struct told *told, const char *whom, const char *text) {
        /* The NUL included, so that "ab" "c" is not "a" "bc". */
        uint64_t hash = hash_add(
                        hash_add(MG_HASH_INIT, whom, strlen(whom) + 1), text, strlen(text) + 1);
        uint64_t *slot = &told->hash[hash % TOLD_SLOTS];

        if (*slot == hash)
                return true;
        *slot = hash;
        return false;
}
