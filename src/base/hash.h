/* SPDX-License-Identifier: MIT */
/*
 * FNV-1a, 64 bits: buckets, file names, and what has been cut or changed. No secret and no defence: whoever wants a collision
 * finds one. Layer: base; pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The hash of nothing. */
#define MG_HASH_INIT UINT64_C(14695981039346656037)

static inline uint64_t hash_add(uint64_t hash, const char *bytes, size_t length) {
        for (size_t i = 0; i < length; i++)
                hash = (hash ^ (unsigned char) bytes[i]) * UINT64_C(1099511628211);
        return hash;
}
