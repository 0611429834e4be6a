/* SPDX-License-Identifier: MIT */
/* Reading back what a process really has. Layer: replay. */
#include "replay/effect.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/lines.h"
#include "host/proc.h"

static const char *file_name(const char *path) {
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}

static bool line_has_file(const char *line, const char *name) {
        const char *path = strchr(line, '/');
        size_t length = strlen(name);

        if (!path || strncmp(file_name(path), name, length) != 0)
                return false;
        /* " (deleted)" may follow */
        return file_name(path)[length] == '\0' || file_name(path)[length] == ' ';
}

static enum effect search(
                pid_t pid,
                const char *file,
                char delimiter,
                bool (*matches)(const char *line, const char *wanted),
                const char *wanted) {
        MG_CLEANUP(file_closep) int fd = proc_open_file("/proc", pid, file);
        struct mg_lines lines;
        char *line;
        int r;

        if (fd < 0)
                return EFFECT_UNKNOWN;
        lines_init(&lines, fd);
        lines.delimiter = delimiter;
        while ((r = lines_next(&lines, &line)) > 0)
                if (matches(line, wanted))
                        return EFFECT_YES;
        return r < 0 ? EFFECT_UNKNOWN : EFFECT_NO;
}

static bool is_line(const char *line, const char *wanted) {
        return mg_streq(line, wanted);
}

enum effect effect_library(pid_t pid, const char *path) {
        char whole[PATH_MAX];

        return search(pid, "maps", '\n', line_has_file,
                      file_name(realpath(path, whole) ? whole : path));
}

enum effect effect_setting(pid_t pid, const char *setting) {
        return search(pid, "environ", '\0', is_line, setting);
}
