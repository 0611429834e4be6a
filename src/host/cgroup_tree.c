/* SPDX-License-Identifier: MIT */
/*
 * Where the hierarchy is, what is in it, and who lives there. libcgroup knows the mounts; its own walk would stat each of the
 * some seventy files of a cgroup, where a directory's link count tells whether there is anything to look for. None of it runs on
 * the tick. Layer: host; never logs.
 */
#include "host/cgroup_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libcgroup.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/parse.h"
#include "base/text.h"
#include "host/cgroup.h"
#include "host/lines.h"
#include "host/unit_name.h"

/* systemd's own trees are under 12 deep; whoever has a delegated subtree may nest without end, and each level holds a descriptor. */
#define DEPTH_MAX 32

static const char *const hierarchy_names[] = {
        [MG_HIERARCHY_UNIFIED] = "unified",
        [MG_HIERARCHY_LEGACY] = "legacy",
        [MG_HIERARCHY_NONE] = "none",
};
_Static_assert(MG_ELEMENTS(hierarchy_names) == _MG_HIERARCHY_MAX, "a hierarchy has no name");

const char *hierarchy_to_string(enum mg_hierarchy hierarchy) {
        return hierarchy_names[hierarchy];
}

static void free_charp(char **string) {
        free(*string);
}

static void close_directoryp(DIR **directory) {
        if (*directory)
                closedir(*directory);
}

static int copy(char *buffer, size_t size, const char *string) {
        size_t length = strlen(string);

        while (length > 1 && string[length - 1] == '/')
                length--;
        if (length >= size)
                return -ENAMETOOLONG;
        memcpy(buffer, string, length);
        buffer[length] = '\0';
        return 0;
}

/* Without a logger of ours libcgroup prints to stdout. */
static void discard_message(void *userdata, int level, const char *format, va_list arguments) {
}

/* libcgroup reads /proc/mounts once; a second cgroup_init() would leak the first table. */
static int find_memory_mount(char **ret_mount) {
        static int initialised = -1;

        if (initialised != 0) {
                cgroup_set_logger(discard_message, CGROUP_LOG_ERROR, NULL);
                initialised = cgroup_init();
        }
        if (initialised != 0)
                return -ENOENT;
        return cgroup_get_subsys_mount_point("memory", ret_mount) == 0 ? 0 : -ENOENT;
}

int cgroup_find_root(
                const char *root_override,
                char *ret_root,
                size_t size,
                enum mg_hierarchy *ret_hierarchy) {
        MG_CLEANUP(free_charp) char *mount = NULL;
        struct statfs status;

        if (root_override) {
                int r = copy(ret_root, size, root_override);
                if (r < 0)
                        return r;
                *ret_hierarchy = MG_HIERARCHY_UNIFIED;
                return 0;
        }
        /* Being without the controller is an answer, not an error: the numbers then come from /proc. */
        if (find_memory_mount(&mount) < 0) {
                *ret_hierarchy = MG_HIERARCHY_NONE;
                return copy(ret_root, size, "");
        }
        if (statfs(mount, &status) < 0)
                return -errno;
        int r = copy(ret_root, size, mount);
        if (r < 0)
                return r;
        *ret_hierarchy = status.f_type == CGROUP2_SUPER_MAGIC ? MG_HIERARCHY_UNIFIED
                                                              : MG_HIERARCHY_LEGACY;
        return 0;
}

static bool has_dot_dot(const char *path) {
        for (const char *at = path; (at = strstr(at, "/..")); at += 3)
                if (at[3] == '/' || at[3] == '\0')
                        return true;
        return false;
}

