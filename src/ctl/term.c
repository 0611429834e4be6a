/* SPDX-License-Identifier: MIT */
/* Names of terminals. Layer: ctl. */
#include "ctl/term.h"

#include <stddef.h>
#include <string.h>

#include "base/macros.h"

static bool begins_with_one_of(const char *term, const char *const *names, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strncmp(term, names[i], strlen(names[i])) == 0)
                        return true;
        return false;
}

bool term_is_addressable(const char *term) {
        static const char *const others[] = {
                "dumb", "unknown", "emacs", "network", "dialup", "vt52",
                "wy",   "tvi",     "hp",    "adm",     "ibm3",
        };

        return term && *term && !begins_with_one_of(term, others, MG_ELEMENTS(others));
}

bool term_has_alternate(const char *term) {
        /* The kernel's console, and what serial lines are told to be. */
        static const char *const without[] = { "linux", "vt1", "vt2", "vt3", "vt4", "ansi" };

        return term_is_addressable(term) &&
               !begins_with_one_of(term, without, MG_ELEMENTS(without));
}
