/* SPDX-License-Identifier: MIT */
/* The text of /proc/PID/statm: numbers of pages, each one space apart. Layer: base; pure. */
#include "base/statm.h"

#include <errno.h>

#include "base/macros.h"
#include "base/parse.h"

int statm_parse_anon(const char *text, uint64_t page_bytes, uint64_t *ret_bytes) {
        uint64_t pages[3]; /* size, resident, shared */

        for (size_t i = 0; i < MG_ELEMENTS(pages); i++) {
                size_t length = strcspn(text, " \n");
                if (parse_u64_span(text, length, &pages[i]) < 0)
                        return -EBADMSG;
                text += length;
                if (*text == ' ')
                        text++;
        }
        *ret_bytes = mg_scale(mg_sub_floor(pages[1], pages[2]), page_bytes, 1);
        return 0;
}
