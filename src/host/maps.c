/* SPDX-License-Identifier: MIT */
/* /proc/PID/maps: libraries that are allocators, and arenas by their shape. Layer: host. */
#include "host/maps.h"

#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/allocator.h"
#include "host/lines.h"
#include "host/proc.h"

/* glibc's HEAP_MAX_SIZE on 64-bit machines: twice the largest mmap threshold. */
#define ARENA_HEAP_BYTES (64 * MG_MIB)

struct mapping {
        uint64_t start;
        uint64_t end;
        char permissions[5];
        const char *path; /* "" for anonymous memory */
};

static bool parse_mapping(const char *line, struct mapping *ret) {
        char *at;

        ret->start = strtoull(line, &at, 16);
        if (at == line || *at != '-')
                return false;
        const char *second = at + 1;
        ret->end = strtoull(second, &at, 16);
        if (at == second || *at != ' ' || ret->end <= ret->start || strlen(at) < 6 || at[5] != ' ')
                return false;
        memcpy(ret->permissions, at + 1, 4);
        ret->permissions[4] = '\0';

        /* offset, device and inode, then blanks */
        const char *path = at + 5;
        for (int field = 0; field < 3; field++) {
                path += strspn(path, " ");
                path += strcspn(path, " ");
        }
        ret->path = path + strspn(path, " ");
        return true;
}

/* A heap is a writable start and a reserved rest up to the next multiple of its size. */
static void watch_heaps(struct mg_maps_parser *parser, const struct mapping *mapping) {
        bool anonymous = mapping->path[0] == '\0';

        if (anonymous && mg_streq(mapping->permissions, "---p") && parser->heap_end > 0 &&
            mapping->start == parser->heap_end &&
            mapping->end - parser->heap_start >= ARENA_HEAP_BYTES)
                parser->maps.arena_heaps++;
        parser->heap_end = 0;
        if (anonymous && mg_streq(mapping->permissions, "rw-p") &&
            mapping->start % ARENA_HEAP_BYTES == 0 &&
            mapping->end - mapping->start < ARENA_HEAP_BYTES) {
                parser->heap_start = mapping->start;
                parser->heap_end = mapping->end;
        }
}

static bool is_library(const char *path, const char *name) {
        const char *slash = strrchr(path, '/');
        return slash && strncmp(slash + 1, name, strlen(name)) == 0;
}

void maps_parse_line(struct mg_maps_parser *parser, const char *line) {
        struct mapping mapping;

        if (!parse_mapping(line, &mapping)) {
                parser->heap_end = 0;
                return;
        }
        watch_heaps(parser, &mapping);
        if (mapping.path[0] != '/')
                return;
        int allocator = allocator_from_library(mapping.path);
        if (allocator >= 0)
                parser->maps.allocators |= UINT32_C(1) << allocator;
        if (is_library(mapping.path, "libmemguard-preload.so"))
                parser->maps.has_preload = parser->maps.has_agent = true;
        else if (is_library(mapping.path, "libmemguard.so"))
                parser->maps.has_agent = true;
}

int maps_read(const char *proc_root, pid_t pid, struct mg_maps *ret_maps) {
        MG_CLEANUP(file_closep) int fd = proc_open_file(proc_root, pid, "maps");
        struct mg_maps_parser parser = {};
        struct mg_lines lines;
        char *line;
        int r;

        if (fd < 0)
                return fd;
        lines_init(&lines, fd);
        while ((r = lines_next(&lines, &line)) > 0)
                maps_parse_line(&parser, line);
        if (r < 0)
                return r;
        *ret_maps = parser.maps;
        return 0;
}
