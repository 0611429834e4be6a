/* SPDX-License-Identifier: MIT */
/* Moments from text. Layer: ctl. */
#include "ctl/since.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include "base/macros.h"
#include "base/parse.h"

/* Longer than any moment that is written sensibly. */
#define MOMENT_MAX 64

/* Takes END off TEXT, with the blanks before it. */
static bool strip(char *text, const char *end) {
        size_t length = strlen(text), cut = strlen(end);

        if (length <= cut || !mg_streq(text + length - cut, end))
                return false;
        length -= cut;
        while (length > 0 && text[length - 1] == ' ')
                length--;
        text[length] = '\0';
        return true;
}

static int parse_span_ago(const char *text, uint64_t now_usec, uint64_t *ret_usec) {
        uint64_t span_usec;

        int r = parse_duration(text, &span_usec);
        if (r < 0)
                return r;
        *ret_usec = mg_sub_floor(now_usec, span_usec);
        return 0;
}

/* The FORMAT of strptime() over DAY, whose fields it may leave as they are. */
static int parse_date(
                const char *text,
                const char *format,
                const struct tm *day,
                bool utc,
                uint64_t *ret_usec) {
        struct tm fields = *day, asked;

        fields.tm_hour = fields.tm_min = fields.tm_sec = 0;
        fields.tm_isdst = -1;
        const char *end = strptime(text, format, &fields);
        if (!end || *end != '\0')
                return -EINVAL;
        asked = fields;
        time_t at = utc ? timegm(&fields) : mktime(&fields);
        /* The 31st of November is no day, however the C library puts it right. */
        if (at < 0 || fields.tm_mday != asked.tm_mday || fields.tm_mon != asked.tm_mon)
                return -EINVAL;
        *ret_usec = (uint64_t) at * MG_USEC_PER_SEC;
        return 0;
}

static int parse_clock(char *text, uint64_t now_usec, uint64_t *ret_usec) {
        static const char *const formats[] = {
                "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M",
        };
        time_t now = (time_t) (now_usec / MG_USEC_PER_SEC);
        bool utc = strip(text, " UTC");
        struct tm today;

        if (text[0] < '0' || text[0] > '9')
                return -EINVAL; /* strptime() would take blanks */
        if (!(utc ? gmtime_r(&now, &today) : localtime_r(&now, &today)))
                return -EINVAL;
        for (size_t i = 0; i < MG_ELEMENTS(formats); i++)
                if (parse_date(text, formats[i], &today, utc, ret_usec) >= 0)
                        return 0;
        return -EINVAL;
}

static int parse_named_day(const char *text, uint64_t now_usec, uint64_t *ret_usec) {
        time_t now = (time_t) (now_usec / MG_USEC_PER_SEC);
        struct tm day;

        if (!mg_streq(text, "today") && !mg_streq(text, "yesterday"))
                return -EINVAL;
        if (!localtime_r(&now, &day))
                return -EINVAL;
        day.tm_hour = day.tm_min = day.tm_sec = 0;
        day.tm_mday -= mg_streq(text, "yesterday");
        day.tm_isdst = -1;
        time_t at = mktime(&day);
        if (at < 0)
                return -EINVAL;
        *ret_usec = (uint64_t) at * MG_USEC_PER_SEC;
        return 0;
}

static int parse_epoch(const char *text, uint64_t *ret_usec) {
        uint64_t seconds;

        if (parse_u64(text, &seconds) < 0 || seconds > UINT64_MAX / MG_USEC_PER_SEC)
                return -EINVAL;
        *ret_usec = seconds * MG_USEC_PER_SEC;
        return 0;
}

static int parse_moment(char *text, uint64_t now_usec, uint64_t *ret_usec) {
        if (mg_streq(text, "now")) {
                *ret_usec = now_usec;
                return 0;
        }
        if (text[0] == '@')
                return parse_epoch(text + 1, ret_usec);
        if (text[0] == '-')
                return parse_span_ago(text + 1, now_usec, ret_usec);
        if (strip(text, " ago") || parse_span_ago(text, now_usec, ret_usec) >= 0)
                return parse_span_ago(text, now_usec, ret_usec);
        if (parse_named_day(text, now_usec, ret_usec) >= 0)
                return 0;
        return parse_clock(text, now_usec, ret_usec);
}

int since_parse(const char *text, uint64_t now_usec, uint64_t *ret_usec) {
        char moment[MOMENT_MAX];
        uint64_t usec;

        if (strlen(text) >= sizeof(moment))
                return -EINVAL;
        memcpy(moment, text, strlen(text) + 1);
        int r = parse_moment(moment, now_usec, &usec);
        if (r < 0)
                return -EINVAL;
        if (usec > now_usec)
                return -ERANGE;
        *ret_usec = usec;
        return 0;
}
