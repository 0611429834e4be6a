/* SPDX-License-Identifier: MIT */
/*
 * Which files make up the configuration, with systemd's precedence, and their text. Layer: host; never logs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/problems.h"

struct mg_config_files {
        char **paths; /* owned, lowest precedence first; all of them could be opened when they were looked for */
        size_t n_paths;
};

/*
 * The main file, if there is one, then the drop-ins by name. FILE and ROOT are config_load()'s. What is in the way (a missing named
 * FILE, a directory nobody may read) goes into PROBLEMS. Returns 0 or -ENOMEM.
 */
int config_files_find(
                const char *file,
                const char *root,
                struct mg_config_files *ret_files,
                struct mg_problems *problems);
int config_files_add(struct mg_config_files *files, const char *path); /* 0 or -ENOMEM */
void config_files_done(struct mg_config_files *files);                 /* for MG_CLEANUP too */

/* PATH whole, with a NUL behind it (it may hold others). Returns 0 or -errno: -EFBIG, -EISDIR, -ENOTSUP for what is no file. */
int config_file_read(const char *path, char **ret_text, size_t *ret_length);

/* What config_file_read() returned, in words that follow "cannot be read: ". */
const char *config_file_error(int error);

/* "/etc/memguard.ini", as this build has it. */
const char *config_main_file(void);
