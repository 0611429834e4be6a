/* SPDX-License-Identifier: MIT */
/* See meminfo.h. Layer: host. */
#include "host/meminfo.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/parse.h"

/* "KEY:   123 kB" */
static uint64_t parse_line(const char *line, const char *key) {
        size_t length = strlen(key);
        uint64_t kib;

        if (strncmp(line, key, length) != 0 || line[length] != ':')
                return MG_UNKNOWN;
        line += length + 1;
        line += strspn(line, " ");
        size_t digits = strspn(line, "0123456789");
        if (parse_u64_span(line, digits, &kib) < 0 || strncmp(line + digits, " kB\n", 4) != 0)
                return MG_UNKNOWN;
        return mg_scale(kib, MG_KIB, 1);
}

static uint64_t find(const char *text, const char *key) {
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                uint64_t bytes = parse_line(line, key);
                if (bytes != MG_UNKNOWN)
                        return bytes;
        }
        return MG_UNKNOWN;
}

int meminfo_parse(const char *text, uint64_t *ret_total_bytes, uint64_t *ret_available_bytes) {
        uint64_t total = find(text, "MemTotal");
        uint64_t available = find(text, "MemAvailable");

        if (total == MG_UNKNOWN || available == MG_UNKNOWN || available > total)
                return -EINVAL;
        *ret_total_bytes = total;
        *ret_available_bytes = available;
        return 0;
}
