/* SPDX-License-Identifier: MIT */
/* Sections that are about units, and what their patterns mean. Layer: host; never logs. */
#include "host/config_section.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "host/nearest_name.h"

static bool is_glob(const char *pattern) {
        return strpbrk(pattern, "*?[") != NULL;
}

/* The end of the bracket expression that starts at OPEN: its "]", or NULL. A "]" right behind the start stands for itself. */
static const char *bracket_end(const char *open) {
        const char *at = open + 1;

        if (*at == '!' || *at == '^')
                at++;
        return *at == '\0' ? NULL : strchr(at + 1, ']');
}

static size_t count_literals(const char *pattern) {
        size_t n = 0;

        for (const char *at = pattern; *at != '\0'; at++) {
                const char *end = *at == '[' ? bracket_end(at) : NULL;
                if (end)
                        at = end;
                else if (*at != '*' && *at != '?')
                        n++;
        }
        return n;
}

static enum mg_pattern_kind kind_of(const char *pattern) {
        if (mg_streq(pattern, "Default"))
                return MG_PATTERN_DEFAULT;
        if (is_glob(pattern))
                return MG_PATTERN_GLOB;
        return pattern[0] == '/' ? MG_PATTERN_PATH : MG_PATTERN_NAME;
}

struct mg_section *section_new(const char *pattern) {
        struct mg_section *section = calloc(1, sizeof(*section));
        if (!section)
                return NULL;
        section->pattern = strdup(pattern);
        if (!section->pattern)
                return section_free(section);
        section->kind = kind_of(pattern);
        section->literals = count_literals(pattern);
        return section;
}

struct mg_section *section_free(struct mg_section *section) {
        if (section) {
                free(section->pattern);
                free(section);
        }
        return NULL;
}

static bool ends_with(const char *name, const char *tail) {
        size_t length = strlen(name), tail_length = strlen(tail);
        return length > tail_length && mg_streq(name + length - tail_length, tail);
}

static bool has_open_bracket(const char *pattern) {
        for (const char *at = strchr(pattern, '['); at; at = strchr(at + 1, '[')) {
                at = bracket_end(at);
                if (!at)
                        return true;
        }
        return false;
}

const char *section_name_problem(const char *name) {
        if (has_open_bracket(name))
                return "expected a \"]\" for each \"[\" of a glob";
        if (name[0] == '/' || is_glob(name))
                return NULL;
        if (ends_with(name, ".slice"))
                return "slices are shown, never judged: expected a unit, or a cgroup path like [/NAME.slice/*]";
        if (ends_with(name, ".service") || ends_with(name, ".scope") || ends_with(name, ".process"))
                return NULL;
        if (name_distance(name, "Default") < MG_NAME_TOO_FAR)
                return "unknown section, did you mean [Default]?";
        if (name_distance(name, "Daemon") < MG_NAME_TOO_FAR)
                return "unknown section, did you mean [Daemon]?";
        return "unknown section: expected Daemon, Default, a name or glob that ends in .service, .scope or .process, or a "
               "cgroup path";
}

bool section_precedes(
                const struct mg_section *a,
                const struct mg_setting *a_setting,
                const struct mg_section *b,
                const struct mg_setting *b_setting) {
        if (a->kind != b->kind)
                return a->kind > b->kind;
        if (a->kind == MG_PATTERN_GLOB && a->literals != b->literals)
                return a->literals > b->literals;
        return a_setting->number > b_setting->number;
}

bool config_pattern_matches(const char *pattern, const char *unit, const char *cgroup_path) {
        const char *subject = pattern[0] == '/' ? cgroup_path : unit;

        if (!subject)
                return false;
        if (!is_glob(pattern))
                return mg_streq(pattern, subject);
        /* A backslash is part of systemd's names ("\x2d"), and a path's "*" goes as deep as there is. */
        return fnmatch(pattern, subject, FNM_NOESCAPE) == 0;
}
