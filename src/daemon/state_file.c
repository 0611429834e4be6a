/* SPDX-License-Identifier: MIT */
/*
 * A unit's files; see state_file.h. The first line says whose life a file tells of; the rest is core/state.h's text or
 * core/history_image.h's bytes, each with its own version and checksum.
 */
#include "daemon/state_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/history_image.h"
#include "core/state.h"
#include "daemon/manager.h"
#include "daemon/process.h"
#include "daemon/store_file.h"
#include "daemon/summary.h"
#include "daemon/unit.h"
#include "host/cleanup.h"
#include "host/clock.h"

#define STATE_SUFFIX   ".state"
#define HISTORY_SUFFIX ".history"

/* Processes that a state file without a cgroup is recognised by. */
#define PROCESSES_MAX 16

/* boot id, key, inode, InvocationID, processes: a line. */
#define IDENTITY_MAX 2048
#define BODY_MAX     MG_STATE_TEXT_MAX
_Static_assert(sizeof(struct mg_history_image) <= BODY_MAX, "a history does not fit");

#define FILE_NAME_MAX 64

/* Names and paths may be longer than a file name, and hold what a file name cannot: hence a hash; the key itself is inside. */
static void name_file(char ret_name[static FILE_NAME_MAX], const char *key, const char *suffix) {
        uint64_t hash = hash_add(MG_HASH_INIT, key, strlen(key));

        snprintf(ret_name, FILE_NAME_MAX, "%016" PRIx64 "%s", hash, suffix);
}

static void put_word(struct mg_text *text, const char *word) {
        text_put_char(text, ' ');
        text_put(text, *word ? word : "-");
}

static void put_processes(struct mg_text *text, const struct unit *unit) {
        size_t n = 0;

        for (struct process *p = process_first(unit); p && n < PROCESSES_MAX; p = process_next(p)) {
                if (p->gone)
                        continue;
                text_put_char(text, ' ');
                text_put_u64(text, (uint64_t) p->proc.pid);
                text_put_char(text, ':');
                text_put_u64(text, p->proc.start_time);
                n++;
        }
}

/* "unit BOOT KEY INODE" is what has to be equal; " INVOCATION PROCESSES..." follows. */
static void put_identity(struct mg_text *text, const struct unit *unit) {
        text_put(text, "unit");
        put_word(text, unit->manager->boot_id);
        put_word(text, unit->path ?: unit->name);
        text_put_char(text, ' ');
        text_put_u64(text, unit->source == MG_SOURCE_CGROUP ? unit->cgroup.inode : 0);
}

static bool has_process_of(const struct unit *unit, const char *words) {
        for (struct process *p = process_first(unit); p; p = process_next(p)) {
                char word[64];
                const char *found;

                snprintf(word, sizeof(word), " %d:%" PRIu64, (int) p->proc.pid, p->proc.start_time);
                found = strstr(words, word);
                if (found && (found[strlen(word)] == ' ' || found[strlen(word)] == '\0'))
                        return true;
        }
        return false;
}

/* LINE, NUL-ended, against the unit as it is. On success its InvocationID counts until systemd says another. */
static int check_identity(struct unit *unit, const char *line) {
        char want[IDENTITY_MAX];
        char invocation[INVOCATION_ID_SIZE];
        const char *rest;
        struct mg_text text;
        size_t length;

        text_init(&text, want, sizeof(want));
        put_identity(&text, unit);
        if (text.overflow || strncmp(line, want, text.length) != 0 || line[text.length] != ' ')
                return -ESTALE;
        rest = line + text.length + 1;
        length = strcspn(rest, " ");
        if (length >= sizeof(invocation))
                return -EBADMSG;
        memcpy(invocation, rest, length);
        invocation[length] = '\0';
        if (unit->source != MG_SOURCE_CGROUP && !has_process_of(unit, rest + length))
                return -ESTALE;
        if (unit->invocation_id[0] != '\0' && !mg_streq(invocation, "-") &&
            !mg_streq(unit->invocation_id, invocation))
                return -ESTALE;
        if (unit->invocation_id[0] == '\0' && !mg_streq(invocation, "-"))
                memcpy(unit->invocation_id, invocation, length + 1);
        return 0;
}

