/* SPDX-License-Identifier: MIT */
/*
 * One ini file, strictly: inih splits "key = value ; comment"; what it would guess at, cut or join is refused before it sees
 * the line. Layer: host; pure (a fuzz target); never logs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/problems.h"

/* inih's own limit: what is longer it would take for two lines. */
#define MG_INI_LINE_MAX 199

struct mg_ini_handler {
        /* A header. False: the section is not known, its keys are passed over (the handler has reported it). */
        bool (*section)(void *userdata, unsigned line, const char *section);
        void (*key)(void *userdata,
                    unsigned line,
                    const char *section,
                    const char *key,
                    const char *value);
        void *userdata;
};

/* Everything wrong goes into PROBLEMS under FILE's name. Returns 0 or -ENOMEM. */
int ini_read(const char *file,
             const char *text,
             size_t length,
             const struct mg_ini_handler *handler,
             struct mg_problems *problems);