int cgroup_open_directory(const char *root, const char *path) {
        char full[MG_CGROUP_PATH_MAX + PATH_MAX];
        struct mg_text text;

        if (path[0] != '/' || has_dot_dot(path))
                return -EINVAL;
        text_init(&text, full, sizeof(full));
        text_put(&text, root);
        text_put(&text, path);
        if (text.overflow)
                return -ENAMETOOLONG;
        int fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static bool is_directory(int dir_fd, const struct dirent *entry) {
        struct stat status;

        if (mg_streq(entry->d_name, ".") || mg_streq(entry->d_name, ".."))
                return false;
        if (entry->d_type != DT_UNKNOWN)
                return entry->d_type == DT_DIR;
        return fstatat(dir_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
               S_ISDIR(status.st_mode);
}

struct walk {
        char path[MG_CGROUP_PATH_MAX]; /* of the cgroup being visited; "" is where the walk began */
        size_t length;
        bool stop_at_units;
        bool in_tree;        /* below a cgroup that is no slice */
        size_t left;         /* cgroups that may still be visited */
        size_t left_in_tree; /* of this tree */
        bool cut;            /* there were more */
        int (*visit)(struct walk *walk, int dir_fd);
        void *userdata;
};

static int walk_from(struct walk *walk, int dir_fd, unsigned depth);

/* NAME is a cgroup in DIR_FD. One that has vanished meanwhile, or that nobody may read, is left out. */
static int walk_child(struct walk *walk, int dir_fd, const char *name, unsigned depth) {
        MG_CLEANUP(file_closep)
        int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        size_t before = walk->length, length = strlen(name);
        bool enters = !walk->in_tree && !unit_name_is_slice(name, length);

        if (fd < 0)
                return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
        if (before + 1 + length >= sizeof(walk->path))
                return 0;
        walk->path[before] = '/';
        memcpy(walk->path + before + 1, name, length + 1);
        walk->length = before + 1 + length;
        if (enters) {
                walk->in_tree = true;
                walk->left_in_tree = MG_CGROUP_TREE_MAX;
        }
        int r = walk_from(walk, fd, depth + 1);
        if (enters)
                walk->in_tree = false;
        walk->length = before;
        walk->path[before] = '\0';
        return r;
}

/* As on most file systems a directory has two links and one for each directory in it; where it has one it says nothing. */
static bool is_leaf(int dir_fd) {
        struct stat status;

        return fstat(dir_fd, &status) == 0 && status.st_nlink == 2;
}

static int walk_children(struct walk *walk, int dir_fd, unsigned depth) {
        struct dirent *entry;

        int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return -errno;
        MG_CLEANUP(close_directoryp) DIR *directory = fdopendir(fd);
        if (!directory) {
                int r = -errno;
                close(fd);
                return r;
        }
        while ((entry = readdir(directory))) {
                if (!is_directory(dir_fd, entry) ||
                    (walk->stop_at_units &&
                     unit_name_is_unit(entry->d_name, strlen(entry->d_name))))
                        continue;
                if (walk->left == 0 || (walk->in_tree && walk->left_in_tree == 0)) {
                        walk->cut = true;
                        break;
                }
                int r = walk_child(walk, dir_fd, entry->d_name, depth);
                if (r != 0)
                        return r;
        }
        return 0;
}

static int walk_from(struct walk *walk, int dir_fd, unsigned depth) {
        int r = walk->visit(walk, dir_fd);

        walk->left--;
        if (walk->in_tree)
                walk->left_in_tree--;
        return r != 0 || depth == DEPTH_MAX || is_leaf(dir_fd) ? r
                                                               : walk_children(walk, dir_fd, depth);
}

struct pid_list {
        pid_t *pids;
        size_t max;
        size_t n;
};

static int collect_pids(struct walk *walk, int dir_fd) {
        MG_CLEANUP(file_closep)
        int fd = openat(dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC | O_NOCTTY);
        struct pid_list *list = walk->userdata;
        struct mg_lines lines;
        uint64_t pid;
        char *line;
        int r;

        if (fd < 0)
                return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
        lines_init(&lines, fd);
        while ((r = lines_next(&lines, &line)) > 0) {
                /* 0 is a process outside our pid namespace. */
                if (parse_u64(line, &pid) < 0 || pid == 0 || pid > INT_MAX)
                        continue;
                if (list->n < list->max)
                        list->pids[list->n] = (pid_t) pid;
                list->n++;
        }
        return r == -EOPNOTSUPP || r == -ENODEV ? 0 : r;
}

int cgroup_pids(const char *root, const char *path, pid_t *pids, size_t max) {
        MG_CLEANUP(file_closep) int fd = cgroup_open_directory(root, path);
        struct pid_list list = { .pids = pids, .max = max };
        struct walk walk = {
                .visit = collect_pids,
                .userdata = &list,
                .stop_at_units = true,
                .left = MG_CGROUP_TREE_MAX,
        };

        if (fd < 0)
                return fd;
        int r = walk_from(&walk, fd, 0);
        return r < 0 ? r : (int) MG_MIN(list.n, (size_t) INT_MAX);
}

struct visitor {
        mg_cgroup_visitor visit;
        void *userdata;
};

static int visit_path(struct walk *walk, int dir_fd) {
        const struct visitor *visitor = walk->userdata;
        return visitor->visit(visitor->userdata, walk->length > 0 ? walk->path : "/");
}

int cgroup_walk(const char *root, mg_cgroup_visitor visit, void *userdata) {
        MG_CLEANUP(file_closep) int fd = cgroup_open_directory(root, "/");
        struct visitor visitor = { visit, userdata };
        struct walk walk = { .visit = visit_path,
                             .userdata = &visitor,
                             .left = MG_CGROUP_WALK_MAX };

        if (fd < 0)
                return fd;
        int r = walk_from(&walk, fd, 0);
        return r == 0 && walk.cut ? -E2BIG : r;
}
