/* SPDX-License-Identifier: MIT */
/* The symbol table of an executable. Layer: agent; pure. */
#include "agent/symtab.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "base/macros.h"

typedef ElfW(Ehdr) elf_header;
typedef ElfW(Shdr) elf_section;
typedef ElfW(Phdr) elf_segment;
typedef ElfW(Sym) elf_symbol;

static const char wanted[] = "mallctl";

struct image {
        const char *bytes;
        size_t size;
};

/* COUNT things of EACH bytes at OFFSET; NULL where they are not all inside, or would not be aligned. */
static const void *part(
                const struct image *image,
                uint64_t offset,
                uint64_t count,
                size_t each,
                size_t align) {
        uint64_t bytes, end;

        if (__builtin_mul_overflow(count, (uint64_t) each, &bytes) ||
            __builtin_add_overflow(offset, bytes, &end) || end > image->size || offset % align != 0)
                return NULL;
        return image->bytes + offset;
}

static const elf_header *read_header(const struct image *image) {
        const elf_header *header = part(image, 0, 1, sizeof(*header), 1);
        const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
        const uint16_t probe = 1;
        const unsigned char order = *(const unsigned char *) &probe ? ELFDATA2LSB : ELFDATA2MSB;

        if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
            header->e_ident[EI_CLASS] != class || header->e_ident[EI_DATA] != order ||
            (header->e_type != ET_EXEC && header->e_type != ET_DYN))
                return NULL;
        return header;
}

struct table {
        const elf_symbol *symbols;
        size_t n_symbols;
        const char *names;
        size_t names_size;
        const elf_segment *segments;
        size_t n_segments;
};

/* Sections numbered from 0xff00 on live elsewhere; no executable has that many. */
static int find_table(
                const struct image *image,
                const elf_header *header,
                struct table *ret_table) {
        const elf_section *sections = NULL;

        if (header->e_shentsize == sizeof(elf_section))
                sections = part(image, header->e_shoff, header->e_shnum, sizeof(*sections),
                                __alignof__(elf_section));
        for (size_t i = 0; sections && i < header->e_shnum; i++) {
                if (sections[i].sh_type != SHT_SYMTAB ||
                    sections[i].sh_entsize != sizeof(elf_symbol) ||
                    sections[i].sh_link >= header->e_shnum)
                        continue;
                const elf_section *strings = &sections[sections[i].sh_link];
                ret_table->n_symbols = sections[i].sh_size / sizeof(elf_symbol);
                ret_table->symbols =
                                part(image, sections[i].sh_offset, ret_table->n_symbols,
                                     sizeof(elf_symbol), __alignof__(elf_symbol));
                ret_table->names = part(image, strings->sh_offset, strings->sh_size, 1, 1);
                ret_table->names_size = strings->sh_size;
                if (ret_table->symbols && ret_table->names)
                        return 0;
        }
        return -ENOENT;
}

static void find_segments(
                const struct image *image,
                const elf_header *header,
                struct table *table) {
        table->n_segments = header->e_phnum;
        table->segments = header->e_phentsize != sizeof(elf_segment)
                                          ? NULL
                                          : part(image, header->e_phoff, header->e_phnum,
                                                 sizeof(elf_segment), __alignof__(elf_segment));
}

/* What is about to be called must at least be code. */
static bool is_code(const struct table *table, uint64_t address) {
        for (size_t i = 0; table->segments && i < table->n_segments; i++)
                if (table->segments[i].p_type == PT_LOAD && (table->segments[i].p_flags & PF_X) &&
                    address >= table->segments[i].p_vaddr &&
                    address - table->segments[i].p_vaddr < table->segments[i].p_filesz)
                        return true;
        return false;
}

/* The symbol's name, with its length; NULL when it does not end inside the table. */
static const char *name_of(
                const struct table *table,
                const elf_symbol *symbol,
                size_t *ret_length) {
        if (symbol->st_name >= table->names_size)
                return NULL;
        const char *name = table->names + symbol->st_name;
        const char *end = memchr(name, '\0', table->names_size - symbol->st_name);
        if (!end)
                return NULL;
        *ret_length = (size_t) (end - name);
        return name;
}

