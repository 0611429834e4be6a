/* SPDX-License-Identifier: MIT */
/*
 * Unit names from cgroup paths. A path is foreign data: whoever has a delegated cgroup chooses the names below it, so
 * what is not printable ASCII (which no real unit name has) is replaced, and never reaches the journal or the bus.
 * Layer: host; pure.
 */
#include "host/unit_name.h"

#include <errno.h>

#include "base/macros.h"
#include "base/parse.h"
#include "base/text.h"

static bool ends_with(const char *name, size_t length, const char *suffix) {
        size_t n = strlen(suffix);
        return length > n && memcmp(name + length - n, suffix, n) == 0;
}

bool unit_name_is_unit(const char *component, size_t length) {
        return ends_with(component, length, ".service") || ends_with(component, length, ".scope");
}

bool unit_name_is_slice(const char *component, size_t length) {
        return ends_with(component, length, ".slice");
}

size_t unit_name_tree_length(const char *path) {
        const char *component, *slash;

        if (path[0] != '/')
                return 0;
        for (component = path + 1; (slash = strchr(component, '/')); component = slash + 1)
                if (!unit_name_is_slice(component, (size_t) (slash - component)))
                        return (size_t) (slash - path);
        return 0;
}

static void put_printable(struct mg_text *text, const char *name, size_t length) {
        for (size_t i = 0; i < length; i++)
                text_put_char(text, name[i] >= 0x20 && name[i] < 0x7f ? name[i] : '_');
}

/* user@1000.service: the uid of that manager. */
static bool is_user_manager(const char *name, size_t length, uid_t *ret_uid) {
        static const char prefix[] = "user@", suffix[] = ".service";
        size_t outside = strlen(prefix) + strlen(suffix);
        uint64_t uid;

        if (length <= outside || memcmp(name, prefix, strlen(prefix)) != 0 ||
            !ends_with(name, length, suffix) ||
            parse_u64_span(name + strlen(prefix), length - outside, &uid) < 0 || uid >= UINT32_MAX)
                return false;
        *ret_uid = (uid_t) uid;
        return true;
}

/* systemd prefixes names that could be a cgroup attribute's ("cpu.service") with "_". */
static void set_unit(struct mg_unit_name *name, const char *component, size_t length) {
        struct mg_text text;

        if (component[0] == '_' && length > 1) {
                component++;
                length--;
        }
        text_init(&text, name->unit, sizeof(name->unit));
        put_printable(&text, component, length);
}

int unit_name_from_cgroup(const char *path, struct mg_unit_name *ret_name) {
        struct mg_unit_name name = {};
        bool below_manager = false;
        uid_t manager_uid = 0;

        for (const char *at = path; *at != '\0';) {
                at += strspn(at, "/");
                size_t length = strcspn(at, "/");

                if (length < MG_UNIT_NAME_MAX && unit_name_is_unit(at, length)) {
                        set_unit(&name, at, length);
                        name.path_length = (size_t) (at - path) + length;
                        name.user = below_manager;
                        name.user_uid = below_manager ? manager_uid : 0;
                        if (is_user_manager(at, length, &manager_uid))
                                below_manager = true;
                }
                at += length;
        }
        if (name.path_length == 0)
                return -ENXIO;
        *ret_name = name;
        return 0;
}

void unit_name_for_process(
                const char *executable,
                uid_t uid,
                uid_t own_uid,
                char ret_name[static MG_UNIT_NAME_MAX]) {
        /* "@4294967295.process" has to fit behind the longest name. */
        enum {
                TAIL_MAX = 20
        };
        const char *slash = strrchr(executable, '/');
        const char *base = slash ? slash + 1 : executable;
        size_t length = strlen(base);
        struct mg_text text;

        text_init(&text, ret_name, MG_UNIT_NAME_MAX);
        if (length == 0)
                text_put(&text, "unknown");
        put_printable(&text, base, MG_MIN(length, (size_t) (MG_UNIT_NAME_MAX - 1 - TAIL_MAX)));
        if (uid != own_uid) {
                text_put_char(&text, '@');
                text_put_u64(&text, uid);
        }
        text_put(&text, ".process");
}
