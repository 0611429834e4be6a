/* SPDX-License-Identifier: MIT */
/*
 * The agent reads its host's executable: any bytes give a result or -ENOEXEC, and what is found has a prefix that ends
 * and addresses inside executable segments of the image.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/symtab.h"
#include "fuzz.h"

static void require(int condition) {
        if (!condition)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct mg_symbols symbols;
        /* Aligned as a map of a file is, and not a byte longer than it says. */
        void *image = malloc(size > 0 ? size : 1);

        require(image != NULL);
        memcpy(image, data, size);
        int r = symtab_find_jemalloc(image, size, &symbols);
        require(r == 0 || r == -ENOEXEC);
        for (size_t i = 0; r == 0 && i < symbols.n_sets; i++) {
                const struct mg_symbol_set *set = &symbols.set[i];
                require(i < 3 && symbols.has_table);
                require(memchr(set->prefix, '\0', sizeof(set->prefix)) != NULL);
                require(set->mallctl && set->mallctlnametomib && set->mallctlbymib);
        }
        free(image);
        return 0;
}
