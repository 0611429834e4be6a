/* SPDX-License-Identifier: MIT */
/* Lines that the program or the load prints about itself. Layer: replay; pure. */
#include "replay/told.h"

#include "base/macros.h"
#include "base/parse.h"
#include "base/text.h"

static const struct {
        const char *name;
        size_t offset;
} keys[] = {
        { "live_bytes", offsetof(struct told, live_bytes) },
        { "operations", offsetof(struct told, operations) },
        { "operations_per_second", offsetof(struct told, operations_per_second) },
        { "p99_usec", offsetof(struct told, p99_usec) },
        { "worst_usec", offsetof(struct told, worst_usec) },
        { "trims", offsetof(struct told, trims) },
        { "trim_worst_usec", offsetof(struct told, trim_worst_usec) },
};

static uint64_t *member(struct told *told, size_t key) {
        return (uint64_t *) ((char *) told + keys[key].offset);
}

void told_init(struct told *told) {
        *told = (struct told){};
        for (size_t i = 0; i < MG_ELEMENTS(keys); i++)
                *member(told, i) = MG_UNKNOWN;
}

static void take_pair(struct told *told, const char *pair, size_t length, size_t n_keys) {
        const char *equals = memchr(pair, '=', length);
        uint64_t value;

        if (!equals)
                return;
        for (size_t i = 0; i < n_keys; i++) {
                size_t name_length = strlen(keys[i].name);
                const char *digits = equals + 1;

                if ((size_t) (equals - pair) != name_length ||
                    memcmp(pair, keys[i].name, name_length) != 0)
                        continue;
                if (parse_u64_span(digits, length - name_length - 1, &value) == 0)
                        *member(told, i) = value;
        }
}

static void take_pairs(struct told *told, const char *text, size_t n_keys) {
        while (*text != '\0') {
                size_t length = strcspn(text, " \t\r");

                take_pair(told, text, length, n_keys);
                text += length;
                text += strspn(text, " \t\r");
        }
}

static const char *after_word(const char *line, const char *word) {
        size_t length = strlen(word);

        if (strncmp(line, word, length) != 0 || (line[length] != ' ' && line[length] != '\0'))
                return NULL;
        return line + length + strspn(line + length, " ");
}

bool told_line(struct told *told, const char *line) {
        const char *rest = after_word(line, "summary");

        if (rest) {
                told->summary = true;
                take_pairs(told, rest, MG_ELEMENTS(keys));
                return true;
        }
        rest = after_word(line, "phase");
        if (!rest)
                return false;
        if (after_word(rest, "idle"))
                told->load_over = true;
        take_pairs(told, rest, 1); /* live_bytes alone: the others are about a whole load */
        return true;
}

void told_feed(struct told_lines *lines, const char *bytes, size_t n, struct told *told) {
        for (size_t i = 0; i < n; i++) {
                if (bytes[i] == '\n') {
                        lines->buffer[lines->length] = '\0';
                        if (!lines->skipping)
                                told_line(told, lines->buffer);
                        lines->length = 0;
                        lines->skipping = false;
                } else if (lines->length < sizeof(lines->buffer) - 1)
                        lines->buffer[lines->length++] = bytes[i];
                else
                        lines->skipping = true;
        }
}

const char *told_format(const struct told *told, char buffer[static TOLD_TEXT_MAX]) {
        struct mg_text text;

        text_init(&text, buffer, TOLD_TEXT_MAX);
        for (size_t i = 0; i < MG_ELEMENTS(keys); i++) {
                uint64_t value = *member((struct told *) told, i);

                if (value == MG_UNKNOWN)
                        continue;
                if (text.length > 0)
                        text_put_char(&text, ' ');
                text_put(&text, keys[i].name);
                text_put_char(&text, '=');
                text_put_u64(&text, value);
        }
        return buffer;
}
