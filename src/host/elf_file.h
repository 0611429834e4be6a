/* SPDX-License-Identifier: MIT */
/*
 * What an ELF file is: whether LD_PRELOAD means anything to it, and which allocators are in it. By libelf, reading and never
 * mapping, so that a file cut short meanwhile is an error and no SIGBUS. Set-uid bits and file capabilities are the caller's to look at.
 * Layer: host; allocates; never logs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

enum mg_libc {
        MG_LIBC_NONE, /* no interpreter: static, or a library */
        MG_LIBC_GLIBC,
        MG_LIBC_MUSL,
        MG_LIBC_OTHER,
        _MG_LIBC_MAX,
};

const char *libc_to_string(enum mg_libc libc); /* "glibc" */

#define MG_ELF_INTERPRETER_MAX 256
#define MG_ELF_PREFIX_MAX      32

struct mg_elf_facts {
        bool is_program; /* may be executed as it is; else a library, an object, a core */
        bool is_static;  /* a program without an interpreter */
        bool is_native;  /* of this machine and word size: an agent of ours can be loaded into it */
        bool is_64bit;
        enum mg_libc libc; /* by the interpreter's name */
        char interpreter[MG_ELF_INTERPRETER_MAX];
};

/* Allocators whose functions the file itself defines (in .symtab or .dynsym; stripped programs hide them). */
struct mg_elf_allocators {
        uint32_t mask; /* of 1 << enum mg_allocator */
        char jemalloc_prefix[MG_ELF_PREFIX_MAX];
};

struct mg_elf;

/* -ENOEXEC: no ELF file, or a broken one. PATH may be /proc/PID/exe. */
int elf_open(const char *path, struct mg_elf **ret_elf);

/* The same over SIZE bytes at IMAGE, which the caller keeps. */
int elf_open_memory(char *image, size_t size, struct mg_elf **ret_elf);

struct mg_elf *elf_free(struct mg_elf *elf);
MG_DEFINE_CLEANUP(struct mg_elf *, elf_free)

int elf_facts(struct mg_elf *elf, struct mg_elf_facts *ret_facts);

/* Calls VISIT with each DT_NEEDED in order. Non-zero from VISIT ends it and is returned. */
typedef int (*mg_elf_visitor)(void *userdata, const char *library);
int elf_each_needed(struct mg_elf *elf, mg_elf_visitor visit, void *userdata);

int elf_find_allocators(struct mg_elf *elf, struct mg_elf_allocators *ret_allocators);
