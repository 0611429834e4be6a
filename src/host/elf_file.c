/* SPDX-License-Identifier: MIT */
/*
 * ELF files by libelf. Program headers say what the kernel and the loader will do, so facts and DT_NEEDED come from these;
 * section headers, which a file need not have, only lead to symbols. Every offset and size is the file's claim and is
 * checked by libelf against the file's end. Layer: host.
 */
#include "host/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "host/allocator.h"

/* Chromium's .symtab has 90 MiB; a sparse file may claim any size. */
#define SECTION_BYTES_MAX (256 * MG_MIB)

struct mg_elf {
        int fd;
        Elf *handle;
        size_t n_segments;
};

static const char *const libc_names[] = {
        [MG_LIBC_NONE] = "none",
        [MG_LIBC_GLIBC] = "glibc",
        [MG_LIBC_MUSL] = "musl",
        [MG_LIBC_OTHER] = "other",
};
_Static_assert(MG_ELEMENTS(libc_names) == _MG_LIBC_MAX, "a libc has no name");

const char *libc_to_string(enum mg_libc libc) {
        return libc_names[libc];
}

struct mg_elf *elf_free(struct mg_elf *elf) {
        if (!elf)
                return NULL;
        if (elf->handle)
                elf_end(elf->handle);
        file_closep(&elf->fd);
        free(elf);
        return NULL;
}

/* Takes HANDLE and FD over. */
static int finish_open(Elf *handle, int fd, struct mg_elf **ret_elf) {
        MG_CLEANUP(elf_freep) struct mg_elf *elf = calloc(1, sizeof(*elf));

        if (!elf) {
                elf_end(handle);
                if (fd >= 0)
                        close(fd);
                return -ENOMEM;
        }
        elf->fd = fd;
        elf->handle = handle;
        if (!handle || elf_kind(handle) != ELF_K_ELF ||
            elf_getphdrnum(handle, &elf->n_segments) != 0)
                return -ENOEXEC;
        *ret_elf = MG_TAKE(elf);
        return 0;
}

int elf_open(const char *path, struct mg_elf **ret_elf) {
        MG_CLEANUP(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        struct stat status;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode))
                return -ENOEXEC;
        elf_version(EV_CURRENT);
        Elf *handle = elf_begin(fd, ELF_C_READ, NULL);
        return finish_open(handle, MG_TAKE_FD(fd), ret_elf);
}

int elf_open_memory(char *image, size_t size, struct mg_elf **ret_elf) {
        elf_version(EV_CURRENT);
        return finish_open(elf_memory(image, size), -EBADF, ret_elf);
}

/* The first segment of TYPE, or false. */
static bool find_segment(struct mg_elf *elf, uint32_t type, GElf_Phdr *ret_segment) {
        for (size_t i = 0; i < elf->n_segments; i++)
                if (gelf_getphdr(elf->handle, (int) i, ret_segment) && ret_segment->p_type == type)
                        return true;
        return false;
}

/* The dynamic section as the loader will find it, or NULL. */
static Elf_Data *dynamic_section(struct mg_elf *elf) {
        GElf_Phdr segment;

        if (!find_segment(elf, PT_DYNAMIC, &segment) || segment.p_filesz > SECTION_BYTES_MAX ||
            segment.p_offset > INT64_MAX)
                return NULL;
        return elf_getdata_rawchunk(
                        elf->handle, (int64_t) segment.p_offset, segment.p_filesz, ELF_T_DYN);
}

static enum mg_libc libc_of(const char *interpreter) {
        const char *slash = strrchr(interpreter, '/');
        const char *name = slash ? slash + 1 : interpreter;

        if (strncmp(name, "ld-musl-", 8) == 0)
                return MG_LIBC_MUSL;
        /* ld-linux-x86-64.so.2, ld-linux.so.2, ld64.so.2 (ppc64, s390x), ld.so.1 (mips). */
        if (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld64.so.", 8) == 0 ||
            strncmp(name, "ld.so.", 6) == 0)
                return MG_LIBC_GLIBC;
        return MG_LIBC_OTHER;
}

