/* SPDX-License-Identifier: MIT */
/* The file of one run: written line by line, read back whole. Layer: replay. */
#include "replay/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/parse.h"
#include "host/cleanup.h"
#include "host/printable.h"

#define MAGIC "# memguard-replay 1"

/* Columns behind "seconds" and "phase". */
static const struct {
        const char *name;
        size_t offset;
} columns[] = {
        { "anon_bytes", offsetof(struct replay_sample, anon_bytes) },
        { "rss_bytes", offsetof(struct replay_sample, rss_bytes) },
        { "swap_bytes", offsetof(struct replay_sample, swap_bytes) },
        { "live_bytes", offsetof(struct replay_sample, live_bytes) },
        { "told_live_bytes", offsetof(struct replay_sample, told_live_bytes) },
        { "psi_usec", offsetof(struct replay_sample, psi_usec) },
        { "minor_faults", offsetof(struct replay_sample, minor_faults) },
        { "major_faults", offsetof(struct replay_sample, major_faults) },
        { "cpu_usec", offsetof(struct replay_sample, cpu_usec) },
        { "processes", offsetof(struct replay_sample, processes) },
        { "trims", offsetof(struct replay_sample, trims) },
        { "pause_usec", offsetof(struct replay_sample, pause_usec) },
};

static uint64_t *column(struct replay_sample *sample, size_t i) {
        return (uint64_t *) ((char *) sample + columns[i].offset);
}

/* ---- Writing ---- */

static int finish_line(struct csv_writer *writer) {
        if (writer->error == 0 && (fflush(writer->file) != 0 || ferror(writer->file)))
                writer->error = errno > 0 ? -errno : -EIO;
        return writer->error;
}

