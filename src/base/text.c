/* SPDX-License-Identifier: MIT */
/* The bounded text builder. Layer: base; pure. */
#include "base/text.h"

#include "base/macros.h"

void text_init(struct mg_text *text, char *buffer, size_t size) {
        *text = (struct mg_text){ .buffer = buffer, .size = size };
        buffer[0] = '\0';
}

void text_put_span(struct mg_text *text, const char *bytes, size_t length) {
        size_t room = text->size - text->length - 1;

        if (length > room) {
                text->overflow = true;
                length = room;
        }
        memcpy(text->buffer + text->length, bytes, length);
        text->length += length;
        text->buffer[text->length] = '\0';
}

void text_put(struct mg_text *text, const char *string) {
        text_put_span(text, string, strlen(string));
}

void text_put_char(struct mg_text *text, char c) {
        text_put_span(text, &c, 1);
}

void text_put_u64(struct mg_text *text, uint64_t value) {
        char digits[20];
        size_t start = sizeof(digits);

        do {
                digits[--start] = (char) ('0' + value % 10);
                value /= 10;
        } while (value > 0);
        text_put_span(text, digits + start, sizeof(digits) - start);
}

void text_put_size(struct mg_text *text, uint64_t bytes) {
        static const char suffixes[] = "BKMGTPE";
        uint64_t tenths;
        size_t i = 0;

        if (bytes == MG_UNKNOWN) {
                text_put_char(text, '-');
                return;
        }
        uint64_t unit = 1;
        while (i + 2 < sizeof(suffixes) && bytes / unit >= 1024) {
                unit *= 1024;
                i++;
        }
        tenths = mg_scale(bytes, 10, unit);
        text_put_u64(text, tenths / 10);
        if (i > 0 && tenths < 100 && tenths % 10 != 0) {
                text_put_char(text, '.');
                text_put_u64(text, tenths % 10);
        }
        text_put_char(text, suffixes[i]);
}

void text_put_duration(struct mg_text *text, uint64_t usec) {
        static const struct {
                const char *name;
                uint64_t usec;
        } parts[] = {
                { "d", 24 * MG_USEC_PER_HOUR }, { "h", MG_USEC_PER_HOUR },
                { "min", MG_USEC_PER_MIN },     { "s", MG_USEC_PER_SEC },
                { "ms", MG_USEC_PER_MSEC },     { "us", 1 },
        };

        if (usec == MG_UNKNOWN) {
                text_put_char(text, '-');
                return;
        }
        size_t first = 0;
        while (first + 1 < MG_ELEMENTS(parts) && usec < parts[first].usec)
                first++;
        text_put_u64(text, usec / parts[first].usec);
        text_put(text, parts[first].name);

        /* From the second down one part says enough. */
        uint64_t rest = usec % parts[first].usec;
        if (parts[first].usec > MG_USEC_PER_SEC && rest >= parts[first + 1].usec) {
                text_put_char(text, ' ');
                text_put_u64(text, rest / parts[first + 1].usec);
                text_put(text, parts[first + 1].name);
        }
}

const char *format_size(uint64_t bytes, char buffer[static MG_SHORT_TEXT_MAX]) {
        struct mg_text text;
        text_init(&text, buffer, MG_SHORT_TEXT_MAX);
        text_put_size(&text, bytes);
        return buffer;
}

const char *format_duration(uint64_t usec, char buffer[static MG_SHORT_TEXT_MAX]) {
        struct mg_text text;
        text_init(&text, buffer, MG_SHORT_TEXT_MAX);
        text_put_duration(&text, usec);
        return buffer;
}