static int read_interpreter(
                struct mg_elf *elf,
                const GElf_Phdr *segment,
                struct mg_elf_facts *facts) {
        if (segment->p_filesz == 0 || segment->p_filesz > sizeof(facts->interpreter) ||
            segment->p_offset > INT64_MAX)
                return -ENOEXEC;
        Elf_Data *data = elf_getdata_rawchunk(
                        elf->handle, (int64_t) segment->p_offset, segment->p_filesz, ELF_T_BYTE);
        if (!data || !data->d_buf || !memchr(data->d_buf, '\0', data->d_size) ||
            *(const char *) data->d_buf == '\0')
                return -ENOEXEC;
        strcpy(facts->interpreter, data->d_buf);
        facts->libc = libc_of(facts->interpreter);
        return 0;
}

static bool is_native(const GElf_Ehdr *header) {
#if defined(__x86_64__)
        uint16_t machine = EM_X86_64;
#elif defined(__aarch64__)
        uint16_t machine = EM_AARCH64;
#elif defined(__i386__)
        uint16_t machine = EM_386;
#elif defined(__riscv)
        uint16_t machine = EM_RISCV;
#elif defined(__powerpc64__)
        uint16_t machine = EM_PPC64;
#elif defined(__s390x__)
        uint16_t machine = EM_S390;
#elif defined(__arm__)
        uint16_t machine = EM_ARM;
#else
        uint16_t machine = header->e_machine;
#endif
        int own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
        return header->e_machine == machine && header->e_ident[EI_CLASS] == own_class;
}

/* A position-independent program and a library are both ET_DYN: DF_1_PIE or an interpreter tells the program. */
static bool is_pie(struct mg_elf *elf) {
        Elf_Data *dynamic = dynamic_section(elf);
        GElf_Dyn entry;

        for (int i = 0; dynamic && gelf_getdyn(dynamic, i, &entry) && entry.d_tag != DT_NULL; i++)
                if (entry.d_tag == DT_FLAGS_1)
                        return (entry.d_un.d_val & DF_1_PIE) != 0;
        return false;
}

int elf_facts(struct mg_elf *elf, struct mg_elf_facts *ret_facts) {
        struct mg_elf_facts facts = {};
        GElf_Ehdr header;
        GElf_Phdr segment;

        if (!gelf_getehdr(elf->handle, &header))
                return -ENOEXEC;
        facts.is_64bit = header.e_ident[EI_CLASS] == ELFCLASS64;
        facts.is_native = is_native(&header);
        bool has_interpreter = find_segment(elf, PT_INTERP, &segment);
        if (has_interpreter) {
                int r = read_interpreter(elf, &segment, &facts);
                if (r < 0)
                        return r;
        }
        facts.is_program = header.e_type == ET_EXEC ||
                           (header.e_type == ET_DYN && (has_interpreter || is_pie(elf)));
        facts.is_static = facts.is_program && !has_interpreter;
        *ret_facts = facts;
        return 0;
}

/* Where in the file the byte is that will be at ADDRESS. */
static int offset_of(struct mg_elf *elf, uint64_t address, uint64_t *ret_offset) {
        GElf_Phdr segment;

        for (size_t i = 0; i < elf->n_segments; i++)
                if (gelf_getphdr(elf->handle, (int) i, &segment) && segment.p_type == PT_LOAD &&
                    address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
                        *ret_offset = segment.p_offset + (address - segment.p_vaddr);
                        return 0;
                }
        return -ENOEXEC;
}

