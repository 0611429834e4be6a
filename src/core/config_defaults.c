/* SPDX-License-Identifier: MIT */
/* The defaults of a unit's section and the names of its values. Layer: core; pure. */
#include "core/unit_config.h"

#include <errno.h>

#include "base/macros.h"
#include "base/text.h"

static const char *const mode_names[] = {
        [MG_MODE_OFF] = "off",
        [MG_MODE_OBSERVE] = "observe",
        [MG_MODE_TRIM] = "trim",
};
_Static_assert(MG_ELEMENTS(mode_names) == _MG_MODE_MAX, "a mode has no name");

static const struct {
        enum mg_when bit;
        const char *name;
} when_names[] = {
        { MG_WHEN_ANY, "any" },
        { MG_WHEN_IDLE, "idle" },
        { MG_WHEN_CHECKPOINT, "checkpoint" },
        { MG_WHEN_PRESSURE, "pressure" },
};

void unit_config_defaults(struct mg_unit_config *ret_config) {
        *ret_config = (struct mg_unit_config){
                .mode = MG_MODE_OBSERVE,
                .trim_above_bytes = 256 * MG_MIB,
                .trim_above_permyriad = 2000,
                .min_gain_bytes = 32 * MG_MIB,
                .max_pause_usec = 50 * MG_USEC_PER_MSEC,
                .cooldown_usec = 5 * MG_USEC_PER_MIN,
                .cooldown_max_usec = 4 * MG_USEC_PER_HOUR,
                .when = MG_WHEN_ANY,
                .arena_tops = true,
                .statistics = true,
                .jemalloc_background_thread = MG_LEAVE_ALONE,
        };
}

const char *mode_to_string(enum mg_mode mode) {
        return mode_names[mode];
}

int mode_from_string(const char *name) {
        for (int mode = 0; mode < _MG_MODE_MAX; mode++)
                if (mg_streq(mode_names[mode], name))
                        return mode;
        return -EINVAL;
}

const char *when_to_string(uint32_t when, char *buffer) {
        struct mg_text text;

        text_init(&text, buffer, MG_WHEN_TEXT_MAX);
        for (size_t i = 0; i < MG_ELEMENTS(when_names); i++) {
                if (!(when & when_names[i].bit))
                        continue;
                if (text.length > 0)
                        text_put_char(&text, ' ');
                text_put(&text, when_names[i].name);
        }
        return buffer;
}

int when_from_string(const char *name) {
        for (size_t i = 0; i < MG_ELEMENTS(when_names); i++)
                if (mg_streq(when_names[i].name, name))
                        return when_names[i].bit;
        return -EINVAL;
}
