/* SPDX-License-Identifier: MIT */
/*
 * The facts about one process out of /proc. What may not be read stays unknown; that exe or maps may not be read is a
 * fact of its own. Layer: host.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/lines.h"
#include "host/maps.h"
#include "host/proc.h"
#include "host/why_no_agent.h"

#define PATH_TEXT_MAX 512
/* Some 20 pairs of words. */
#define AUXV_BYTES_MAX 2048

static enum mg_fact fact(bool yes) {
        return yes ? MG_FACT_YES : MG_FACT_NO;
}

static void collect_status(const char *proc_root, pid_t pid, struct mg_agent_facts *facts) {
        struct mg_proc_status status;

        if (proc_status(proc_root, pid, &status) < 0)
                return;
        facts->threads = status.threads;
        facts->seccomp = fact(status.seccomp);
}

static void collect_maps(const char *proc_root, pid_t pid, struct mg_agent_facts *facts) {
        struct mg_maps maps;

        int r = maps_read(proc_root, pid, &maps);
        if (r < 0)
                return;
        facts->readable = MG_FACT_YES;
        facts->mapped = fact(maps.has_agent);
}

/* Returns whether the program has 64-bit words, for the auxiliary vector. */
static bool collect_program(const char *proc_root, pid_t pid, struct mg_agent_facts *facts) {
        MG_CLEANUP(elf_freep) struct mg_elf *elf = NULL;
        struct mg_elf_facts program;
        char path[PATH_TEXT_MAX];

        snprintf(path, sizeof(path), "%s/%d/exe", proc_root, (int) pid);
        if (elf_open(path, &elf) < 0 || elf_facts(elf, &program) < 0)
                return sizeof(void *) == 8;
        facts->program_static = fact(program.is_static);
        facts->program_native = fact(program.is_native);
        facts->libc = program.libc;
        return program.is_64bit;
}

/* AT_SECURE is what the kernel told the loader: set-uid, capabilities and security modules alike. */
static enum mg_fact parse_secure(const char *bytes, size_t length, bool is_64bit) {
        size_t word = is_64bit ? 8 : 4;

        for (size_t at = 0; at + 2 * word <= length; at += 2 * word) {
                uint64_t type = 0, value = 0;
                uint32_t type32, value32;
                if (is_64bit) {
                        memcpy(&type, bytes + at, word);
                        memcpy(&value, bytes + at + word, word);
                } else {
                        memcpy(&type32, bytes + at, word);
                        memcpy(&value32, bytes + at + word, word);
                        type = type32;
                        value = value32;
                }
                if (type == AT_SECURE)
                        return fact(value != 0);
        }
        return MG_FACT_UNKNOWN;
}

static void collect_secure(
                const char *proc_root,
                pid_t pid,
                bool is_64bit,
                struct mg_agent_facts *facts) {
        MG_CLEANUP(file_closep) int fd = proc_open_file(proc_root, pid, "auxv");
        char bytes[AUXV_BYTES_MAX];

        if (fd < 0)
                return;
        ssize_t n = file_pread(fd, bytes, sizeof(bytes));
        if (n > 0)
                facts->secure_exec = parse_secure(bytes, (size_t) n, is_64bit);
}

static void collect_environment(const char *proc_root, pid_t pid, struct mg_agent_facts *facts) {
        MG_CLEANUP(file_closep) int fd = proc_open_file(proc_root, pid, "environ");
        struct mg_lines lines;
        char *assignment;
        int r;

        if (fd < 0)
                return;
        lines_init(&lines, fd);
        lines.delimiter = '\0';
        struct mg_agent_facts found = *facts;
        found.preloaded = MG_FACT_NO;
        found.disabled = MG_FACT_NO;
        while ((r = lines_next(&lines, &assignment)) > 0)
                why_no_agent_environment(&found, assignment);
        if (r == 0)
                *facts = found;
}

static void collect_socket(
                const char *proc_root,
                pid_t pid,
                const char *socket,
                struct mg_agent_facts *facts) {
        char path[PATH_TEXT_MAX];
        struct stat status;

        int n = snprintf(path, sizeof(path), "%s/%d/root%s", proc_root, (int) pid, socket);
        if (n < 0 || (size_t) n >= sizeof(path))
                return;
        if (stat(path, &status) == 0)
                facts->socket_visible = fact(S_ISSOCK(status.st_mode));
        else if (errno == ENOENT || errno == ENOTDIR)
                facts->socket_visible = MG_FACT_NO;
}

int why_no_agent_collect(
                const char *proc_root,
                pid_t pid,
                const char *socket,
                struct mg_agent_facts *facts) {
        uint64_t before, after;

        int r = proc_start_time(proc_root, pid, &before);
        if (r < 0)
                return r;
        struct mg_agent_facts found = {
                .connected = facts->connected,
                .outdated = facts->outdated,
                .unit_configured = facts->unit_configured,
                .unix_forbidden = facts->unix_forbidden,
                .readable = MG_FACT_NO,
        };
        collect_status(proc_root, pid, &found);
        collect_maps(proc_root, pid, &found);
        bool is_64bit = collect_program(proc_root, pid, &found);
        collect_secure(proc_root, pid, is_64bit, &found);
        collect_environment(proc_root, pid, &found);
        collect_socket(proc_root, pid, socket, &found);

        /* All of it is about one process only if that is still there. */
        r = proc_start_time(proc_root, pid, &after);
        if (r < 0)
                return r;
        if (before != after)
                return -ESRCH;
        *facts = found;
        return 0;
}
