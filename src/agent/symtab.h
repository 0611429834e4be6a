/* SPDX-License-Identifier: MIT */
/*
 * The symbol table of an executable, which the loader does not read: where a statically linked jemalloc with a prefix is found. Pure,
 * over the bytes of the file, of which nothing is believed. Layer: agent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MG_SYMBOL_PREFIX_MAX 32

/* One jemalloc: its functions under one prefix. Addresses as linked, without the load base. */
struct mg_symbol_set {
        char prefix[MG_SYMBOL_PREFIX_MAX];
        uint64_t mallctl;
        uint64_t mallctlnametomib;
        uint64_t mallctlbymib;
};

struct mg_symbols {
        struct mg_symbol_set set[3];
        size_t n_sets;        /* with all three functions, inside executable segments */
        bool has_malloc_conf; /* the program defines a malloc_conf without prefix */
        bool has_table;
        bool is_relocatable; /* the load base is to be added */
};

/* Reads IMAGE of SIZE bytes. Returns 0, or -ENOEXEC for what is no ELF file of this machine's kind. */
int symtab_find_jemalloc(const void *image, size_t size, struct mg_symbols *ret_symbols);
