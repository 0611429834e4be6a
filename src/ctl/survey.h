/* SPDX-License-Identifier: MIT */
/*
 * survey: what every unit of the host looks like from outside, without an agent and without memguardd, and which of them
 * would profit from one. Layer: ctl. Gathering reads /proc and the cgroups; judging is pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/macros.h"
#include "host/unit_name.h"

struct survey_unit {
        char name[MG_UNIT_NAME_MAX];
        char *path; /* owned; of its cgroup, NULL: processes outside every unit, told apart by user and executable */
        bool user;           /* of a user manager */
        uint64_t anon_bytes; /* of the cgroup where it tells, else its processes' sum */
        uint32_t processes;
        uint32_t unreadable; /* of these: their maps may not be read */
        uint32_t agents;     /* of these: with an agent in them */
        uint32_t threads;
        uint32_t arena_heaps; /* see struct mg_maps */
        uint32_t allocators;  /* of 1 << enum mg_allocator */
        bool is_static;       /* its largest process's program is */
        pid_t largest_pid;
        uint64_t largest_bytes;
};

struct survey {
        struct survey_unit *units;
        size_t n;
};

/* CGROUP_ROOT: where cgroup v2 is, or NULL. Returns 0 or -errno. */
int survey_gather(const char *proc_root, const char *cgroup_root, struct survey *ret_survey);
void survey_done(struct survey *survey); /* for MG_CLEANUP too */

/* From the most to the least that an agent would bring. */
enum survey_profit {
        SURVEY_LIKELY,
        SURVEY_POSSIBLE,
        SURVEY_UNLIKELY,
        SURVEY_NO,
        SURVEY_UNKNOWN, /* its processes may not be looked at */
        SURVEY_HAS_AGENT,
        _SURVEY_PROFIT_MAX,
};

const char *survey_profit_to_string(enum survey_profit profit); /* "likely" */

/* *RET_REASON: a few words for an operator. */
enum survey_profit survey_judge(const struct survey_unit *unit, const char **ret_reason);

/* Best candidates first: by profit, then by anonymous memory. */
void survey_rank(struct survey *survey);

/* The unit as --json shows it; NULL: no memory. */
json_t *survey_row(const struct survey_unit *unit);
