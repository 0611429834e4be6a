/* SPDX-License-Identifier: MIT */
/*
 * One section of memguard.ini that is about units: its pattern, what it sets and where. Layer: host; never logs.
 */
#pragma once

#include "host/config.h"

/* From the least specific to the most. */
enum mg_pattern_kind {
        MG_PATTERN_DEFAULT, /* [Default] */
        MG_PATTERN_GLOB,    /* of names or of paths */
        MG_PATTERN_PATH,    /* a cgroup path to the letter */
        MG_PATTERN_NAME,    /* a unit's name to the letter */
};

/* Where something was said; numbers grow over all files in order of precedence. */
struct mg_setting {
        const char *file; /* the config's */
        unsigned line;
        unsigned number; /* 0: not set */
};

struct mg_section {
        char *pattern; /* owned */
        enum mg_pattern_kind kind;
        size_t literals; /* of a glob: characters that stand for themselves */
        struct mg_setting header;
        struct mg_setting set[_MG_UNIT_KEY_MAX];
        struct mg_unit_config values; /* only the keys that are set mean anything */
};

/* NULL: out of memory. */
struct mg_section *section_new(const char *pattern);
struct mg_section *section_free(struct mg_section *section);

/* Why NAME cannot be a section, or NULL: it can. */
const char *section_name_problem(const char *name);

/* Whether what A says at A_SETTING goes before what B says at B_SETTING. */
bool section_precedes(
                const struct mg_section *a,
                const struct mg_setting *a_setting,
                const struct mg_section *b,
                const struct mg_setting *b_setting);
