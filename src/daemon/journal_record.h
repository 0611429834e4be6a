/* SPDX-License-Identifier: MIT */
/*
 * One journal entry, and the way it leaves the daemon: journald's own datagram protocol when stderr is connected to the
 * journal (as $JOURNAL_STREAM tells), else lines with <N> prefixes on stderr. Layer: daemon.
 *
 * Not sd_journal_sendv(): that one waits for ever on a journald that has stopped reading, and the daemon would stand
 * still with it. Here nothing waits, allocates or fails: what cannot be handed over at once is dropped and counted, and
 * the next entry that gets through is followed by the count.
 *
 * Values come from cgroup and process names, which anyone may choose: control characters become '?', so that nobody
 * forges a field, a line or a terminal's escape sequence.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

#include "base/macros.h"
#include "base/text.h"

/* What journald and a pipe's PIPE_BUF take in one piece: one datagram, one write. */
#define MG_RECORD_MAX  8192
#define MG_MESSAGE_MAX 3072

enum mg_log_target {
        MG_LOG_TARGET_AUTO, /* the journal if stderr leads there, else stderr */
        MG_LOG_TARGET_JOURNAL,
        MG_LOG_TARGET_CONSOLE, /* stderr */
        MG_LOG_TARGET_NULL,
        _MG_LOG_TARGET_MAX,
};

const char *log_target_to_string(enum mg_log_target target);
int log_target_from_string(const char *name); /* enum mg_log_target or -EINVAL */

const char *log_level_to_string(int level); /* syslog's: "err", "warning", "debug" ... */
int log_level_from_string(
                const char *name); /* LOG_EMERG ... LOG_DEBUG, "error" and "warn" too, or -EINVAL */

/* Where entries go. Embedded by struct mg_journal. */
struct mg_sink {
        int socket_fd; /* -EBADF: no journal */
        int stderr_fd;
        enum mg_log_target target;
        bool stderr_is_journal;
        uint64_t lost; /* since the last entry that got through */
        const char *identifier;
        const char *socket_path; /* journald's, but for the tests */
};

void sink_init(struct mg_sink *sink, const char *identifier);
void sink_done(struct mg_sink *sink);
void sink_set_target(struct mg_sink *sink, enum mg_log_target target);
bool sink_uses_journal(const struct mg_sink *sink);

/* $JOURNAL_STREAM ("DEVICE:INODE") against what FD is. */
bool stream_is_journal(const char *journal_stream, int fd);

struct mg_record {
        int level;
        struct mg_text fields;  /* in journald's format, MESSAGE= not yet in it */
        struct mg_text message; /* for people */
        char fields_buffer[MG_RECORD_MAX];
        char message_buffer[MG_MESSAGE_MAX];
};

/* MESSAGE_ID may be NULL. */
void record_init(struct mg_record *record, int level, const char *message_id);

/* A field that does not fit is left out whole; NULL and MG_UNKNOWN are left out. KEY is a literal. */
void record_string(struct mg_record *record, const char *key, const char *value);
void record_u64(struct mg_record *record, const char *key, uint64_t value);
void record_i64(struct mg_record *record, const char *key, int64_t value);

/* Appends to the MESSAGE. Control characters, line ends too, become '?'. */
void record_say(struct mg_record *record, const char *format, ...) MG_PRINTF(2, 3);
void record_say_va(struct mg_record *record, const char *format, va_list arguments) MG_PRINTF(2, 0);
void record_say_next_line(struct mg_record *record);
void record_say_size(struct mg_record *record, uint64_t bytes);
void record_say_duration(struct mg_record *record, uint64_t usec);

void sink_send(struct mg_sink *sink, struct mg_record *record);
