/* SPDX-License-Identifier: MIT */
/* Comparing versions. Foreign text: of any length, with any bytes. Layer: host; pure. */
#include "host/agent_version.h"

#include <string.h>

#define DIGITS "0123456789"

static size_t skip_zeros(const char **text) {
        *text += strspn(*text, "0");
        return strspn(*text, DIGITS);
}

/* By length first: a number of any size is compared without being computed. */
static int compare_numbers(const char **a, const char **b) {
        size_t a_length = skip_zeros(a);
        size_t b_length = skip_zeros(b);
        int r = a_length != b_length ? (a_length < b_length ? -1 : 1) : strncmp(*a, *b, a_length);

        *a += a_length;
        *b += b_length;
        return r;
}

static int is_digit(char c) {
        return c >= '0' && c <= '9';
}

int agent_version_compare(const char *a, const char *b) {
        int r = 0;

        while (r == 0 && *a && *b) {
                if (is_digit(*a) && is_digit(*b))
                        r = compare_numbers(&a, &b);
                else
                        r = (unsigned char) *a++ - (unsigned char) *b++;
        }
        return r != 0 ? r : (*a != '\0') - (*b != '\0');
}
