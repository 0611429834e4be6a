/* SPDX-License-Identifier: MIT */
/* Any bytes as printable UTF-8. Layer: host. */
#include "host/printable.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define ESCAPE_LENGTH 4

static char *put_escape(char *to, unsigned char byte) {
        static const char digits[] = "0123456789abcdef";

        *to++ = '<';
        *to++ = digits[byte >> 4];
        *to++ = digits[byte & 0xf];
        *to++ = '>';
        return to;
}

char *printable_copy(const char *text) {
        size_t left = strlen(text);
        char *copy = calloc(left + 1, ESCAPE_LENGTH);
        char *to = copy;

        if (!copy)
                return NULL;
        while (left > 0) {
                size_t length = utf8_printable_length(text, left);

                if (length == 0) {
                        to = put_escape(to, (unsigned char) *text);
                        length = 1;
                } else
                        to = mempcpy(to, text, length);
                text += length;
                left -= length;
        }
        *to = '\0';
        return copy;
}
