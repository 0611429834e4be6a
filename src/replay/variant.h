/* SPDX-License-Identifier: MIT */
/*
 * Variants: which allocator, with which settings, the same program is run under. NAME[:KEY=VALUE,...], where a KEY
 *
 *   in capitals (MALLOC_ARENA_MAX)      is an environment variable of the program
 *   in lower case (library, arena-max)  is one of the table in variant.c
 *   in both (TrimAbove, IntervalSec)    is a key of memguard.ini(5), for variants with the agent
 *
 * and what follows a comma without a "=" belongs to the value before it. Layer: replay.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARIANT_SETTINGS_MAX 24

struct variant {
        char *settings;                          /* as it was asked for */
        char *text;                              /* what it is called: the same, or its name= */
        char *label;                             /* the same, fit for a file's name */
        char *environment[VARIANT_SETTINGS_MAX]; /* NAME=VALUE */
        size_t n_environment;
        char *ini[VARIANT_SETTINGS_MAX]; /* KEY=VALUE for the private daemon */
        size_t n_ini;
        char *ini_file;           /* instead of these; NULL: none */
        char *library;            /* to be preloaded, a path; NULL: none */
        const char *wants;        /* the library's name, until it is found */
        const char *package;      /* the Debian package that has it */
        uint64_t trim_every_usec; /* 0: no blind trims */
        bool has_agent;
};

/* -EINVAL with a message in *RET_MESSAGE (the caller frees it), or -ENOMEM. */
int variant_parse(const char *text, struct variant *ret_variant, char **ret_message);
void variant_done(struct variant *variant);

/* Looks for the library that the variant wants. -ENOENT: it is not installed here. */
int variant_find_library(struct variant *variant);

/* For --help and messages: name and description of each, until NULL. */
const char *variant_name(size_t i);
const char *variant_help(size_t i);
