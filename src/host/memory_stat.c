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

#define VALUE_DIGITS_MAX 19 /* what surely fits 64 bits */

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

static size_t find_key(const struct keyed_line *line) {
        size_t i = 0;

        while (i < MG_ELEMENTS(stat_keys) && !has_key(line, stat_keys[i].key, stat_keys[i].length))
                i++;
        return i;
}

static uint64_t *slot_of(struct mg_memory *memory, size_t key) {
        return (uint64_t *) ((char *) memory + stat_keys[key].offset);
}

/* Adds a line that has been read. One that is no "key number" makes the layout useless: what follows it cannot be found. */
static void learn_line(
                struct memory_stat_layout *layout,
                const struct keyed_line *line,
                size_t key) {
        uint64_t value;

        if (layout->n_lines >= MG_STAT_LINES_MAX || line->key_length == 0 ||
            line->key_length > UINT8_MAX ||
            parse_u64_span(line->value, line->value_length, &value) < 0) {
                layout->n_lines = MG_STAT_LINES_MAX + 1;
                return;
        }
        layout->lines[layout->n_lines].key_length = (uint8_t) line->key_length;
        layout->lines[layout->n_lines++].key = (uint8_t) key;
}

static void parse_and_learn(
                const char *text,
                struct memory_stat_layout *layout,
                struct mg_memory *memory) {
        uint32_t missing = (UINT32_C(1) << MG_ELEMENTS(stat_keys)) - 1;
        struct keyed_line line;

        layout->n_lines = 0;
        while (missing != 0 && take_line(&text, &line)) {
                size_t key = find_key(&line);

                if (key < MG_ELEMENTS(stat_keys) && !(missing >> key & 1))
                        key = MG_ELEMENTS(stat_keys); /* the first one counts */
                learn_line(layout, &line, key);
                if (key == MG_ELEMENTS(stat_keys))
                        continue;
                (void) parse_u64_span(line.value, line.value_length, slot_of(memory, key));
                missing &= ~(UINT32_C(1) << key);
        }
        if (layout->n_lines > MG_STAT_LINES_MAX)
                layout->n_lines = 0;
        layout->has_all_keys = missing == 0;
}

static bool is_digit(char c) {
        return (unsigned char) (c - '0') < 10;
}

/* Past the digits at AT. */
static const char *take_number(const char *at, uint64_t *ret_value) {
        const char *first = at;
        uint64_t value = 0;

        for (; is_digit(*at) && at < first + VALUE_DIGITS_MAX; at++)
                value = value * 10 + (uint64_t) (*at - '0');
        *ret_value = value;
        return at;
}

static const char *skip_number(const char *at) {
        while (is_digit(*at))
                at++;
        return at;
}

/* False: the text has another layout, and what is in MEMORY is to be read again. */
static bool parse_known(
                const char *text,
                size_t length,
                const struct memory_stat_layout *layout,
                struct mg_memory *memory) {
        const char *end = text + length;

        for (unsigned i = 0; i < layout->n_lines; i++) {
                size_t key = layout->lines[i].key, key_length = layout->lines[i].key_length;

                if ((size_t) (end - text) <= key_length || text[key_length] != ' ')
                        return false;
                const char *number = text + key_length + 1, *behind;
                if (key == MG_ELEMENTS(stat_keys))
                        behind = skip_number(number);
                else if (memcmp(text, stat_keys[key].key, key_length) == 0)
                        behind = take_number(number, slot_of(memory, key));
                else
                        return false;
                if (behind == number || *behind != '\n')
                        return false;
                text = behind + 1;
        }
        return layout->n_lines > 0 && (layout->has_all_keys || text == end);
}

void memory_stat_parse(
                const char *text,
                size_t length,
                struct memory_stat_layout *layout,
                struct mg_memory *memory) {
        struct mg_memory known = *memory;

        if (parse_known(text, length, layout, &known))
                *memory = known;
        else
                parse_and_learn(text, layout, memory);
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
