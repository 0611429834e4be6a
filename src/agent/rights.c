/* SPDX-License-Identifier: MIT */
/* The comparison of two threads' rights. Layer: agent; pure. */
#include "agent/rights.h"

#include "base/macros.h"
#include "base/parse.h"
#include "proto/proto.h"

/*
 * Every line that says what a thread may do. Of Uid: and Gid: the fourth number, the file system's, is compared as
 * well: it decides about files as the others do.
 */
static const char *const compared[] = { "Uid:",        "Gid:",     "Groups:",         "CapInh:",
                                        "CapPrm:",     "CapEff:",  "CapBnd:",         "CapAmb:",
                                        "NoNewPrivs:", "Seccomp:", "Seccomp_filters:" };

/* The value of line NAME: from behind the colon to the end of the line; unknown when there is none. */
static struct mg_span find_line(const char *status, const char *name) {
        size_t name_length = strlen(name);

        for (const char *line = status; line;) {
                const char *end = strchr(line, '\n');
                size_t length = end ? (size_t) (end - line) : strlen(line);
                if (length >= name_length && memcmp(line, name, name_length) == 0)
                        return (struct mg_span){ line + name_length, length - name_length };
                line = end ? end + 1 : NULL;
        }
        return (struct mg_span){ 0 };
}

static bool are_equal(struct mg_span a, struct mg_span b) {
        return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

static uint64_t find_number(const char *status, const char *name) {
        struct mg_span value = find_line(status, name);
        uint64_t number;
        size_t digits = 0;

        while (value.length > 0 && (*value.bytes == ' ' || *value.bytes == '\t')) {
                value.bytes++;
                value.length--;
        }
        while (digits < value.length && value.bytes[digits] >= '0' && value.bytes[digits] <= '9')
                digits++;
        return parse_u64_span(value.bytes, digits, &number) < 0 ? 0 : number;
}

struct mg_seccomp rights_seccomp(const char *status) {
        return (struct mg_seccomp){ .mode = find_number(status, "Seccomp:"),
                                    .filters = find_number(status, "Seccomp_filters:") };
}

static bool has_ended(const char *status) {
        struct mg_span state = find_line(status, "State:");
        return state.length > 1 && (state.bytes[1] == 'Z' || state.bytes[1] == 'X');
}

enum mg_rights rights_compare(
                const char *main_status,
                const char *own_status,
                const struct mg_seccomp *baseline) {
        struct mg_seccomp own = rights_seccomp(own_status), main = rights_seccomp(main_status);

        if (!find_line(main_status, "Uid:").bytes || !find_line(own_status, "Uid:").bytes)
                return MG_RIGHTS_UNREADABLE;
        if (own.mode != baseline->mode || own.filters != baseline->filters)
                return MG_RIGHTS_SECCOMP_STRICTER;
        if (has_ended(main_status))
                return MG_RIGHTS_DIFFER;
        if (main.mode != baseline->mode || main.filters != baseline->filters)
                return MG_RIGHTS_MAIN_FILTERED;
        for (size_t i = 0; i < MG_ELEMENTS(compared); i++)
                if (!are_equal(find_line(main_status, compared[i]),
                               find_line(own_status, compared[i])))
                        return MG_RIGHTS_DIFFER;
        return MG_RIGHTS_EQUAL;
}

uint64_t rights_locked_bytes(const char *status) {
        return mg_scale(find_number(status, "VmLck:"), MG_KIB, 1);
}

/* The value of a hexadecimal digit, or -1. */
static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool rights_has_own_pending(const char *status, int signal) {
        struct mg_span value = find_line(status, "SigPnd:");
        uint64_t mask = 0;

        for (size_t i = 0; i < value.length; i++)
                if (hex_digit(value.bytes[i]) >= 0)
                        mask = mask << 4 | (uint64_t) hex_digit(value.bytes[i]);
        return mask >> (signal - 1) & 1;
}
