/* SPDX-License-Identifier: MIT */
/* The kinds of value that memguard.ini has. Layer: host; pure. */
#include "host/config_values.h"

#include <errno.h>
#include <stdbool.h>
#include <syslog.h>

#include "base/macros.h"
#include "base/parse.h"
#include "core/unit_config.h"

/* A line has at most 199 bytes, and so has each word of a value. */
#define WORD_MAX 200

static const char *const level_names[] = {
        [LOG_EMERG] = "emerg", [LOG_ALERT] = "alert",     [LOG_CRIT] = "crit",
        [LOG_ERR] = "err",     [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
        [LOG_INFO] = "info",   [LOG_DEBUG] = "debug",
};

/* The next blank-separated word of *AT: 1, 0 at the end, -EINVAL for one that is too long. */
static int take_word(const char **at, char word[WORD_MAX]) {
        *at += strspn(*at, " \t");
        size_t length = strcspn(*at, " \t");
        if (length == 0)
                return 0;
        if (length >= WORD_MAX)
                return -EINVAL;
        memcpy(word, *at, length);
        word[length] = '\0';
        *at += length;
        return 1;
}

/* The largest unit that leaves no rest. */
static void write_exact(
                struct mg_text *text,
                uint64_t value,
                const uint64_t *factors,
                const char *const *names,
                size_t n) {
        size_t i = 0;
        while (i + 1 < n && (value < factors[i] || value % factors[i] != 0))
                i++;
        text_put_u64(text, value / factors[i]);
        text_put(text, names[i]);
}

static int read_bool(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        int r = parse_boolean(value);
        if (r < 0)
                return -EINVAL;
        *(bool *) field = r;
        return 0;
}

static void write_bool(struct mg_text *text, const void *field) {
        text_put(text, *(const bool *) field ? "yes" : "no");
}

static int read_tristate(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        enum mg_tristate *tristate = field;
        int r = parse_boolean(value);

        if (value[0] != '\0' && r < 0)
                return -EINVAL;
        *tristate = value[0] == '\0' ? MG_LEAVE_ALONE : (r ? MG_YES : MG_NO);
        return 0;
}

static void write_tristate(struct mg_text *text, const void *field) {
        enum mg_tristate tristate = *(const enum mg_tristate *) field;
        if (tristate != MG_LEAVE_ALONE)
                text_put(text, tristate == MG_YES ? "yes" : "no");
}

static int read_mode(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        int mode = mode_from_string(value);
        if (mode < 0)
                return -EINVAL;
        *(enum mg_mode *) field = (enum mg_mode) mode;
        return 0;
}

static void write_mode(struct mg_text *text, const void *field) {
        text_put(text, mode_to_string(*(const enum mg_mode *) field));
}

static int read_when(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        uint32_t when = 0;
        char word[WORD_MAX];
        int r;

        while ((r = take_word(&value, word)) > 0) {
                int bit = when_from_string(word);
                if (bit < 0)
                        return -EINVAL;
                when |= (uint32_t) bit;
        }
        /* "any" beside another word says two things at once. */
        if (r < 0 || when == 0 || ((when & MG_WHEN_ANY) && when != MG_WHEN_ANY))
                return -EINVAL;
        *(uint32_t *) field = when;
        return 0;
}

static void write_when(struct mg_text *text, const void *field) {
        char buffer[MG_WHEN_TEXT_MAX];
        text_put(text, when_to_string(*(const uint32_t *) field, buffer));
}

static int read_count(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        uint64_t count;
        if (parse_u64(value, &count) < 0 || count < minimum || count > maximum)
                return -EINVAL;
        *(uint32_t *) field = (uint32_t) count;
        return 0;
}

static void write_count(struct mg_text *text, const void *field) {
        text_put_u64(text, *(const uint32_t *) field);
}

static int read_percent(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        uint32_t permyriad;
        if (parse_percent(value, &permyriad) < 0 || permyriad < minimum || permyriad > maximum)
                return -EINVAL;
        *(uint32_t *) field = permyriad;
        return 0;
}

static void write_percent(struct mg_text *text, const void *field) {
        uint32_t permyriad = *(const uint32_t *) field, hundredths = permyriad % 100;

        text_put_u64(text, permyriad / 100);
        if (hundredths > 0) {
                text_put_char(text, '.');
                text_put_u64(text, hundredths / 10);
                if (hundredths % 10 > 0)
                        text_put_u64(text, hundredths % 10);
        }
        text_put_char(text, '%');
}

static int read_size(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        uint64_t bytes;
        if (parse_size(value, &bytes) < 0 || bytes < minimum || bytes > maximum)
                return -EINVAL;
        *(uint64_t *) field = bytes;
        return 0;
}

static void write_size(struct mg_text *text, const void *field) {
        static const uint64_t factors[] = { MG_GIB * 1024, MG_GIB, MG_MIB, MG_KIB, 1 };
        static const char *const names[] = { "T", "G", "M", "K", "" };
        write_exact(text, *(const uint64_t *) field, factors, names, MG_ELEMENTS(factors));
}

static int read_duration(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        uint64_t usec;
        if (parse_duration(value, &usec) < 0 || usec < minimum || usec > maximum)
                return -EINVAL;
        *(uint64_t *) field = usec;
        return 0;
}

static void write_duration(struct mg_text *text, const void *field) {
        static const uint64_t factors[] = {
                24 * MG_USEC_PER_HOUR, MG_USEC_PER_HOUR, MG_USEC_PER_MIN,
                MG_USEC_PER_SEC,       MG_USEC_PER_MSEC, 1,
        };
        static const char *const names[] = { "d", "h", "min", "s", "ms", "us" };
        write_exact(text, *(const uint64_t *) field, factors, names, MG_ELEMENTS(factors));
}

/* "MaxPause=50" would be 50 seconds, and nobody means that. */
static int read_pause(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        if (value[strspn(value, "0123456789.")] == '\0')
                return -EINVAL;
        return read_duration(value, minimum, maximum, field);
}

static int read_threshold(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        struct mg_threshold threshold = {}, *ret = field;
        bool has_bytes = false, has_share = false;
        char word[WORD_MAX];
        int r;

        while ((r = take_word(&value, word)) > 0) {
                if (!has_share && parse_percent(word, &threshold.permyriad) == 0)
                        has_share = true;
                else if (!has_bytes && parse_size(word, &threshold.bytes) == 0)
                        has_bytes = true;
                else
                        return -EINVAL;
        }
        if (r < 0 || (!has_bytes && !has_share))
                return -EINVAL;
        /* Member by member: behind the last one lies somebody else's. */
        ret->bytes = threshold.bytes;
        ret->permyriad = threshold.permyriad;
        return 0;
}

static void write_threshold(struct mg_text *text, const void *field) {
        const struct mg_threshold *threshold = field;

        if (threshold->bytes > 0 || threshold->permyriad == 0)
                write_size(text, &threshold->bytes);
        if (threshold->bytes > 0 && threshold->permyriad > 0)
                text_put_char(text, ' ');
        if (threshold->permyriad > 0)
                write_percent(text, &threshold->permyriad);
}

static int read_log_level(const char *value, uint64_t minimum, uint64_t maximum, void *field) {
        for (int level = 0; level < (int) MG_ELEMENTS(level_names); level++)
                if (mg_streq(level_names[level], value) ||
                    (value[0] == '0' + level && value[1] == '\0')) {
                        *(int *) field = level;
                        return 0;
                }
        return -EINVAL;
}

static void write_log_level(struct mg_text *text, const void *field) {
        text_put(text, level_names[*(const int *) field]);
}

const struct mg_value_kind value_bool = { read_bool, write_bool };
const struct mg_value_kind value_tristate = { read_tristate, write_tristate };
const struct mg_value_kind value_mode = { read_mode, write_mode };
const struct mg_value_kind value_when = { read_when, write_when };
const struct mg_value_kind value_count = { read_count, write_count };
const struct mg_value_kind value_percent = { read_percent, write_percent };
const struct mg_value_kind value_size = { read_size, write_size };
const struct mg_value_kind value_duration = { read_duration, write_duration };
const struct mg_value_kind value_pause = { read_pause, write_duration };
const struct mg_value_kind value_threshold = { read_threshold, write_threshold };
const struct mg_value_kind value_log_level = { read_log_level, write_log_level };
