/* SPDX-License-Identifier: MIT */
/*
 * The main file and the drop-ins of /usr/lib, /run and /etc. Drop-ins are sorted by name over all three; the same name in a
 * higher directory replaces, and a link to /dev/null there masks. Layer: host; never logs.
 */
#include "host/config_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"

#define MAIN_FILE MG_SYSCONFDIR "/memguard.ini"
/* A thousand units with every key set have under 400 KiB. */
#define FILE_BYTES_MAX (4 * MG_MIB)

struct drop_in {
        char *name;
        char *path;
};

struct drop_ins {
        struct drop_in *items;
        size_t n_items;
};

const char *config_main_file(void) {
        return MAIN_FILE;
}

static void free_charp(char **string) {
        free(*string);
}

static void close_directoryp(DIR **directory) {
        if (*directory)
                closedir(*directory);
}

static void drop_ins_done(struct drop_ins *list) {
        for (size_t i = 0; i < list->n_items; i++) {
                free(list->items[i].name);
                free(list->items[i].path);
        }
        free(list->items);
}

void config_files_done(struct mg_config_files *files) {
        for (size_t i = 0; i < files->n_paths; i++)
                free(files->paths[i]);
        free(files->paths);
        *files = (struct mg_config_files){};
}

int config_files_add(struct mg_config_files *files, const char *path) {
        char **paths = realloc(files->paths, (files->n_paths + 1) * sizeof(*paths));
        if (!paths)
                return -ENOMEM;
        files->paths = paths;
        paths[files->n_paths] = strdup(path);
        if (!paths[files->n_paths])
                return -ENOMEM;
        files->n_paths++;
        return 0;
}

/* Takes NAME of a higher directory in the place of the same name of a lower one. */
static int put_drop_in(struct drop_ins *list, const char *directory, const char *name) {
        MG_CLEANUP(free_charp) char *path = NULL;

        if (asprintf(&path, "%s/%s", directory, name) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < list->n_items; i++)
                if (mg_streq(list->items[i].name, name)) {
                        free(list->items[i].path);
                        list->items[i].path = MG_TAKE(path);
                        return 0;
                }
        struct drop_in *items = realloc(list->items, (list->n_items + 1) * sizeof(*items));
        if (!items)
                return -ENOMEM;
        list->items = items;
        char *copy = strdup(name);
        if (!copy)
                return -ENOMEM;
        items[list->n_items++] = (struct drop_in){ .name = copy, .path = MG_TAKE(path) };
        return 0;
}

static bool is_drop_in_name(const char *name) {
        size_t length = strlen(name), tail = strlen(".conf");
        return name[0] != '.' && length > tail && mg_streq(name + length - tail, ".conf");
}

static int list_directory(const char *path, struct drop_ins *list, struct mg_problems *problems) {
        MG_CLEANUP(close_directoryp) DIR *directory = opendir(path);
        struct dirent *entry;

        if (!directory) {
                if (errno != ENOENT)
                        problems_add(problems, MG_SEVERITY_ERROR, path, 0, "cannot be read: %s",
                                     strerror(errno));
                return 0;
        }
        for (errno = 0; (entry = readdir(directory)); errno = 0) {
                if (!is_drop_in_name(entry->d_name))
                        continue;
                int r = put_drop_in(list, path, entry->d_name);
                if (r < 0)
                        return r;
        }
        if (errno != 0)
                problems_add(problems, MG_SEVERITY_ERROR, path, 0, "cannot be read: %s",
                             strerror(errno));
        return 0;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(((const struct drop_in *) a)->name, ((const struct drop_in *) b)->name);
}

static bool is_masked(const char *path) {
        struct stat status;
        return stat(path, &status) == 0 && S_ISCHR(status.st_mode) &&
               status.st_rdev == makedev(1, 3);
}