/* TAKE gets what follows the first line. */
static int load(struct unit *unit,
                const char *suffix,
                int (*take)(struct unit *unit, const char *body, size_t length)) {
        MG_CLEANUP(freep) char *text = NULL;
        char name[FILE_NAME_MAX];
        size_t length;
        char *body;
        int r;

        name_file(name, unit->path ?: unit->name, suffix);
        r = store_file_read(
                        unit->manager->units_dir_fd, name, IDENTITY_MAX + BODY_MAX, &text, &length);
        if (r < 0)
                return r;
        body = memchr(text, '\n', length);
        if (!body)
                return -EBADMSG;
        *body++ = '\0';
        r = check_identity(unit, text);
        return r < 0 ? r : take(unit, body, length - (size_t) (body - text));
}

static int save(const struct unit *unit, const char *suffix, const void *body, size_t body_length) {
        char buffer[IDENTITY_MAX + BODY_MAX];
        char name[FILE_NAME_MAX];
        struct mg_text text;

        text_init(&text, buffer, IDENTITY_MAX);
        put_identity(&text, unit);
        put_word(&text, unit->invocation_id);
        put_processes(&text, unit);
        text_put_char(&text, '\n');
        if (text.overflow)
                return -ENAMETOOLONG;
        memcpy(buffer + text.length, body, body_length);
        name_file(name, unit->path ?: unit->name, suffix);
        /* A crash of the host ends every life that such a file tells of: the disk is not waited for. */
        return store_file_replace(
                        unit->manager->units_dir_fd, name, buffer, text.length + body_length,
                        false);
}

static int take_state(struct unit *unit, const char *body, size_t length) {
        int r = state_decode(body, length, manager_now(unit->manager), &unit->policy);

        if (r >= 0)
                summary_begin(unit);
        return r;
}

int state_file_load(struct unit *unit) {
        return load(unit, STATE_SUFFIX, take_state);
}

int state_file_save(const struct unit *unit) {
        char body[MG_STATE_TEXT_MAX];
        size_t length;
        int r = state_encode(
                        &unit->policy, manager_now(unit->manager), body, sizeof(body), &length);

        return r < 0 ? r : save(unit, STATE_SUFFIX, body, length);
}

static int take_history(struct unit *unit, const char *body, size_t length) {
        return history_image_restore(body, length, manager_now(unit->manager), &unit->history);
}

int history_file_load(struct unit *unit) {
        return load(unit, HISTORY_SUFFIX, take_history);
}

int history_file_save(const struct unit *unit) {
        struct mg_history_image image;

        history_image_make(&unit->history, &image);
        return save(unit, HISTORY_SUFFIX, &image, sizeof(image));
}

static void remove_file(const struct unit *unit, const char *suffix) {
        char name[FILE_NAME_MAX];

        name_file(name, unit->path ?: unit->name, suffix);
        (void) unlinkat(unit->manager->units_dir_fd, name, 0);
}

void state_files_remove(const struct unit *unit) {
        remove_file(unit, STATE_SUFFIX);
        remove_file(unit, HISTORY_SUFFIX);
}

static bool is_ours(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && (mg_streq(dot, STATE_SUFFIX) || mg_streq(dot, HISTORY_SUFFIX) ||
                       mg_streq(dot, ".new"));
}

void state_files_purge(int dir_fd, unsigned long long age_usec) {
        int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        uint64_t now_usec = clock_wall_usec();

        if (!dir) {
                file_closep(&fd);
                return;
        }
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
                struct stat status;

                if (is_ours(entry->d_name) &&
                    fstatat(dir_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) >= 0 &&
                    mg_sub_floor(now_usec, status.st_mtime * MG_USEC_PER_SEC) > age_usec)
                        (void) unlinkat(dir_fd, entry->d_name, 0);
        }
        closedir(dir);
}
