/* SPDX-License-Identifier: MIT */
/*
 * The files of enroll. Each begins with who wrote it and a checksum of the rest: so that a file of somebody else's is never
 * overwritten, and what an operator added to ours is never lost. Layer: ctl.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "ctl/enroll.h"
#include "host/config_files.h"

#define HEAD     "# Written by memguardctl enroll; \"memguardctl withdraw "
#define HEAD_END "\" takes it away.\n"
#define CHECKSUM "# checksum="
#define DIGITS   16

/* FNV-1a: it tells edits from none, and guards against nobody. */
static uint64_t checksum(const char *text) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (; *text; text++)
                hash = (hash ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
        return hash;
}

static void format_checksum(const char *body, char ret_digits[static DIGITS + 1]) {
        snprintf(ret_digits, DIGITS + 1, "%016llx", (unsigned long long) checksum(body));
}

void enroll_seal(struct mg_text *text, const char *unit, const char *body) {
        char digits[DIGITS + 1];

        format_checksum(body, digits);
        text_put(text, HEAD);
        text_put(text, unit);
        text_put(text, HEAD_END CHECKSUM);
        text_put(text, digits);
        text_put_char(text, '\n');
        text_put(text, body);
}

enum enroll_seal enroll_check_seal(const char *text) {
        char digits[DIGITS + 1];

        if (strncmp(text, HEAD, strlen(HEAD)) != 0)
                return ENROLL_FOREIGN;
        const char *line = strchr(text, '\n');
        if (!line || strncmp(line + 1, CHECKSUM, strlen(CHECKSUM)) != 0)
                return ENROLL_EDITED;
        const char *sum = line + 1 + strlen(CHECKSUM);
        if (strlen(sum) <= DIGITS || sum[DIGITS] != '\n')
                return ENROLL_EDITED;
        format_checksum(sum + DIGITS + 1, digits);
        return memcmp(sum, digits, DIGITS) == 0 ? ENROLL_UNTOUCHED : ENROLL_EDITED;
}

static int format_path(char *ret_path, const char *root, const char *directory, const char *name) {
        int n = snprintf(ret_path, PATH_MAX, "%s%s/%s", root, directory, name);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int find_unit_directory(bool user, char *ret_directory) {
        const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
        int n;

        if (!user)
                n = snprintf(ret_directory, PATH_MAX, "/etc/systemd/system");
        else if (config && config[0] == '/')
                n = snprintf(ret_directory, PATH_MAX, "%s/systemd/user", config);
        else if (home && home[0] == '/')
                n = snprintf(ret_directory, PATH_MAX, "%s/.config/systemd/user", home);
        else
                return -ENOENT;
        return n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int enroll_paths(const char *root, const char *unit, bool user, struct enroll_paths *ret_paths) {
        char directory[PATH_MAX], name[MG_UNIT_NAME_MAX + 32];
        int r = find_unit_directory(user, directory);

        if (r < 0)
                return r;
        snprintf(name, sizeof(name), "%s.d/50-memguard.conf", unit);
        r = format_path(ret_paths->dropin, root, directory, name);
        if (r < 0)
                return r;
        int n = snprintf(directory, sizeof(directory), "%s.d", config_main_file());
        if (n < 0 || n >= (int) sizeof(directory))
                return -ENAMETOOLONG;
        snprintf(name, sizeof(name), "50-%s.conf", unit);
        return format_path(ret_paths->section, root, directory, name);
}

static int make_directories(const char *path) {
        char part[PATH_MAX];

        for (const char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
                snprintf(part, sizeof(part), "%.*s", (int) (at - path), path);
                if (mkdir(part, 0755) < 0 && errno != EEXIST)
                        return -errno;
        }
        return 0;
}

static enum enroll_seal seal_of_file(const char *path, int *ret_error) {
        char *text = NULL;
        size_t length;
        int r = config_file_read(path, &text, &length);

        *ret_error = r;
        enum enroll_seal seal = r < 0 ? ENROLL_FOREIGN : enroll_check_seal(text);
        free(text);
        return seal;
}

static int check_writable(const char *path) {
        int error = 0;

        switch (seal_of_file(path, &error)) {
        case ENROLL_UNTOUCHED:
                return 0;
        case ENROLL_EDITED:
                return -ESTALE;
        case ENROLL_FOREIGN:
                break;
        case _ENROLL_SEAL_MAX:
                break;
        }
        return error == -ENOENT ? 0 : error < 0 ? error : -EEXIST;
}

/* Whole or not at all: systemd or memguardd may read at any moment. Nobody reads a name that begins with a dot. */
static int replace(const char *path, const char *text) {
        char temporary[PATH_MAX];
        const char *slash = strrchr(path, '/');
        size_t length = strlen(text);

        int n =
                        snprintf(temporary, sizeof(temporary), "%.*s/.memguard-XXXXXX",
                                 (int) (slash - path), path);
        if (n < 0 || n >= (int) sizeof(temporary))
                return -ENAMETOOLONG;
        MG_CLEANUP(file_closep) int fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = write(fd, text, length) == (ssize_t) length ? 0 : errno ? -errno : -EIO;
        if (r >= 0 && (fchmod(fd, 0644) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0))
                r = -errno;
        if (r < 0)
                (void) unlink(temporary);
        return r;
}

int enroll_write(const char *path, const char *unit, const char *body) {
        char sealed[ENROLL_TEXT_MAX];
        struct mg_text text;

        text_init(&text, sealed, sizeof(sealed));
        enroll_seal(&text, unit, body);
        if (text.overflow)
                return -E2BIG;
        int r = check_writable(path);
        if (r < 0)
                return r;
        r = make_directories(path);
        return r < 0 ? r : replace(path, sealed);
}

/* The directory of a unit's drop-ins that has nothing in it any more; memguard.ini.d stays. */
static void remove_empty_directory(const char *path) {
        char directory[PATH_MAX];
        const char *slash = strrchr(path, '/');

        snprintf(directory, sizeof(directory), "%.*s", (int) (slash - path), path);
        size_t length = strlen(directory);
        if (length > strlen(".service.d") &&
            mg_streq(directory + length - strlen(".service.d"), ".service.d"))
                (void) rmdir(directory);
}

int enroll_remove(const char *path) {
        char aside[PATH_MAX];
        int error = 0;
        enum enroll_seal seal = seal_of_file(path, &error);

        if (error < 0)
                return error;
        if (seal == ENROLL_FOREIGN)
                return -EEXIST;
        if (seal == ENROLL_EDITED) {
                int n = snprintf(aside, sizeof(aside), "%s.withdrawn", path);
                if (n < 0 || n >= (int) sizeof(aside))
                        return -ENAMETOOLONG;
                return rename(path, aside) < 0 ? -errno : 1;
        }
        if (unlink(path) < 0)
                return -errno;
        remove_empty_directory(path);
        return 0;
}
