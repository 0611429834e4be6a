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
        size_t length;
        size_t offset;
} stat_keys[] = {
#define STAT_KEY(text, member) \
        { text, sizeof(text) - 1, offsetof(struct mg_memory, member) }
        STAT_KEY("anon", anon_bytes),
        STAT_KEY("file", file_bytes),
        STAT_KEY("shmem", shmem_bytes),
        STAT_KEY("kernel", kernel_bytes),
        STAT_KEY("slab_reclaimable", slab_reclaimable_bytes),
        STAT_KEY("active_anon", active_anon_bytes),
        STAT_KEY("inactive_anon", inactive_anon_bytes),
        STAT_KEY("unevictable", unevictable_bytes),
        STAT_KEY("anon_thp", anon_thp_bytes),
        STAT_KEY("pgscan", pgscan),
        STAT_KEY("pgsteal", pgsteal),
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

        const char *end = strchrnul(line, '\n');
        size_t length = (size_t) (end - line);
        const char *space = memchr(line, ' ', length);
        *text = end + (*end == '\n');
        *ret_line = (struct keyed_line){ .key = line };
        if (space) {
                ret_line->key_length = (size_t) (space - line);
                ret_line->value = space + 1;
                ret_line->value_length = length - ret_line->key_length - 1;
        }
        return true;
}

static bool has_key(const struct keyed_line *line, const char *key, size_t length) {
        return line->key_length == length && memcmp(line->key, key, length) == 0;
}

void memory_unknown(struct mg_memory *ret_memory) {
        /* MG_UNKNOWN is all ones, and struct mg_memory is nothing but uint64_t. */
        _Static_assert(MG_UNKNOWN == UINT64_MAX, "unknown is no longer all ones");
        memset(ret_memory, 0xff, sizeof(*ret_memory));
}

/* Most lines are of no use: their keys' lengths alone tell that. */
static uint32_t lengths_of_keys(void) {
        uint32_t lengths = 0;

        for (size_t i = 0; i < MG_ELEMENTS(stat_keys); i++)
                lengths |= UINT32_C(1) << stat_keys[i].length;
        return lengths;
}

static size_t find_key(const struct keyed_line *line) {
        size_t i = 0;

        while (i < MG_ELEMENTS(stat_keys) && !has_key(line, stat_keys[i].key, stat_keys[i].length))
                i++;
        return i;
}

void memory_stat_parse(const char *text, struct mg_memory *memory) {
        const uint32_t lengths = lengths_of_keys();
        uint32_t missing = (UINT32_C(1) << MG_ELEMENTS(stat_keys)) - 1;
        struct keyed_line line;

        while (missing != 0 && take_line(&text, &line)) {
                if (line.key_length >= 32 || !(lengths >> line.key_length & 1))
                        continue;
                size_t i = find_key(&line);
                if (i == MG_ELEMENTS(stat_keys))
                        continue;
                uint64_t *slot = (uint64_t *) ((char *) memory + stat_keys[i].offset);
                (void) parse_u64_span(line.value, line.value_length, slot);
                missing &= ~(UINT32_C(1) << i);
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
                if (has_key(&line, key, strlen(key))) {
                        (void) parse_u64_span(line.value, line.value_length, &value);
                        break;
                }
        return value;
}
