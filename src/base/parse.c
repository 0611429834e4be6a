/* SPDX-License-Identifier: MIT */
/* Strict parsers of numbers, sizes, shares, times and booleans. Layer: base; pure. */
#include "base/parse.h"

#include <errno.h>
#include <stdbool.h>

#include "base/macros.h"

/* Six decimals are kept of a fraction: enough for microseconds and for bytes of a "1.5T". */
#define FRACTION_SCALE UINT64_C(1000000)

struct unit_name {
        const char *name;
        uint64_t factor;
};

static const struct unit_name size_units[] = {
        { "", 1 },
        { "B", 1 },
        { "K", MG_KIB },
        { "KB", MG_KIB },
        { "M", MG_MIB },
        { "MB", MG_MIB },
        { "G", MG_GIB },
        { "GB", MG_GIB },
        { "T", MG_GIB * 1024 },
        { "TB", MG_GIB * 1024 },
};

static const struct unit_name time_units[] = {
        { "us", 1 },
        { "usec", 1 },
        { "ms", MG_USEC_PER_MSEC },
        { "msec", MG_USEC_PER_MSEC },
        { "", MG_USEC_PER_SEC },
        { "s", MG_USEC_PER_SEC },
        { "sec", MG_USEC_PER_SEC },
        { "second", MG_USEC_PER_SEC },
        { "seconds", MG_USEC_PER_SEC },
        { "m", MG_USEC_PER_MIN },
        { "min", MG_USEC_PER_MIN },
        { "minute", MG_USEC_PER_MIN },
        { "minutes", MG_USEC_PER_MIN },
        { "h", MG_USEC_PER_HOUR },
        { "hr", MG_USEC_PER_HOUR },
        { "hour", MG_USEC_PER_HOUR },
        { "hours", MG_USEC_PER_HOUR },
        { "d", 24 * MG_USEC_PER_HOUR },
        { "day", 24 * MG_USEC_PER_HOUR },
        { "days", 24 * MG_USEC_PER_HOUR },
        { "w", 7 * 24 * MG_USEC_PER_HOUR },
        { "week", 7 * 24 * MG_USEC_PER_HOUR },
        { "weeks", 7 * 24 * MG_USEC_PER_HOUR },
};

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char lower(char c) {
        return c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

static size_t count_digits(const char *text) {
        size_t n = 0;
        while (is_digit(text[n]))
                n++;
        return n;
}

static bool equals_span(const char *name, const char *text, size_t length, bool any_case) {
        for (size_t i = 0; i < length; i++) {
                char c = any_case ? lower(text[i]) : text[i];
                if (name[i] == '\0' || (any_case ? lower(name[i]) : name[i]) != c)
                        return false;
        }
        return name[length] == '\0';
}

static const struct unit_name *find_unit(
                const struct unit_name *units,
                size_t n_units,
                const char *text,
                size_t length,
                bool any_case) {
        for (size_t i = 0; i < n_units; i++)
                if (equals_span(units[i].name, text, length, any_case))
                        return &units[i];
        return NULL;
}

/* Reads "12" or "12.5" at *TEXT and moves it behind: whole part and millionths. */
static int take_decimal(const char **text, uint64_t *ret_whole, uint64_t *ret_millionths) {
        const char *at = *text;
        size_t digits = count_digits(at);
        uint64_t whole, millionths = 0;

        int r = parse_u64_span(at, digits, &whole);
        if (r < 0)
                return r;
        at += digits;
        if (*at == '.') {
                at++;
                if (!is_digit(*at))
                        return -EINVAL;
                for (uint64_t place = FRACTION_SCALE / 10; is_digit(*at); at++, place /= 10)
                        millionths += place * (uint64_t) (*at - '0');
        }
        *text = at;
        *ret_whole = whole;
        *ret_millionths = millionths;
        return 0;
}

static int multiply(uint64_t whole, uint64_t millionths, uint64_t factor, uint64_t *ret_product) {
        uint64_t product;

        if (factor == 1 && millionths > 0)
                return -EINVAL; /* part of a byte or of a microsecond */
        if (__builtin_mul_overflow(whole, factor, &product) ||
            __builtin_add_overflow(
                            product, mg_scale(millionths, factor, FRACTION_SCALE), &product) ||
            product == MG_UNKNOWN)
                return -ERANGE;
        *ret_product = product;
        return 0;
}

int parse_u64_span(const char *text, size_t length, uint64_t *ret_value) {
        uint64_t value = 0;

        if (length == 0)
                return -EINVAL;
        for (size_t i = 0; i < length; i++) {
                if (!is_digit(text[i]))
                        return -EINVAL;
                if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
                    __builtin_add_overflow(value, (uint64_t) (text[i] - '0'), &value))
                        return -ERANGE;
        }
        *ret_value = value;
        return 0;
}

int parse_u64(const char *text, uint64_t *ret_value) {
        return parse_u64_span(text, strlen(text), ret_value);
}

int parse_size(const char *text, uint64_t *ret_bytes) {
        uint64_t whole, millionths;

        int r = take_decimal(&text, &whole, &millionths);
        if (r < 0)
                return r;
        const struct unit_name *unit =
                        find_unit(size_units, MG_ELEMENTS(size_units), text, strlen(text), true);
        if (!unit)
                return -EINVAL;
        return multiply(whole, millionths, unit->factor, ret_bytes);
}

int parse_percent(const char *text, uint32_t *ret_permyriad) {
        uint64_t whole, millionths, permyriad;

        int r = take_decimal(&text, &whole, &millionths);
        if (r < 0)
                return r;
        if (!mg_streq(text, "%"))
                return -EINVAL;
        r = multiply(whole, millionths, 100, &permyriad);
        if (r < 0 || permyriad > 1000000)
                return -ERANGE;
        *ret_permyriad = (uint32_t) permyriad;
        return 0;
}

/* Reads "2min" or "1.5s" at *TEXT and moves it behind; a number alone is seconds. */
static int take_time(const char **text, uint64_t *ret_usec) {
        uint64_t whole, millionths;
        size_t letters = 0;

        int r = take_decimal(text, &whole, &millionths);
        if (r < 0)
                return r;
        while (is_letter((*text)[letters]))
                letters++;
        const struct unit_name *unit =
                        find_unit(time_units, MG_ELEMENTS(time_units), *text, letters, false);
        if (!unit)
                return -EINVAL;
        *text += letters;
        return multiply(whole, millionths, unit->factor, ret_usec);
}

int parse_duration(const char *text, uint64_t *ret_usec) {
        uint64_t sum = 0, part;

        for (bool is_first = true;; is_first = false) {
                int r = take_time(&text, &part);
                if (r < 0)
                        return r;
                if (__builtin_add_overflow(sum, part, &sum) || sum == MG_UNKNOWN)
                        return -ERANGE;
                /* "5 30s" is more likely "5min 30s" than 35 seconds. */
                bool is_bare = !is_letter(text[-1]), is_last = *text == '\0';
                if (is_bare && !(is_first && is_last))
                        return -EINVAL;
                if (is_last)
                        break;
                while (*text == ' ')
                        text++;
        }
        *ret_usec = sum;
        return 0;
}

int parse_boolean(const char *text) {
        static const char *const yes[] = { "1", "yes", "y", "true", "t", "on" };
        static const char *const no[] = { "0", "no", "n", "false", "f", "off" };

        for (size_t i = 0; i < MG_ELEMENTS(yes); i++) {
                if (equals_span(yes[i], text, strlen(text), true))
                        return 1;
                if (equals_span(no[i], text, strlen(text), true))
                        return 0;
        }
        return -EINVAL;
}
