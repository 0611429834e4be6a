/* SPDX-License-Identifier: MIT */
/*
 * What /proc/PID/maps gives away about a process's heaps. Reading it needs CAP_SYS_PTRACE for others' processes; it takes no lock of
 * the process for long, unlike smaps. Layer: host; no allocation; never logs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mg_maps {
        uint32_t allocators; /* of 1 << enum mg_allocator, by mapped library */
        uint32_t arena_heaps; /* mappings that look like a glibc thread arena's heap: 64 MiB-aligned, the rest of them reserved */
        bool has_preload; /* libmemguard-preload.so is in it */
        bool has_agent;   /* that, or a linked libmemguard.so */
};

/* -ESRCH: gone; -EACCES: not allowed. A kernel thread has no line, and so nothing. */
int maps_read(const char *proc_root, pid_t pid, struct mg_maps *ret_maps);

/* The parser, a line at a time. */
struct mg_maps_parser {
        struct mg_maps maps;
        uint64_t heap_start; /* where a candidate for an arena's heap starts and ends; 0: none */
        uint64_t heap_end;
};

void maps_parse_line(struct mg_maps_parser *parser, const char *line);
