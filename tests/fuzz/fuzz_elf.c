/* SPDX-License-Identifier: MIT */
/* ELF images that are anything: facts, libraries and symbols end in an answer or an error. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "host/elf_file.h"

static int count(void *userdata, const char *library) {
        size_t *length = userdata;
        *length += strlen(library);
        return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        MG_CLEANUP(elf_freep) struct mg_elf *elf = NULL;
        struct mg_elf_allocators allocators;
        struct mg_elf_facts facts;
        size_t length = 0;

        if (elf_open_memory((char *) data, size, &elf) < 0)
                return 0;
        if (elf_facts(elf, &facts) == 0 &&
            ((facts.is_static && !facts.is_program) ||
             (facts.libc == MG_LIBC_NONE) != (facts.interpreter[0] == '\0')))
                abort();
        (void) elf_each_needed(elf, count, &length);
        if (elf_find_allocators(elf, &allocators) == 0 &&
            strlen(allocators.jemalloc_prefix) >= sizeof(allocators.jemalloc_prefix))
                abort();
        return 0;
}
