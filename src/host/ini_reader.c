/* SPDX-License-Identifier: MIT */
/*
 * The reader below inih. inih (as Debian builds it) cuts section names at 49 characters, takes the tail of a line over 199
 * bytes for a new line (the end of a long comment becomes a key), joins indented lines to the key before, accepts
 * "key: value", drops what follows a header's first "]", stops at NUL, and tells its handler no line number. So each line is
 * looked at here first, and inih is handed an empty one for all that is no plain "key = value". Layer: host; pure.
 */
#include "host/ini_reader.h"

#include <errno.h>
#include <ini.h>
#include <string.h>

#include "base/macros.h"

enum section_state {
        SECTION_NONE, /* before the first header */
        SECTION_KNOWN,
        SECTION_PASSED, /* malformed or unknown: its keys mean nothing */
};

struct reader {
        const char *file;
        const char *at;
        const char *end;
        unsigned line;
        enum section_state state;
        char section[MG_INI_LINE_MAX + 1];
        const struct mg_ini_handler *handler;
        struct mg_problems *problems;
};

struct span {
        const char *bytes;
        size_t length;
};

static bool is_blank(char c) {
        return c == ' ' || c == '\t';
}

static struct span strip(struct span span) {
        while (span.length > 0 && is_blank(span.bytes[span.length - 1]))
                span.length--;
        while (span.length > 0 && is_blank(span.bytes[0])) {
                span.bytes++;
                span.length--;
        }
        return span;
}

static struct span take_line(struct reader *reader) {
        size_t left = (size_t) (reader->end - reader->at);
        const char *newline = memchr(reader->at, '\n', left);
        struct span line = { reader->at, newline ? (size_t) (newline - reader->at) : left };

        reader->at += line.length + (newline ? 1 : 0);
        reader->line++;
        if (reader->line == 1 && line.length >= 3 && memcmp(line.bytes, "\xef\xbb\xbf", 3) == 0) {
                line.bytes += 3;
                line.length -= 3;
        }
        if (line.length > 0 && line.bytes[line.length - 1] == '\r')
                line.length--;
        return line;
}

static void refuse(struct reader *reader, const char *why) {
        problems_add(reader->problems, MG_SEVERITY_ERROR, reader->file, reader->line, "%s", why);
}

/* Where a comment after a blank begins, as inih has it; else the end. */
static size_t find_inline_comment(struct span line) {
        for (size_t i = 1; i < line.length; i++)
                if (line.bytes[i] == ';' && is_blank(line.bytes[i - 1]))
                        return i;
        return line.length;
}

/* The name goes to the LAST "]": a glob may have brackets of its own. */
static bool parse_header(struct reader *reader, struct span line) {
        line.length = find_inline_comment(line);
        line = strip(line);
        if (line.length < 2 || line.bytes[line.length - 1] != ']') {
                refuse(reader, "malformed section header: expected [NAME] and nothing behind it");
                return false;
        }
        struct span name = { line.bytes + 1, line.length - 2 };
        if (name.length == 0 || strip(name).length != name.length) {
                refuse(reader,
                       "malformed section header: expected a name without blanks around it");
                return false;
        }
        memcpy(reader->section, name.bytes, name.length);
        reader->section[name.length] = '\0';
        return reader->handler->section(reader->handler->userdata, reader->line, reader->section);
}

/* Whether inih may have LINE: "key = value" below a header that is known. */
static bool is_assignment(struct reader *reader, struct span line) {
        const char *equals = memchr(line.bytes, '=', line.length);
        const char *colon = memchr(line.bytes, ':', line.length);

        if (reader->state == SECTION_PASSED)
                return false;
        if (is_blank(line.bytes[0])) {
                refuse(reader,
                       "indented line: expected a key at its start (a value cannot be continued)");
                return false;
        }
        if (!equals || (colon && colon < equals)) {
                refuse(reader, "expected KEY=VALUE, a [SECTION] or a comment");
                return false;
        }
        if (equals == line.bytes) {
                refuse(reader, "expected a key before \"=\"");
                return false;
        }
        if (find_inline_comment(line) < (size_t) (equals - line.bytes)) {
                refuse(reader, "expected KEY=VALUE before the comment");
                return false;
        }
        if (reader->state == SECTION_NONE) {
                refuse(reader, "expected a [SECTION] before the first key");
                return false;
        }
        return true;
}

/* What LINE is; true when it is for inih. */
static bool examine(struct reader *reader, struct span line, size_t room) {
        struct span content = strip(line);

        if (content.length > 0 && (content.bytes[0] == ';' || content.bytes[0] == '#') &&
            line.length <= MG_INI_LINE_MAX && !memchr(line.bytes, '\0', line.length))
                return false;
        if (content.length == 0)
                return false;

        bool is_header = line.bytes[0] == '[';
        if (is_header)
                reader->state = SECTION_PASSED;
        if (memchr(line.bytes, '\0', line.length)) {
                refuse(reader, "NUL byte: expected text");
                return false;
        }
        if (line.length > MG_MIN((size_t) MG_INI_LINE_MAX, room)) {
                refuse(reader, "line too long: expected at most 199 bytes");
                return false;
        }
        if (is_header) {
                if (parse_header(reader, line))
                        reader->state = SECTION_KNOWN;
                return false;
        }
        return is_assignment(reader, line);
}

/* inih's fgets(): one line a call, so that its lines and ours are the same. */
static char *read_line(char *buffer, int size, void *stream) {
        struct reader *reader = stream;

        if (reader->at == reader->end || size < 1)
                return NULL;
        struct span line = take_line(reader);
        if (!examine(reader, line, (size_t) size - 1))
                line.length = 0;
        memcpy(buffer, line.bytes, line.length);
        buffer[line.length] = '\0';
        return buffer;
}

static int pass_key(void *userdata, const char *section, const char *key, const char *value) {
        struct reader *reader = userdata;

        reader->handler->key(reader->handler->userdata, reader->line, reader->section, key, value);
        return 1;
}

int ini_read(const char *file,
             const char *text,
             size_t length,
             const struct mg_ini_handler *handler,
             struct mg_problems *problems) {
        struct reader reader = {
                .file = file,
                .at = text,
                .end = text + length,
                .handler = handler,
                .problems = problems,
        };

        /* inih hands the same pointer to its reader; the handler's comes by a second way. */
        int r = ini_parse_stream(read_line, &reader, pass_key, &reader);
        if (r < 0)
                return -ENOMEM;
        if (r > 0)
                problems_add(problems, MG_SEVERITY_ERROR, file, (unsigned) r, "expected KEY=VALUE");
        return 0;
}
