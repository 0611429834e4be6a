/* SPDX-License-Identifier: MIT */
/* Dictionaries in messages. Layer: daemon. */
#include "daemon/bus_dict.h"

#include <string.h>

#include "base/macros.h"

/* Longer than any name or path that is shown. */
#define CLEAN_MAX 4096

/* How many bytes the character at TEXT has, 0 where it is none: no overlong forms, surrogates or beyond U+10FFFF. */
static size_t utf8_length(const unsigned char *text) {
        static const struct {
                uint32_t first, last;
        } ranges[] = { { 0, 0x7f }, { 0x80, 0x7ff }, { 0x800, 0xffff }, { 0x10000, 0x10ffff } };
        size_t n = text[0] < 0x80         ? 1
                   : text[0] >> 5 == 0x06 ? 2
                   : text[0] >> 4 == 0x0e ? 3
                   : text[0] >> 3 == 0x1e ? 4
                                          : 0;
        uint32_t code = n > 1 ? text[0] & (0x7fu >> n) : text[0];

        for (size_t i = 1; i < n; i++) {
                if (text[i] >> 6 != 0x02)
                        return 0;
                code = code << 6 | (text[i] & 0x3f);
        }
        if (n == 0 || code < ranges[n - 1].first || code > ranges[n - 1].last)
                return 0;
        return code >= 0xd800 && code <= 0xdfff ? 0 : n;
}

static bool is_control(unsigned char c) {
        return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
}

bool utf8_is_clean(const char *text) {
        const unsigned char *at = (const unsigned char *) text;

        while (*at) {
                size_t n = utf8_length(at);
                if (n == 0 || is_control(*at))
                        return false;
                at += n;
        }
        return true;
}

/* A name from the kernel may hold anything; sd-bus refuses what is not UTF-8, and with it the whole reply. */
static const char *clean(const char *value, char buffer[static CLEAN_MAX]) {
        size_t n = 0;

        if (utf8_is_clean(value))
                return value;
        for (; *value && n + 1 < CLEAN_MAX; value++) {
                unsigned char c = (unsigned char) *value;
                buffer[n++] = c >= 0x80 || is_control(c) ? '?' : *value;
        }
        buffer[n] = '\0';
        return buffer;
}

static void keep_error(struct dict *dict, int r) {
        if (r < 0 && dict->error >= 0)
                dict->error = r;
}

static void open_container(struct dict *dict, char type, const char *contents) {
        if (dict->error >= 0)
                keep_error(dict, sd_bus_message_open_container(dict->message, type, contents));
}

static void close_container(struct dict *dict) {
        if (dict->error >= 0)
                keep_error(dict, sd_bus_message_close_container(dict->message));
}

void dict_begin(struct dict *dict) {
        open_container(dict, 'a', "{sv}");
}

void dict_end(struct dict *dict) {
        close_container(dict);
}

void dict_string(struct dict *dict, const char *key, const char *value) {
        char buffer[CLEAN_MAX];

        if (value && dict->error >= 0)
                keep_error(dict,
                           sd_bus_message_append(
                                           dict->message, "{sv}", key, "s", clean(value, buffer)));
}

void dict_u64(struct dict *dict, const char *key, uint64_t value) {
        if (value != MG_UNKNOWN && dict->error >= 0)
                keep_error(dict, sd_bus_message_append(dict->message, "{sv}", key, "t", value));
}

void dict_i64(struct dict *dict, const char *key, int64_t value) {
        if (dict->error >= 0)
                keep_error(dict, sd_bus_message_append(dict->message, "{sv}", key, "x", value));
}

void dict_bool(struct dict *dict, const char *key, bool value) {
        if (dict->error >= 0)
                keep_error(dict,
                           sd_bus_message_append(dict->message, "{sv}", key, "b", (int) value));
}

static void begin_value(struct dict *dict, const char *key, const char *type, const char *element) {
        open_container(dict, 'e', "sv");
        if (dict->error >= 0)
                keep_error(dict, sd_bus_message_append(dict->message, "s", key));
        open_container(dict, 'v', type);
        open_container(dict, 'a', element);
}

static void end_value(struct dict *dict) {
        close_container(dict);
        close_container(dict);
        close_container(dict);
}

void dict_nested_begin(struct dict *dict, const char *key) {
        begin_value(dict, key, "a{sv}", "{sv}");
}

void dict_nested_end(struct dict *dict) {
        end_value(dict);
}

void dict_list_begin(struct dict *dict, const char *key) {
        begin_value(dict, key, "aa{sv}", "a{sv}");
}

void dict_list_end(struct dict *dict) {
        end_value(dict);
}

void dict_strings_begin(struct dict *dict, const char *key) {
        begin_value(dict, key, "as", "s");
}

void dict_item(struct dict *dict, const char *value) {
        char buffer[CLEAN_MAX];

        if (dict->error >= 0)
                keep_error(dict, sd_bus_message_append(dict->message, "s", clean(value, buffer)));
}

void dict_strings_end(struct dict *dict) {
        end_value(dict);
}