/* DIRECTORIES from the lowest to the highest. */
static int add_drop_ins(
                const char *const *directories,
                size_t n_directories,
                struct mg_config_files *files,
                struct mg_problems *problems) {
        MG_CLEANUP(drop_ins_done) struct drop_ins list = {};
        int r;

        for (size_t i = 0; i < n_directories; i++) {
                r = list_directory(directories[i], &list, problems);
                if (r < 0)
                        return r;
        }
        if (list.n_items > 0)
                qsort(list.items, list.n_items, sizeof(*list.items), compare_names);
        for (size_t i = 0; i < list.n_items; i++) {
                if (is_masked(list.items[i].path))
                        continue;
                r = config_files_add(files, list.items[i].path);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int find_named(
                const char *file,
                struct mg_config_files *files,
                struct mg_problems *problems) {
        MG_CLEANUP(free_charp) char *drop_in_directory = NULL;

        if (asprintf(&drop_in_directory, "%s.d", file) < 0)
                return -ENOMEM;
        /* Missing or not, it is on the list: reading it says what is wrong. */
        int r = config_files_add(files, file);
        if (r < 0)
                return r;
        return add_drop_ins((const char *const[]){ drop_in_directory }, 1, files, problems);
}

static int find_system(
                const char *root,
                struct mg_config_files *files,
                struct mg_problems *problems) {
        static const char *const places[] = {
                "/usr/lib/memguard.ini.d",
                "/run/memguard.ini.d",
                MAIN_FILE ".d",
        };
        MG_CLEANUP(free_charp)
        char *main_file = NULL, *vendor = NULL, *runtime = NULL, *local = NULL;

        if (asprintf(&main_file, "%s%s", root, MAIN_FILE) < 0 ||
            asprintf(&vendor, "%s%s", root, places[0]) < 0 ||
            asprintf(&runtime, "%s%s", root, places[1]) < 0 ||
            asprintf(&local, "%s%s", root, places[2]) < 0)
                return -ENOMEM;
        if (access(main_file, F_OK) == 0 || errno != ENOENT) {
                int r = config_files_add(files, main_file);
                if (r < 0)
                        return r;
        }
        return add_drop_ins((const char *const[]){ vendor, runtime, local }, 3, files, problems);
}

int config_files_find(
                const char *file,
                const char *root,
                struct mg_config_files *ret_files,
                struct mg_problems *problems) {
        MG_CLEANUP(config_files_done) struct mg_config_files files = {};

        int r = file ? find_named(file, &files, problems)
                     : find_system(root ? root : "", &files, problems);
        if (r < 0)
                return r;
        *ret_files = files;
        files = (struct mg_config_files){};
        return 0;
}

static int read_all(int fd, char *buffer, size_t size, size_t *ret_length) {
        size_t length = 0;

        while (length < size) {
                ssize_t n = read(fd, buffer + length, size - length);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                length += (size_t) n;
        }
        *ret_length = length;
        return 0;
}

int config_file_read(const char *path, char **ret_text, size_t *ret_length) {
        /* Without O_NONBLOCK a FIFO of that name would hold the daemon for ever. */
        MG_CLEANUP(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        MG_CLEANUP(free_charp) char *text = NULL;
        struct stat status;
        size_t length = 0;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &status) < 0)
                return -errno;
        if (S_ISDIR(status.st_mode))
                return -EISDIR;
        if (!S_ISREG(status.st_mode))
                return -ENOTSUP;
        if ((uint64_t) status.st_size > FILE_BYTES_MAX)
                return -EFBIG;

        size_t room = (size_t) status.st_size + 1;
        text = malloc(room);
        if (!text)
                return -ENOMEM;
        int r = read_all(fd, text, room, &length);
        if (r < 0)
                return r;
        /* It grew between the two calls: somebody is writing it. */
        if (length == room)
                return -EAGAIN;
        text[length] = '\0';
        *ret_text = MG_TAKE(text);
        *ret_length = length;
        return 0;
}

const char *config_file_error(int error) {
        switch (error) {
        case -EISDIR:
        case -ENOTSUP:
                return "not a regular file";
        case -EFBIG:
                return "larger than 4M";
        case -EAGAIN:
                return "it changed meanwhile, try again";
        default:
                return strerror(-error);
        }
}