int csv_create(struct csv_writer *writer, const char *path) {
        MG_CLEANUP(file_closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

        if (fd < 0)
                return -errno;
        *writer = (struct csv_writer){ .file = fdopen(fd, "w") };
        if (!writer->file)
                return -errno;
        (void) MG_TAKE_FD(fd);
        fputs(MAGIC "\n", writer->file);
        return finish_line(writer);
}

int csv_put_value(struct csv_writer *writer, const char *key, const char *value) {
        if (writer->error < 0)
                return writer->error;
        fprintf(writer->file, "# %s=", key);
        for (; *value != '\0'; value++)
                fputc(*value == '\n' || *value == '\r' ? ' ' : *value, writer->file);
        fputc('\n', writer->file);
        return finish_line(writer);
}

int csv_put_number(struct csv_writer *writer, const char *key, uint64_t value) {
        char text[24];

        snprintf(text, sizeof(text), "%" PRIu64, value);
        return csv_put_value(writer, key, text);
}

int csv_put_header(struct csv_writer *writer) {
        if (writer->error < 0)
                return writer->error;
        fputs("seconds,phase", writer->file);
        for (size_t i = 0; i < MG_ELEMENTS(columns); i++)
                fprintf(writer->file, ",%s", columns[i].name);
        fputc('\n', writer->file);
        return finish_line(writer);
}

int csv_put_sample(struct csv_writer *writer, const struct replay_sample *sample) {
        if (writer->error < 0)
                return writer->error;
        fprintf(writer->file, "%" PRIu64 ".%06" PRIu64 ",%s", sample->at_usec / MG_USEC_PER_SEC,
                sample->at_usec % MG_USEC_PER_SEC, phase_to_string(sample->phase));
        for (size_t i = 0; i < MG_ELEMENTS(columns); i++) {
                uint64_t value = *column((struct replay_sample *) sample, i);

                if (value == MG_UNKNOWN)
                        fputc(',', writer->file);
                else
                        fprintf(writer->file, ",%" PRIu64, value);
        }
        fputc('\n', writer->file);
        return finish_line(writer);
}

int csv_close(struct csv_writer *writer) {
        if (!writer->file)
                return writer->error;
        if (fclose(MG_TAKE(writer->file)) != 0 && writer->error == 0)
                writer->error = errno > 0 ? -errno : -EIO;
        return writer->error;
}

/* ---- Reading ---- */

struct reader {
        struct run_file *run;
        size_t capacity;
        size_t column_of[32]; /* what each field of a line is; the file may have others, in another order */
        size_t n_fields; /* 0: no header yet */
};

#define FIELD_SECONDS MG_ELEMENTS(columns)
#define FIELD_PHASE   (FIELD_SECONDS + 1)
#define FIELD_OTHER   (FIELD_SECONDS + 2)

void run_file_done(struct run_file *file) {
        free(file->variant);
        free(file->program);
        free(file->source);
        free(file->end_text);
        free(file->notes);
        free(file->samples);
        *file = (struct run_file){};
}

static int set_text(char **text, const char *value) {
        char *copy = strdup(value);

        if (!copy)
                return -ENOMEM;
        free(*text);
        *text = copy;
        return 0;
}

static int add_note(struct run_file *run, const char *value) {
        char *joined;

        if (asprintf(&joined, "%s%s%s", run->notes ?: "", run->notes ? "\n" : "", value) < 0)
                return -ENOMEM;
        free(run->notes);
        run->notes = joined;
        return 0;
}

static int take_told(struct run_file *run, const char *value) {
        MG_CLEANUP(freep) char *line = NULL;

        if (asprintf(&line, "summary %s", value) < 0)
                return -ENOMEM;
        told_line(&run->told, line);
        return 0;
}

static int take_end(struct run_file *run, const char *value) {
        int end = end_from_string(value);

        if (end < 0)
                return -EBADMSG;
        run->end = (enum replay_end) end;
        return 0;
}

static int take_value(struct run_file *run, const char *key, const char *value) {
        if (mg_streq(key, "variant"))
                return set_text(&run->variant, value);
        if (mg_streq(key, "program"))
                return set_text(&run->program, value);
        if (mg_streq(key, "source"))
                return set_text(&run->source, value);
        if (mg_streq(key, "end_text"))
                return set_text(&run->end_text, value);
        if (mg_streq(key, "note"))
                return add_note(run, value);
        if (mg_streq(key, "told"))
                return take_told(run, value);
        if (mg_streq(key, "end"))
                return take_end(run, value);
        if (mg_streq(key, "round"))
                return parse_u64(value, &run->round);
        if (mg_streq(key, "sequence"))
                return parse_u64(value, &run->sequence);
        if (mg_streq(key, "floor_usec"))
                return parse_u64(value, &run->floor_usec);
        if (mg_streq(key, "oom_usec"))
                return parse_u64(value, &run->oom_usec);
        return 0;
}

static size_t field_from_name(const char *name) {
        if (mg_streq(name, "seconds"))
                return FIELD_SECONDS;
        if (mg_streq(name, "phase"))
                return FIELD_PHASE;
        for (size_t i = 0; i < MG_ELEMENTS(columns); i++)
                if (mg_streq(columns[i].name, name))
                        return i;
        return FIELD_OTHER;
}

/* "# KEY=VALUE"; a comment of another form, or another key, is skipped. Paths and settings may be any bytes. */
static int take_comment(struct run_file *run, char *line) {
        char *key = line + 1 + strspn(line + 1, " ");
        char *value = strchr(key, '=');
        MG_CLEANUP(freep) char *shown = NULL;

        if (!value)
                return 0;
        *value++ = '\0';
        shown = printable_copy(value);
        return shown ? take_value(run, key, shown) : -ENOMEM;
}

static int take_header(struct reader *reader, char *line) {
        bool has_seconds = false;
        char *name;

        while ((name = strsep(&line, ","))) {
                if (reader->n_fields == MG_ELEMENTS(reader->column_of))
                        return -EBADMSG;
                reader->column_of[reader->n_fields] = field_from_name(name);
                has_seconds |= reader->column_of[reader->n_fields++] == FIELD_SECONDS;
        }
        return has_seconds ? 0 : -EBADMSG;
}

/* "12", "12.5": to microseconds. */
static int parse_seconds(const char *text, uint64_t *ret_usec) {
        size_t whole = strcspn(text, ".");
        uint64_t seconds;
        uint64_t fraction = 0;
        size_t digits = 0;

        if (parse_u64_span(text, whole, &seconds) < 0 || seconds > UINT64_MAX / MG_USEC_PER_SEC - 1)
                return -EBADMSG;
        if (text[whole] == '.') {
                digits = strlen(text + whole + 1);
                if (digits > 6 || parse_u64_span(text + whole + 1, digits, &fraction) < 0)
                        return -EBADMSG;
        }
        for (; digits < 6; digits++)
                fraction *= 10;
        *ret_usec = seconds * MG_USEC_PER_SEC + fraction;
        return 0;
}

static int take_field(struct replay_sample *sample, size_t field, const char *text) {
        int phase;

        switch (field) {
        case FIELD_SECONDS:
                return parse_seconds(text, &sample->at_usec);
        case FIELD_PHASE:
                phase = phase_from_string(text);
                if (phase < 0)
                        return -EBADMSG;
                sample->phase = (enum replay_phase) phase;
                return 0;
        case FIELD_OTHER:
                return 0;
        default:
                if (*text != '\0' && parse_u64(text, column(sample, field)) < 0)
                        return -EBADMSG;
                return 0;
        }
}

static int grow(struct reader *reader) {
        size_t capacity = reader->capacity > 0 ? 2 * reader->capacity : 256;
        struct replay_sample *samples;

        if (reader->run->n_samples < reader->capacity)
                return 0;
        samples = reallocarray(reader->run->samples, capacity, sizeof(*samples));
        if (!samples)
                return -ENOMEM;
        reader->run->samples = samples;
        reader->capacity = capacity;
        return 0;
}

static int take_sample(struct reader *reader, char *line) {
        struct replay_sample sample = { .phase = PHASE_LOAD };
        size_t n = 0;
        char *text;
        int r;

        for (size_t i = 0; i < MG_ELEMENTS(columns); i++)
                *column(&sample, i) = MG_UNKNOWN;
        for (; (text = strsep(&line, ",")); n++) {
                if (n >= reader->n_fields)
                        return -EBADMSG;
                r = take_field(&sample, reader->column_of[n], text);
                if (r < 0)
                        return r;
        }
        if (n != reader->n_fields)
                return -EBADMSG;
        r = grow(reader);
        if (r < 0)
                return r;
        reader->run->samples[reader->run->n_samples++] = sample;
        return 0;
}

static int take_line(struct reader *reader, char *line) {
        if (line[0] == '\0')
                return 0;
        if (line[0] == '#')
                return take_comment(reader->run, line);
        return reader->n_fields == 0 ? take_header(reader, line) : take_sample(reader, line);
}

static int read_lines(struct reader *reader, FILE *file, unsigned *ret_line) {
        MG_CLEANUP(freep) char *line = NULL;
        size_t size = 0;
        ssize_t length;

        while ((length = getline(&line, &size, file)) >= 0) {
                bool whole = length > 0 && line[length - 1] == '\n';
                int r;

                ++*ret_line;
                if (strlen(line) != (size_t) length)
                        return -EBADMSG; /* a NUL inside */
                line[strcspn(line, "\r\n")] = '\0';
                if (*ret_line == 1 && !mg_streq(line, MAGIC))
                        return -EBADMSG;
                if (!whole && *ret_line > 1)
                        return 0; /* the writer was stopped within this line */
                r = take_line(reader, line);
                if (r < 0)
                        return r == -ENOMEM ? r : -EBADMSG;
        }
        if (ferror(file))
                return -EIO;
        return *ret_line == 0 || !reader->run->variant ? -EBADMSG : 0;
}

int csv_read(const char *path, struct run_file *ret_file, unsigned *ret_line) {
        struct run_file run = { .floor_usec = MG_USEC_PER_MIN, .round = 1, .oom_usec = MG_UNKNOWN };
        struct reader reader = { .run = &run };
        FILE *file = fopen(path, "re");
        int r;

        *ret_line = 0;
        if (!file)
                return -errno;
        told_init(&run.told);
        r = read_lines(&reader, file, ret_line);
        fclose(file);
        if (r == 0 && run.floor_usec == 0)
                r = -EBADMSG;
        if (r < 0) {
                run_file_done(&run);
                return r;
        }
        *ret_file = run;
        return 0;
}