/* The strings that DYNAMIC's entries point into, or NULL. */
static Elf_Data *dynamic_strings(struct mg_elf *elf, Elf_Data *dynamic) {
        uint64_t address = 0, size = 0, offset;
        GElf_Dyn entry;

        for (int i = 0; gelf_getdyn(dynamic, i, &entry) && entry.d_tag != DT_NULL; i++) {
                if (entry.d_tag == DT_STRTAB)
                        address = entry.d_un.d_ptr;
                else if (entry.d_tag == DT_STRSZ)
                        size = entry.d_un.d_val;
        }
        if (size == 0 || size > SECTION_BYTES_MAX || offset_of(elf, address, &offset) < 0 ||
            offset > INT64_MAX)
                return NULL;
        return elf_getdata_rawchunk(elf->handle, (int64_t) offset, size, ELF_T_BYTE);
}

int elf_each_needed(struct mg_elf *elf, mg_elf_visitor visit, void *userdata) {
        GElf_Phdr segment;
        GElf_Dyn entry;

        if (!find_segment(elf, PT_DYNAMIC, &segment))
                return 0;
        Elf_Data *dynamic = dynamic_section(elf);
        if (!dynamic)
                return -ENOEXEC;
        Elf_Data *strings = dynamic_strings(elf, dynamic);
        for (int i = 0; gelf_getdyn(dynamic, i, &entry) && entry.d_tag != DT_NULL; i++) {
                if (entry.d_tag != DT_NEEDED)
                        continue;
                if (!strings || !strings->d_buf || entry.d_un.d_val >= strings->d_size)
                        return -ENOEXEC;
                const char *name = (const char *) strings->d_buf + entry.d_un.d_val;
                if (!memchr(name, '\0', strings->d_size - entry.d_un.d_val))
                        return -ENOEXEC;
                int r = visit(userdata, name);
                if (r != 0)
                        return r;
        }
        return 0;
}

static void note_symbol(struct mg_elf_allocators *allocators, const char *symbol) {
        size_t prefix = 0;

        int allocator = allocator_from_symbol(symbol, &prefix);
        if (allocator < 0)
                return;
        allocators->mask |= UINT32_C(1) << allocator;
        if (allocator == MG_ALLOCATOR_JEMALLOC && prefix < sizeof(allocators->jemalloc_prefix)) {
                memcpy(allocators->jemalloc_prefix, symbol, prefix);
                allocators->jemalloc_prefix[prefix] = '\0';
        }
}

static void scan_symbols(
                struct mg_elf *elf,
                Elf_Scn *section,
                const GElf_Shdr *header,
                struct mg_elf_allocators *allocators) {
        Elf_Data *data = elf_getdata(section, NULL);
        GElf_Sym symbol;

        for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
                if (symbol.st_shndx == SHN_UNDEF)
                        continue;
                const char *name = elf_strptr(elf->handle, header->sh_link, symbol.st_name);
                if (name)
                        note_symbol(allocators, name);
        }
}

/* Go's linker leaves its build information even in a stripped program. */
static bool is_go_section(struct mg_elf *elf, size_t names, const GElf_Shdr *header) {
        const char *name = elf_strptr(elf->handle, names, header->sh_name);
        return name && (mg_streq(name, ".go.buildinfo") || mg_streq(name, ".note.go.buildid"));
}

int elf_find_allocators(struct mg_elf *elf, struct mg_elf_allocators *ret_allocators) {
        struct mg_elf_allocators allocators = {};
        Elf_Scn *section = NULL;
        GElf_Shdr header;
        size_t names;

        if (elf_getshdrstrndx(elf->handle, &names) != 0)
                return -ENOEXEC;
        while ((section = elf_nextscn(elf->handle, section))) {
                if (!gelf_getshdr(section, &header))
                        continue;
                if (is_go_section(elf, names, &header))
                        allocators.mask |= UINT32_C(1) << MG_ALLOCATOR_GO;
                if ((header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
                    header.sh_size <= SECTION_BYTES_MAX)
                        scan_symbols(elf, section, &header, &allocators);
        }
        *ret_allocators = allocators;
        return 0;
}
