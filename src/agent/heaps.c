/* SPDX-License-Identifier: MIT */
/* All allocators of this process. Layer: agent. */
#include "agent/heaps.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

#include "agent/executable.h"
#include "base/macros.h"

static const struct mg_backend *const backends[] = { &backend_glibc, &backend_jemalloc,
                                                     &backend_tcmalloc, &backend_mimalloc };

static struct mg_heap heaps[MG_HEAPS_MAX];
static size_t n_heaps;
static struct mg_message
                described; /* the last description: what does not change is not asked again */
static bool makes_handles;
static const void *malloc_base; /* of the object that the program's malloc() is in */

/* In other libcs absent. */
extern int dladdr1(const void *address, Dl_info *info, void **extra, int flags)
                __attribute__((weak));

/*
 * The address of a function that an executable at a fixed place uses as a value (Debian's python3 does so with malloc) is, for
 * all objects, that of its own stub: a symbol with an address but without a section, which tells nothing.
 */
static bool is_stub(const void *symbol) {
        const ElfW(Sym) *entry = NULL;
        Dl_info info;

        return dladdr1 && dladdr1(symbol, &info, (void **) &entry, RTLD_DL_SYMENT) != 0 && entry &&
               entry->st_shndx == SHN_UNDEF;
}

static const void *base_of(const void *symbol) {
        Dl_info info;

        return symbol && !is_stub(symbol) && dladdr(symbol, &info) != 0 ? info.dli_fbase : NULL;
}

/* Whoever serves one of them serves them all. */
static const void *find_malloc_base(void) {
        const void *const symbols[] = { malloc, calloc, realloc, free, posix_memalign };
        const void *base = NULL;

        for (size_t i = 0; i < MG_ELEMENTS(symbols) && !base; i++)
                base = base_of(symbols[i]);
        return base;
}

bool heaps_serves_malloc(const void *symbol) {
        return malloc_base && base_of(symbol) == malloc_base;
}

bool heaps_malloc_is_in_executable(void) {
        return malloc_base && malloc_base == executable_image();
}

bool heaps_makes_handles(void) {
        return makes_handles;
}

void heaps_probe(bool with_handles) {
        makes_handles = with_handles;
        executable_init();
        malloc_base = find_malloc_base();
        n_heaps = 0;
        for (size_t i = 0; i < MG_ELEMENTS(backends); i++)
                n_heaps += backends[i]->probe(heaps + n_heaps, MG_HEAPS_MAX - n_heaps);
}

void heaps_probe_file(void) {
        static bool is_done;
        struct mg_symbols symbols;

        if (is_done)
                return;
        is_done = true;
        if (executable_find_jemalloc(&symbols) < 0)
                return;
        for (size_t i = 0; i < MG_ELEMENTS(backends); i++)
                if (backends[i]->probe_file)
                        n_heaps += backends[i]->probe_file(
                                        &symbols, heaps + n_heaps, MG_HEAPS_MAX - n_heaps);
}

size_t heaps_count(void) {
        return n_heaps;
}

const struct mg_heap *heaps_get(size_t i) {
        return &heaps[i];
}

void heaps_describe(struct mg_message *message) {
        proto_init(&described, MG_VERB_HELLO);
        described.number[MG_NUMBER_HEAPS] = n_heaps;
        for (size_t i = 0; i < n_heaps; i++) {
                described.heap[i].text[MG_HEAP_ALLOCATOR] = span_of(heaps[i].backend->name);
                described.heap[i].number[MG_HEAP_SERVES_MALLOC] = heaps[i].serves_malloc;
                heaps[i].backend->describe(&heaps[i], &described.heap[i]);
        }
        message->number[MG_NUMBER_HEAPS] = n_heaps;
        memcpy(message->heap, described.heap, sizeof(message->heap));
}

void heaps_name(struct mg_message *message) {
        message->number[MG_NUMBER_HEAPS] = n_heaps;
        for (size_t i = 0; i < n_heaps; i++) {
                message->heap[i].text[MG_HEAP_ALLOCATOR] =
                                described.heap[i].text[MG_HEAP_ALLOCATOR];
                message->heap[i].text[MG_HEAP_PREFIX] = described.heap[i].text[MG_HEAP_PREFIX];
        }
}

bool heaps_can(const char *word) {
        for (size_t i = 0; i < n_heaps; i++)
                if (span_has_word(described.heap[i].text[MG_HEAP_CAN], word))
                        return true;
        return false;
}

size_t heaps_stats(struct mg_message *message) {
        size_t n_known = 0;

        for (size_t i = 0; i < n_heaps; i++)
                if (heaps[i].backend->stats(&heaps[i], &message->heap[i]) == 0)
                        n_known++;
        return n_known;
}
