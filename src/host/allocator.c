/* SPDX-License-Identifier: MIT */
/* Allocators by the names of libraries and symbols. Layer: host; pure. */
#include "host/allocator.h"

#include <errno.h>

#include "base/macros.h"

static const char *const allocator_names[] = {
        [MG_ALLOCATOR_GLIBC] = "glibc",       [MG_ALLOCATOR_MUSL] = "musl",
        [MG_ALLOCATOR_JEMALLOC] = "jemalloc", [MG_ALLOCATOR_TCMALLOC] = "tcmalloc",
        [MG_ALLOCATOR_MIMALLOC] = "mimalloc", [MG_ALLOCATOR_GO] = "go",
        [MG_ALLOCATOR_JVM] = "jvm",
};
_Static_assert(MG_ELEMENTS(allocator_names) == _MG_ALLOCATOR_MAX, "an allocator has no name");

/* The file name begins with this, up to ".so" or "-VERSION.so". */
static const struct {
        const char *stem;
        enum mg_allocator allocator;
} libraries[] = {
        { "libc", MG_ALLOCATOR_GLIBC },
        { "ld-musl", MG_ALLOCATOR_MUSL }, /* musl's loader is its libc */
        { "libjemalloc", MG_ALLOCATOR_JEMALLOC },
        { "libtcmalloc", MG_ALLOCATOR_TCMALLOC },
        { "libtcmalloc_minimal", MG_ALLOCATOR_TCMALLOC },
        { "libmimalloc", MG_ALLOCATOR_MIMALLOC },
        { "libjvm", MG_ALLOCATOR_JVM },
};

const char *allocator_to_string(enum mg_allocator allocator) {
        return allocator_names[allocator];
}

int allocator_from_library(const char *path) {
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;

        for (size_t i = 0; i < MG_ELEMENTS(libraries); i++) {
                size_t length = strlen(libraries[i].stem);
                if (strncmp(name, libraries[i].stem, length) != 0)
                        continue;
                const char *tail = name + length;
                /* "libc.musl-x86_64.so.1" is Alpine's other name for musl. */
                if (libraries[i].allocator == MG_ALLOCATOR_GLIBC && strncmp(tail, ".musl-", 6) == 0)
                        return MG_ALLOCATOR_MUSL;
                if (strncmp(tail, ".so", 3) == 0 || (tail[0] == '-' && strstr(tail, ".so")))
                        return (int) libraries[i].allocator;
        }
        return -ENOENT;
}

static int match_jemalloc(const char *symbol, size_t *ret_prefix_length) {
        static const char entry[] = "mallctl";
        size_t length = strlen(symbol), tail = strlen(entry);

        if (length < tail || !mg_streq(symbol + length - tail, entry))
                return -ENOENT;
        /* A prefix ends in "_": "somallctl" is a word of somebody else's. */
        if (length > tail && symbol[length - tail - 1] != '_')
                return -ENOENT;
        *ret_prefix_length = length - tail;
        return MG_ALLOCATOR_JEMALLOC;
}

int allocator_from_symbol(const char *symbol, size_t *ret_prefix_length) {
        static const struct {
                const char *name;
                enum mg_allocator allocator;
        } symbols[] = {
                { "MallocExtension_ReleaseFreeMemory", MG_ALLOCATOR_TCMALLOC },
                { "mi_collect", MG_ALLOCATOR_MIMALLOC },
                { "runtime.mallocgc", MG_ALLOCATOR_GO },
                { "__libc_mallopt", MG_ALLOCATOR_GLIBC }, /* musl has no mallopt */
        };

        for (size_t i = 0; i < MG_ELEMENTS(symbols); i++)
                if (mg_streq(symbols[i].name, symbol)) {
                        *ret_prefix_length = 0;
                        return (int) symbols[i].allocator;
                }
        return match_jemalloc(symbol, ret_prefix_length);
}
