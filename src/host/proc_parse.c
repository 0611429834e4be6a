/* SPDX-License-Identifier: MIT */
/* The texts of stat and cgroup below /proc/PID. Layer: host; pure. */
#include "host/proc.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/parse.h"

/* Field NUMBER (from 1, as proc(5) counts) of a stat line; only those behind the comm. */
static int stat_field(const char *stat_text, unsigned number, uint64_t *ret_value) {
        const char *at = strrchr(stat_text, ')');
        if (!at || at[1] != ' ')
                return -EBADMSG;
        at += 2;
        for (unsigned field = 3; field < number; field++) {
                at += strcspn(at, " \n");
                if (*at != ' ')
                        return -EBADMSG;
                at++;
        }
        return parse_u64_span(at, strcspn(at, " \n"), ret_value) < 0 ? -EBADMSG : 0;
}

int proc_stat_parse_start_time(const char *stat_text, uint64_t *ret_start_time) {
        return stat_field(stat_text, 22, ret_start_time);
}

int proc_stat_parse_cpu_ticks(const char *stat_text, uint64_t *ret_ticks) {
        uint64_t user, system;

        int r = stat_field(stat_text, 14, &user);
        if (r < 0)
                return r;
        r = stat_field(stat_text, 15, &system);
        if (r < 0)
                return r;
        *ret_ticks = mg_add_cap(user, system);
        return 0;
}

struct path_span {
        const char *path;
        size_t length;
};

/* The path of the line "ID:CONTROLLERS:PATH" when its head is HEAD; a v1 line's id may be any number. */
static bool match_line(const char *line, size_t length, const char *head, struct path_span *ret) {
        const char *colon = memchr(line, ':', length);
        size_t head_length = strlen(head);

        if (head[0] == ':') {
                if (!colon)
                        return false;
                length -= (size_t) (colon - line);
                line = colon;
        }
        if (length <= head_length || memcmp(line, head, head_length) != 0 ||
            line[head_length] != '/')
                return false;
        *ret = (struct path_span){ line + head_length, length - head_length };
        return true;
}

int proc_cgroup_parse(const char *cgroup_text, char *ret_path, size_t size) {
        static const char deleted[] = " (deleted)";
        struct path_span unified = { "/", 1 }, systemd = { "/", 1 };

        for (const char *line = cgroup_text; *line != '\0';) {
                size_t length = strcspn(line, "\n");
                if (!match_line(line, length, "0::", &unified))
                        match_line(line, length, ":name=systemd:", &systemd);
                line += length + (line[length] == '\n');
        }
        struct path_span found = unified.length > 1 ? unified : systemd;
        size_t tail = strlen(deleted);
        if (found.length > tail && memcmp(found.path + found.length - tail, deleted, tail) == 0)
                return -ESRCH;
        if (found.length >= size)
                return -ENAMETOOLONG;
        memcpy(ret_path, found.path, found.length);
        ret_path[found.length] = '\0';
        return 0;
}
