/* SPDX-License-Identifier: MIT */
/* The distance of names, for "did you mean". Layer: host; pure. */
#include "host/nearest_name.h"

#include <strings.h>

#include "base/macros.h"

/* Longer names are not near any of ours ("JemallocBackgroundThread" has 24 letters). */
#define LENGTH_MAX 48

static unsigned lower(char c) {
        return (unsigned char) (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Levenshtein's distance, a row at a time, in any case. */
static unsigned edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
        unsigned row[LENGTH_MAX + 1];

        for (size_t j = 0; j <= b_length; j++)
                row[j] = (unsigned) j;
        for (size_t i = 1; i <= a_length; i++) {
                unsigned diagonal = row[0];
                row[0] = (unsigned) i;
                for (size_t j = 1; j <= b_length; j++) {
                        unsigned changed = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
                        unsigned longer = MG_MIN(row[j], row[j - 1]) + 1;
                        diagonal = row[j];
                        row[j] = MG_MIN(changed, longer);
                }
        }
        return row[b_length];
}

unsigned name_distance(const char *name, const char *known) {
        size_t length = strlen(name), known_length = strlen(known);

        if (length == 0 || MG_MAX(length, known_length) > LENGTH_MAX)
                return MG_NAME_TOO_FAR;
        if (strcasecmp(name, known) == 0)
                return 0;
        if (length >= 3 && strncasecmp(name, known, MG_MIN(length, known_length)) == 0)
                return 1;
        unsigned distance = edit_distance(name, length, known, known_length);
        /* Three letters can be turned into any other word of three. */
        if (distance * 2 > known_length)
                return MG_NAME_TOO_FAR;
        return MG_MIN(distance, (unsigned) MG_NAME_TOO_FAR);
}
