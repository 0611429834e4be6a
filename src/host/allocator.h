/* SPDX-License-Identifier: MIT */
/*
 * Which allocators a program has, told from the names of its libraries and symbols. Layer: host; pure.
 */
#pragma once

#include <stddef.h>

enum mg_allocator {
        MG_ALLOCATOR_GLIBC,
        MG_ALLOCATOR_MUSL,
        MG_ALLOCATOR_JEMALLOC,
        MG_ALLOCATOR_TCMALLOC,
        MG_ALLOCATOR_MIMALLOC,
        MG_ALLOCATOR_GO,  /* its own heap, collected */
        MG_ALLOCATOR_JVM, /* the same */
        _MG_ALLOCATOR_MAX,
};

const char *allocator_to_string(enum mg_allocator allocator); /* "jemalloc" */

/* From a library's file name or path ("libjemalloc.so.2", " (deleted)" behind it or not); -ENOENT: it has none that is known. */
int allocator_from_library(const char *path);

/*
 * From a symbol that a program defines: "_rjem_mallctl" is jemalloc under the prefix "_rjem_", whose length goes to RET_PREFIX_LENGTH
 * (0 for the others). -ENOENT: none of the names that give one away.
 */
int allocator_from_symbol(const char *symbol, size_t *ret_prefix_length);
