/* SPDX-License-Identifier: MIT */
/* This process's own executable. Layer: agent; no allocation. */
#include "agent/executable.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/macros.h"

static uintptr_t load_base;
static const void *image_begin;

/* The loader names the executable first. */
static int take_first(struct dl_phdr_info *info, size_t size, void *argument) {
        Dl_info found;

        load_base = info->dlpi_addr;
        image_begin = dladdr(info->dlpi_phdr, &found) != 0 ? found.dli_fbase : NULL;
        return 1;
}

void executable_init(void) {
        dl_iterate_phdr(take_first, NULL);
}

uintptr_t executable_load_base(void) {
        return load_base;
}

const void *executable_image(void) {
        return image_begin;
}

int executable_find_jemalloc(struct mg_symbols *ret_symbols) {
        struct stat info;

        MG_CLEANUP(file_closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &info) < 0)
                return -errno;
        if (!S_ISREG(info.st_mode) || info.st_size <= 0)
                return -ENOEXEC;
        void *map = mmap(NULL, (size_t) info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED)
                return -errno;
        int r = symtab_find_jemalloc(map, (size_t) info.st_size, ret_symbols);
        munmap(map, (size_t) info.st_size);
        return r;
}
