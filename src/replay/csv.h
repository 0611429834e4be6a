/* SPDX-License-Identifier: MIT */
/*
 * The file of one run, which says everything the report needs: lines "# KEY=VALUE", a header, a line a sample, each written out
 * at once, so that whatever ends the harness leaves the samples so far. A number nobody knows is an empty field.
 * Layer: replay.
 */
#pragma once

#include <stdio.h>

#include "replay/sample.h"
#include "replay/told.h"

struct csv_writer {
        FILE *file;
        int error; /* the first one; nothing is written after it */
};

/* Creates PATH, which must not be there yet. */
int csv_create(struct csv_writer *writer, const char *path);
int csv_put_value(struct csv_writer *writer, const char *key, const char *value);
int csv_put_number(struct csv_writer *writer, const char *key, uint64_t value);
int csv_put_header(struct csv_writer *writer);
int csv_put_sample(struct csv_writer *writer, const struct replay_sample *sample);
int csv_close(struct csv_writer *writer); /* the first error of all */

/* One run, read back; its texts are printable UTF-8, whatever the file holds. */
struct run_file {
        char *variant; /* as it was asked for; owned, as all of these */
        char *program;
        char *source;
        char *end_text;
        char *notes; /* one a line; NULL: none */
        uint64_t round;
        uint64_t sequence; /* when it was made, among those of its directory */
        uint64_t floor_usec;
        uint64_t oom_usec;
        enum replay_end end;
        struct told told;
        struct replay_sample *samples;
        size_t n_samples;
};

/* -EBADMSG: not a file of ours (RET_LINE says where); lines cut short at the very end are left out. */
int csv_read(const char *path, struct run_file *ret_file, unsigned *ret_line);
void run_file_done(struct run_file *file);
