/* SPDX-License-Identifier: MIT */
/* Colours and JSON. Layer: ctl. */
#include "ctl/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/parse.h"
#include "ctl/ctl.h"

static bool terminal_has_colors(void) {
        const char *term = getenv("TERM");

        return isatty(STDOUT_FILENO) && term && !mg_streq(term, "dumb");
}

bool colors_enabled(void) {
        const char *systemd_colors = getenv("SYSTEMD_COLORS");
        const char *no_color = getenv("NO_COLOR");

        if (systemd_colors) {
                int r = parse_boolean(systemd_colors);
                return r < 0 || r > 0; /* "16", "256" and "auto-..." ask for colours too */
        }
        if (no_color && *no_color)
                return false;
        return terminal_has_colors();
}

int json_print(const json_t *value) {
        size_t flags = JSON_ENCODE_ANY;

        if (ctl_options.json == JSON_PRETTY)
                flags |= JSON_INDENT(8);
        else
                flags |= JSON_COMPACT;
        json_dumpf(value, stdout, flags);
        putchar('\n');
        return CTL_OK; /* pager_close() sees a stream that failed */
}

void json_keep_names(json_t *objects, const char *const *names, size_t n_names) {
        json_t *object;
        size_t i;

        json_array_foreach(objects, i, object) {
                for (size_t n = 0; n < n_names; n++)
                        if (!json_object_get(object, names[n]))
                                json_object_set_new(object, names[n], json_null());
        }
}
