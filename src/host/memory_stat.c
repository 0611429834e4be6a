/* SPDX-License-Identifier: MIT */
/*
 * cgroup v2's memory files as text: "key value" lines, or one number. Layer: host; pure.
 * What the kernel does not know stays MG_UNKNOWN; what cannot be read as a number is left out.
 */
#include "host/memory_stat.h"

#include <errno.h>

#include "base/macros.h"
#include "base/parse.h"

/* "kernel" came with 5.18; the rest is in every kernel that has cgroup v2 with systemd. */
static const struct {
        const char *key;
        size_t offset;
} stat_keys[] = {
        { "anon", offsetof(struct mg_memory, anon_bytes) },
        { "file", offsetof(struct mg_memory, file_bytes) },
        { "shmem", offsetof(struct mg_memory, shmem_bytes) },
        { "kernel", offsetof(struct mg_memory, kernel_bytes) },
        { "slab_reclaimable", offsetof(struct mg_memory, slab_reclaimable_bytes) },
        { "active_anon", offsetof(struct mg_memory, active_anon_bytes) },
        { "inactive_anon", offsetof(struct mg_memory, inactive_anon_bytes) },
        { "unevictable", offsetof(struct mg_memory, unevictable_bytes) },
        { "anon_thp", offsetof(struct mg_memory, anon_thp_bytes) },
        { "pgscan", offsetof(struct mg_memory, pgscan) },
        { "pgsteal", offsetof(struct mg_memory, pgsteal) },
};

struct keyed_line {
        const char *key;
        size_t key_length;
        const char *value;
        size_t value_length;
};

/* Takes one line off *TEXT. False at the end; a line that is no "key value" has an empty key. */
static bool take_line(const char **text, struct keyed_line *ret_line) {
        const char *line = *text;
        if (*line == '\0')
                return false;

        size_t length = strcspn(line, "\n");
        const char *space = memchr(line, ' ', length);
        *text = line + length + (line[length] == '\n');
        *ret_line = (struct keyed_line){ .key = line };
        if (space) {
                ret_line->key_length = (size_t) (space - line);
                ret_line->value = space + 1;
                ret_line->value_length = length - ret_line->key_length - 1;
        }
        return true;
}

static bool has_key(const struct keyed_line *line, const char *key) {
        return line->key_length > 0 && strncmp(line->key, key, line->key_length) == 0 &&
               key[line->key_length] == '\0';
}

void memory_unknown(struct mg_memory *ret_memory) {
        /* MG_UNKNOWN is all ones, and struct mg_memory is nothing but uint64_t. */
        _Static_assert(MG_UNKNOWN == UINT64_MAX, "unknown is no longer all ones");
        memset(ret_memory, 0xff, sizeof(*ret_memory));
}

void memory_stat_parse(const char *text, struct mg_memory *memory) {
        struct keyed_line line;

        while (take_line(&text, &line)) {
                for (size_t i = 0; i < MG_ELEMENTS(stat_keys); i++) {
                        if (!has_key(&line, stat_keys[i].key))
                                continue;
                        uint64_t *slot = (uint64_t *) ((char *) memory + stat_keys[i].offset);
                        (void) parse_u64_span(line.value, line.value_length, slot);
                        break;
                }
        }
}

int memory_value_parse(const char *text, uint64_t *ret_value) {
        size_t length = strcspn(text, "\n");

        if (text[length] == '\n' && text[length + 1] != '\0')
                return -EINVAL;
        if (length == 3 && strncmp(text, "max", 3) == 0) {
                *ret_value = MG_UNKNOWN;
                return 0;
        }
        return parse_u64_span(text, length, ret_value) < 0 ? -EINVAL : 0;
}

uint64_t flat_keyed_find(const char *text, const char *key) {
        struct keyed_line line;
        uint64_t value = MG_UNKNOWN;

        while (take_line(&text, &line))
                if (has_key(&line, key)) {
                        (void) parse_u64_span(line.value, line.value_length, &value);
                        break;
                }
        return value;
}
