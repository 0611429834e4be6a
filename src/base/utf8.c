/* SPDX-License-Identifier: MIT */
/* UTF-8 as RFC 3629 has it: shortest form, no surrogates, up to U+10FFFF. Layer: base; pure. */
#include "base/utf8.h"

#include <stdbool.h>

#include "base/macros.h"

/* By lead byte: how long the character is, and what its second byte may be. */
static const struct {
        unsigned char lead_min, lead_max;
        unsigned char second_min, second_max;
        size_t length;
} forms[] = {
        { 0x20, 0x7e, 0x00, 0x00, 1 }, { 0xc2, 0xc2, 0xa0, 0xbf, 2 }, /* U+0080 to 9F: C1 */
        { 0xc3, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
        { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, /* no surrogates */
        { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
        { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
};

static bool is_between(char c, unsigned char min, unsigned char max) {
        return (unsigned char) c >= min && (unsigned char) c <= max;
}

size_t utf8_printable_length(const char *bytes, size_t length) {
        for (size_t i = 0; i < MG_ELEMENTS(forms); i++) {
                if (!is_between(bytes[0], forms[i].lead_min, forms[i].lead_max))
                        continue;
                if (forms[i].length > length)
                        return 0;
                if (forms[i].length > 1 &&
                    !is_between(bytes[1], forms[i].second_min, forms[i].second_max))
                        return 0;
                for (size_t k = 2; k < forms[i].length; k++)
                        if (!is_between(bytes[k], 0x80, 0xbf))
                                return 0;
                return forms[i].length;
        }
        return 0;
}
