/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a configuration, gathered so that all of it can be shown at once. Layer: host;
 * never logs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum mg_severity {
        MG_SEVERITY_WARNING, /* goes into force all the same */
        MG_SEVERITY_ERROR,   /* rejects the configuration */
};

struct mg_problem {
        enum mg_severity severity;
        char *file;    /* owned */
        unsigned line; /* 0: the file as a whole */
        char *text; /* owned: "[nginx.service] TrimAbov: unknown key, did you mean TrimAbove=?" */
};

struct mg_problems {
        struct mg_problem *items;
        size_t n_items;
        size_t n_errors;
};

void problems_done(struct mg_problems *problems); /* for MG_CLEANUP too; leaves an empty one */

/* Formats like printf; what is not printable ASCII becomes "?". Out of memory keeps the counts right and drops the text. */
void problems_add(
                struct mg_problems *problems,
                enum mg_severity severity,
                const char *file,
                unsigned line,
                const char *format,
                ...) __attribute__((format(printf, 5, 6)));

/* "/etc/memguard.ini:12: [nginx.service] TrimAbov: ..." into BUFFER, which it returns. */
#define MG_PROBLEM_MAX 5120
const char *problem_format(const struct mg_problem *problem, char buffer[static MG_PROBLEM_MAX]);