static struct mg_symbol_set *find_set(
                struct mg_symbols *symbols,
                const char *prefix,
                size_t length) {
        for (size_t i = 0; i < symbols->n_sets; i++)
                if (strlen(symbols->set[i].prefix) == length &&
                    memcmp(symbols->set[i].prefix, prefix, length) == 0)
                        return &symbols->set[i];
        if (length >= MG_SYMBOL_PREFIX_MAX || symbols->n_sets == MG_ELEMENTS(symbols->set))
                return NULL;
        struct mg_symbol_set *set = &symbols->set[symbols->n_sets++];
        *set = (struct mg_symbol_set){ 0 };
        memcpy(set->prefix, prefix, length);
        return set;
}

static bool take_suffix(const char *name, size_t length, const char *suffix, size_t *ret_prefix) {
        size_t suffix_length = strlen(suffix);

        if (length < suffix_length ||
            memcmp(name + length - suffix_length, suffix, suffix_length) != 0)
                return false;
        *ret_prefix = length - suffix_length;
        return true;
}

static void take_function(
                struct mg_symbols *symbols,
                const char *name,
                size_t length,
                uint64_t address) {
        static const struct {
                const char *suffix;
                size_t offset;
        } functions[] = {
                { "mallctl", offsetof(struct mg_symbol_set, mallctl) },
                { "mallctlnametomib", offsetof(struct mg_symbol_set, mallctlnametomib) },
                { "mallctlbymib", offsetof(struct mg_symbol_set, mallctlbymib) },
        };
        size_t prefix;

        for (size_t i = 0; i < MG_ELEMENTS(functions); i++) {
                if (!take_suffix(name, length, functions[i].suffix, &prefix))
                        continue;
                struct mg_symbol_set *set = find_set(symbols, name, prefix);
                if (set)
                        *(uint64_t *) ((char *) set + functions[i].offset) = address;
                return;
        }
}

static void read_symbol(
                const struct table *table,
                const elf_symbol *symbol,
                struct mg_symbols *symbols) {
        unsigned char type = ELF64_ST_TYPE(symbol->st_info);
        size_t length;

        if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_OBJECT))
                return;
        const char *name = name_of(table, symbol, &length);
        if (!name)
                return;
        if (type == STT_OBJECT)
                symbols->has_malloc_conf |= length == 11 && memcmp(name, "malloc_conf", 11) == 0;
        else if (is_code(table, symbol->st_value))
                take_function(symbols, name, length, symbol->st_value);
}

static void drop_incomplete(struct mg_symbols *symbols) {
        size_t kept = 0;

        for (size_t i = 0; i < symbols->n_sets; i++)
                if (symbols->set[i].mallctl && symbols->set[i].mallctlnametomib &&
                    symbols->set[i].mallctlbymib)
                        symbols->set[kept++] = symbols->set[i];
        symbols->n_sets = kept;
}

int symtab_find_jemalloc(const void *bytes, size_t size, struct mg_symbols *ret_symbols) {
        const struct image image = { bytes, size };
        struct table table = { 0 };

        const elf_header *header = read_header(&image);
        if (!header)
                return -ENOEXEC;
        *ret_symbols = (struct mg_symbols){ .is_relocatable = header->e_type == ET_DYN };
        if (find_table(&image, header, &table) < 0)
                return 0;
        ret_symbols->has_table = true;
        /* One look at the names spares most programs the walk over their symbols. */
        if (!memmem(table.names, table.names_size, wanted, sizeof(wanted)))
                return 0;
        find_segments(&image, header, &table);
        for (size_t i = 0; i < table.n_symbols; i++)
                read_symbol(&table, &table.symbols[i], ret_symbols);
        drop_incomplete(ret_symbols);
        return 0;
}
