/* SPDX-License-Identifier: MIT */
/*
 * The programs behind a unit. The main process, where there is one, is the better witness: ExecStart= may name a script or
 * something that starts something else. Layer: ctl.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "ctl/enroll.h"
#include "host/proc.h"

/* As the kernel reads it: BINPRM_BUF_SIZE. */
#define SHEBANG_MAX 256

static bool is_user(const char *user, bool of_user_manager, uid_t uid) {
        if (user[0] == '\0')
                return uid == (of_user_manager ? getuid() : 0);
        const struct passwd *entry = getpwnam(user);
        return entry && entry->pw_uid == uid;
}

/* Rights that come with the file. Set-uid to who runs it anyway changes nothing, nor do capabilities for root. */
static bool gains_rights(const char *path, const char *user, bool of_user_manager) {
        struct stat status;

        if (stat(path, &status) < 0)
                return false;
        if ((status.st_mode & S_ISUID) && !is_user(user, of_user_manager, status.st_uid))
                return true;
        if ((status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) &&
            !is_user(user, of_user_manager, 0))
                return true;
        return getxattr(path, "security.capability", NULL, 0) > 0 &&
               !is_user(user, of_user_manager, 0);
}

/* The interpreter of a "#!" line, without its argument. */
static bool find_interpreter(const char *path, char *ret_path, size_t size) {
        MG_CLEANUP(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        char line[SHEBANG_MAX + 1];

        ssize_t n = fd < 0 ? -1 : read(fd, line, SHEBANG_MAX);
        if (n < 3 || line[0] != '#' || line[1] != '!')
                return false;
        line[n] = '\0';
        char *at = line + 2 + strspn(line + 2, " \t");
        at[strcspn(at, " \t\n")] = '\0';
        return at[0] == '/' && snprintf(ret_path, size, "%s", at) < (int) size;
}

static void look_at(
                struct enroll_program *program,
                const char *path,
                const char *user,
                bool of_user_manager) {
        MG_CLEANUP(elf_freep) struct mg_elf *elf = NULL;
        char interpreter[PATH_MAX];

        snprintf(program->path, sizeof(program->path), "%s", path);
        int r = elf_open(path, &elf);
        if (r == -ENOEXEC && find_interpreter(path, interpreter, sizeof(interpreter))) {
                snprintf(program->script, sizeof(program->script), "%s", path);
                snprintf(program->path, sizeof(program->path), "%s", interpreter);
                r = elf_open(interpreter, &elf);
        }
        if (r >= 0)
                r = elf_facts(elf, &program->elf);
        program->error = r < 0 ? r : 0;
        program->gains_rights = gains_rights(program->path, user, of_user_manager);
}

static void look_at_main_process(struct enroll_facts *facts) {
        char path[PATH_MAX];
        struct mg_proc_status status;
        struct mg_proc proc;
        pid_t pid = (pid_t) facts->main_pid;

        if (proc_status("/proc", pid, &status) >= 0)
                facts->threads = status.threads;
        if (proc_open("/proc", pid, &proc) >= 0) {
                if (proc_rss_anon(&proc, &facts->anon_bytes) < 0)
                        facts->anon_bytes = MG_UNKNOWN;
                proc_close(&proc);
        }
        if (proc_exe("/proc", pid, path, sizeof(path)) < 0)
                facts->running.error = -EACCES;
        else
                snprintf(facts->running.path, sizeof(facts->running.path), "%s", path);
}

void enroll_programs(struct enroll_facts *facts, bool user) {
        char path[PATH_MAX];

        facts->selinux = access("/sys/fs/selinux/status", F_OK) == 0;
        if (facts->started.path[0]) {
                snprintf(path, sizeof(path), "%s", facts->started.path);
                look_at(&facts->started, path, facts->service_user, user);
        }
        if (facts->main_pid == 0)
                return;
        look_at_main_process(facts);
        if (facts->running.path[0]) {
                snprintf(path, sizeof(path), "%s", facts->running.path);
                look_at(&facts->running, path, facts->service_user, user);
        }
}
