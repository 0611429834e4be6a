/* SPDX-License-Identifier: MIT */
/* The MEMGUARD_* environment. Layer: agent; no allocation. */
#include "agent/settings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/macros.h"
#include "base/parse.h"

static const char *const thread_modes[] = { "follow", "always", "never" };
_Static_assert(MG_ELEMENTS(thread_modes) == _MG_THREAD_MODE_MAX, "a name for each mode");

const char *thread_mode_to_string(enum mg_thread_mode mode) {
        return thread_modes[mode];
}

static enum mg_thread_mode read_thread_mode(void) {
        const char *text = getenv("MEMGUARD_THREAD");

        for (int mode = 0; text && mode < _MG_THREAD_MODE_MAX; mode++)
                if (mg_streq(text, thread_modes[mode]))
                        return (enum mg_thread_mode) mode;
        return MG_THREAD_FOLLOW;
}

static bool is_set_to(const char *name, int wanted) {
        const char *text = getenv(name);
        return text && parse_boolean(text) == wanted;
}

static bool copy_path(const char *path, char *buffer, size_t size) {
        size_t length = strlen(path);

        if (length == 0 || length >= size)
                return false;
        memcpy(buffer, path, length + 1);
        return true;
}

void settings_read(struct mg_settings *settings) {
        const char *path = getenv("MEMGUARD_SOCKET");
        const char *delay = getenv("MEMGUARD_DELAY");

        *settings = (struct mg_settings){
                /* A set-user-ID program is not told by its caller's environment what to connect to. */
                .disabled = is_set_to("MEMGUARD_DISABLE", 1) || getauxval(AT_SECURE) != 0,
                .strip_children = is_set_to("MEMGUARD_CHILDREN", 0),
                .thread_mode = read_thread_mode(),
                .delay_usec = MG_DEFAULT_DELAY_USEC,
        };
        if (!copy_path(path && *path ? path : MG_DEFAULT_SOCKET, settings->socket_path,
                       sizeof(settings->socket_path)))
                settings->disabled = true;
        if (delay)
                parse_duration(delay, &settings->delay_usec);
}

bool tunables_has(const char *tunables, const char *name) {
        size_t length = strlen(name);

        for (const char *entry = tunables; *entry;) {
                size_t entry_length = strcspn(entry, ":");
                if (entry_length > length + 1 && memcmp(entry, name, length) == 0 &&
                    entry[length] == '=' &&
                    !(entry[length + 1] == '0' && entry_length == length + 2))
                        return true;
                entry += entry_length;
                entry += *entry == ':';
        }
        return false;
}

void malloc_settings_read(struct mg_malloc_settings *settings) {
        static const char *const forbidding[] = { "glibc.malloc.perturb", "glibc.malloc.hugetlb",
                                                  "glibc.mem.tagging" };
        const char *tunables = getenv("GLIBC_TUNABLES"), *perturb = getenv("MALLOC_PERTURB_");

        *settings = (struct mg_malloc_settings){ .forbid_tops = perturb &&
                                                                !mg_streq(perturb, "0") };
        for (size_t i = 0; tunables && i < MG_ELEMENTS(forbidding); i++)
                if (tunables_has(tunables, forbidding[i]))
                        settings->forbid_tops = true;
}

static const char *file_name(const char *path, size_t length) {
        for (size_t i = length; i > 0; i--)
                if (path[i - 1] == '/')
                        return path + i;
        return path;
}

size_t preload_list_strip(char *list, const char *own_path) {
        const char *own = file_name(own_path, strlen(own_path));
        size_t own_length = strlen(own), out = 0;

        for (const char *at = list; *at;) {
                size_t length = strcspn(at, ": ");
                const char *name = file_name(at, length);
                size_t name_length = (size_t) (at + length - name);
                bool is_own = name_length == own_length && memcmp(name, own, own_length) == 0;
                if (length > 0 && !is_own) {
                        if (out > 0)
                                list[out++] = ':';
                        memmove(list + out, at, length);
                        out += length;
                }
                at += length;
                at += *at != '\0';
        }
        list[out] = '\0';
        return out;
}
