/* SPDX-License-Identifier: MIT */
/* The text of single values. Layer: ctl. */
#include "ctl/cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/macros.h"
#include "base/text.h"

static const char *format_signed_size(json_int_t bytes, char buffer[static MG_SHORT_TEXT_MAX]) {
        struct mg_text text;
        uint64_t magnitude = bytes < 0 ? UINT64_C(0) - (uint64_t) bytes : (uint64_t) bytes;

        text_init(&text, buffer, MG_SHORT_TEXT_MAX);
        text_put_char(&text, bytes < 0 ? '-' : '+');
        text_put_size(&text, magnitude);
        return buffer;
}

static const char *format_time(json_int_t usec, char *buffer) {
        time_t at = (time_t) (usec / (json_int_t) MG_USEC_PER_SEC);
        struct tm local;

        if (usec < 0 || !localtime_r(&at, &local) ||
            strftime(buffer, MG_SHORT_TEXT_MAX, "%Y-%m-%d %H:%M:%S", &local) == 0)
                return "-";
        return buffer;
}

static const char *format_integer(json_int_t value, enum cell cell, char *buffer) {
        switch (cell) {
        case CELL_SIZE:
                return value < 0 ? "-" : format_size((uint64_t) value, buffer);
        case CELL_SIGNED_SIZE:
                return format_signed_size(value, buffer);
        case CELL_DURATION:
                return value < 0 ? "-" : format_duration((uint64_t) value, buffer);
        case CELL_TIME:
                return format_time(value, buffer);
        case CELL_TEXT:
        case CELL_COUNT:
                break;
        }
        snprintf(buffer, MG_SHORT_TEXT_MAX, "%" JSON_INTEGER_FORMAT, value);
        return buffer;
}

const char *cell_format(const json_t *value, enum cell cell) {
        /* Eight, so that one printf() may show several. */
        static char buffers[8][MG_SHORT_TEXT_MAX];
        static size_t next;

        if (json_is_string(value))
                return json_string_value(value);
        if (json_is_boolean(value))
                return json_is_true(value) ? "yes" : "no";
        if (!json_is_integer(value))
                return "-";
        return format_integer(
                        json_integer_value(value), cell, buffers[next++ % MG_ELEMENTS(buffers)]);
}

const char *member_text(const json_t *object, const char *name) {
        return cell_format(json_object_get(object, name), CELL_TEXT);
}

const char *member_size(const json_t *object, const char *name) {
        return cell_format(json_object_get(object, name), CELL_SIZE);
}

const char *member_duration(const json_t *object, const char *name) {
        return cell_format(json_object_get(object, name), CELL_DURATION);
}

json_int_t member_integer(const json_t *object, const char *name, json_int_t otherwise) {
        const json_t *value = json_object_get(object, name);

        return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

bool member_true(const json_t *object, const char *name) {
        return json_is_true(json_object_get(object, name));
}

const char *unit_key(const json_t *row) {
        const json_t *cgroup = json_object_get(row, "cgroup");

        return json_is_string(cgroup) ? json_string_value(cgroup) : member_text(row, "unit");
}
