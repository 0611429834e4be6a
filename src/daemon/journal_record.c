/* SPDX-License-Identifier: MIT */
/* Journal entries: building one, and handing it over without ever waiting. Layer: daemon. */
#include "daemon/journal_record.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* ---- names ---- */

static const char *const target_names[] = {
        [MG_LOG_TARGET_AUTO] = "auto",
        [MG_LOG_TARGET_JOURNAL] = "journal",
        [MG_LOG_TARGET_CONSOLE] = "console",
        [MG_LOG_TARGET_NULL] = "null",
};
_Static_assert(MG_ELEMENTS(target_names) == _MG_LOG_TARGET_MAX, "a target without a name");

const char *log_target_to_string(enum mg_log_target target) {
        return target_names[target];
}

int log_target_from_string(const char *name) {
        for (size_t i = 0; i < MG_ELEMENTS(target_names); i++)
                if (mg_streq(name, target_names[i]))
                        return (int) i;
        return -EINVAL;
}

static const char *const level_names[] = {
        [LOG_EMERG] = "emerg", [LOG_ALERT] = "alert",     [LOG_CRIT] = "crit",
        [LOG_ERR] = "err",     [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
        [LOG_INFO] = "info",   [LOG_DEBUG] = "debug",
};

const char *log_level_to_string(int level) {
        return level_names[level & LOG_PRIMASK];
}

int log_level_from_string(const char *name) {
        for (size_t i = 0; i < MG_ELEMENTS(level_names); i++)
                if (mg_streq(name, level_names[i]))
                        return (int) i;
        if (mg_streq(name, "error"))
                return LOG_ERR;
        if (mg_streq(name, "warn"))
                return LOG_WARNING;
        return -EINVAL;
}

/* ---- the entry ---- */

void record_init(struct mg_record *record, int level, const char *message_id) {
        record->level = level;
        text_init(&record->fields, record->fields_buffer, sizeof(record->fields_buffer));
        text_init(&record->message, record->message_buffer, sizeof(record->message_buffer));
        record_string(record, "MESSAGE_ID", message_id);
        record_u64(record, "PRIORITY", (uint64_t) level);
}

static void put_clean(struct mg_text *text, const char *value) {
        for (; *value; value++) {
                unsigned char c = (unsigned char) *value;
                text_put_char(text, c < 0x20 || c == 0x7f ? '?' : *value);
        }
}

void record_string(struct mg_record *record, const char *key, const char *value) {
        struct mg_text *fields = &record->fields;
        struct mg_text before = *fields;

        if (!value)
                return;
        text_put(fields, key);
        text_put_char(fields, '=');
        put_clean(fields, value);
        text_put_char(fields, '\n');
        if (fields->overflow) {
                *fields = before;
                fields->buffer[fields->length] = '\0';
        }
}

void record_u64(struct mg_record *record, const char *key, uint64_t value) {
        char digits[24];

        if (value == MG_UNKNOWN)
                return;
        snprintf(digits, sizeof(digits), "%" PRIu64, value);
        record_string(record, key, digits);
}

void record_i64(struct mg_record *record, const char *key, int64_t value) {
        char digits[24];

        snprintf(digits, sizeof(digits), "%" PRId64, value);
        record_string(record, key, digits);
}

void record_say_va(struct mg_record *record, const char *format, va_list arguments) {
        char piece[MG_MESSAGE_MAX];

        if (vsnprintf(piece, sizeof(piece), format, arguments) > 0)
                put_clean(&record->message, piece);
}

void record_say(struct mg_record *record, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        record_say_va(record, format, arguments);
        va_end(arguments);
}

void record_say_next_line(struct mg_record *record) {
        text_put_char(&record->message, '\n');
}

void record_say_size(struct mg_record *record, uint64_t bytes) {
        text_put_size(&record->message, bytes);
}

void record_say_duration(struct mg_record *record, uint64_t usec) {
        text_put_duration(&record->message, usec);
}

/* ---- the way out ---- */

bool stream_is_journal(const char *journal_stream, int fd) {
        unsigned long long device, inode;
        struct stat st;
        int end = 0;

        if (!journal_stream || sscanf(journal_stream, "%llu:%llu%n", &device, &inode, &end) != 2)
                return false;
        if (journal_stream[end] != '\0' || fstat(fd, &st) < 0)
                return false;
        return st.st_dev == (dev_t) device && st.st_ino == (ino_t) inode;
}

void sink_init(struct mg_sink *sink, const char *identifier) {
        *sink = (struct mg_sink){
                .socket_fd = -EBADF,
                .stderr_fd = STDERR_FILENO,
                .identifier = identifier,
                .socket_path = JOURNAL_SOCKET,
                .stderr_is_journal = stream_is_journal(getenv("JOURNAL_STREAM"), STDERR_FILENO),
        };
}

void sink_done(struct mg_sink *sink) {
        file_closep(&sink->socket_fd);
}

void sink_set_target(struct mg_sink *sink, enum mg_log_target target) {
        sink->target = target;
}

bool sink_uses_journal(const struct mg_sink *sink) {
        return sink->target == MG_LOG_TARGET_JOURNAL ||
               (sink->target == MG_LOG_TARGET_AUTO && sink->stderr_is_journal);
}

/* The MESSAGE in the form that may hold line ends: KEY, line end, 64 bits of length, bytes, line end. */
static size_t message_parts(
                const struct mg_record *record,
                uint64_t *length,
                struct iovec parts[static 5]) {
        *length = htole64(record->message.length);
        parts[0] = (struct iovec){ (char *) record->fields_buffer, record->fields.length };
        parts[1] = (struct iovec){ (char *) "MESSAGE\n", strlen("MESSAGE\n") };
        parts[2] = (struct iovec){ length, sizeof(*length) };
        parts[3] = (struct iovec){ (char *) record->message_buffer, record->message.length };
        parts[4] = (struct iovec){ (char *) "\n", 1 };
        return 5;
}

static int send_to_journal(struct mg_sink *sink, const struct mg_record *record) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct iovec parts[5];
        uint64_t length;
        struct msghdr message = {
                .msg_name = &address,
                .msg_namelen = sizeof(address),
                .msg_iov = parts,
                .msg_iovlen = message_parts(record, &length, parts),
        };

        if (sink->socket_fd < 0)
                sink->socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (sink->socket_fd < 0)
                return -errno;
        /* Addressed each time instead of connected once, so that a restarted journald is found again. */
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", sink->socket_path);
        for (int attempt = 0; attempt < 3; attempt++) {
                if (sendmsg(sink->socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                        return 0;
                if (errno != EINTR)
                        break;
        }
        return -errno;
}

/* A pipe, terminal or file that poll() calls writable takes PIPE_BUF bytes without waiting. */
static int write_now(int fd, const char *bytes, size_t length) {
        struct pollfd pollfd = { .fd = fd, .events = POLLOUT };

        if (poll(&pollfd, 1, 0) != 1 || (pollfd.revents & POLLOUT) == 0 ||
            (pollfd.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0)
                return -EAGAIN;
        return write(fd, bytes, length) == (ssize_t) length ? 0 : -EIO;
}

static int write_to_stderr(struct mg_sink *sink, const struct mg_record *record) {
        char buffer[MG_MESSAGE_MAX + 1024];
        struct mg_text lines;
        const char *rest = record->message_buffer;

        text_init(&lines, buffer, sizeof(buffer));
        for (;;) {
                size_t length = strcspn(rest, "\n");

                text_put_char(&lines, '<');
                text_put_u64(&lines, (uint64_t) record->level);
                text_put_char(&lines, '>');
                text_put_span(&lines, rest, length);
                text_put_char(&lines, '\n');
                rest += length;
                if (*rest == '\0')
                        break;
                rest++;
        }
        if (lines.overflow)
                buffer[lines.length - 1] = '\n';
        return write_now(sink->stderr_fd, buffer, lines.length);
}

static int send_once(struct mg_sink *sink, struct mg_record *record) {
        if (sink->target == MG_LOG_TARGET_NULL)
                return 0;
        if (!sink_uses_journal(sink))
                return write_to_stderr(sink, record);
        record_string(record, "SYSLOG_IDENTIFIER", sink->identifier);
        return send_to_journal(sink, record);
}

static void tell_lost(struct mg_sink *sink) {
        struct mg_record record;
        uint64_t lost = sink->lost;

        record_init(&record, LOG_WARNING, NULL);
        record_say(&record, "%" PRIu64 " log messages were lost: the journal did not take them",
                   lost);
        if (send_once(sink, &record) >= 0)
                sink->lost = 0;
}

void sink_send(struct mg_sink *sink, struct mg_record *record) {
        if (send_once(sink, record) < 0)
                sink->lost++;
        else if (sink->lost > 0)
                tell_lost(sink);
}
