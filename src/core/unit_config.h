/* SPDX-License-Identifier: MIT */
/*
 * What an operator can set for one unit: memguard.ini(5), section 9 of the design. The host
 * layer fills it, the policy reads it. Layer: core; plain data.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum mg_mode {
        MG_MODE_OFF,     /* not even measured through agents */
        MG_MODE_OBSERVE, /* measured, judged, "would have trimmed" counted; left alone */
        MG_MODE_TRIM,
        _MG_MODE_MAX,
};

/* When=: any number of these; MG_WHEN_ANY alone means at once. */
enum mg_when {
        MG_WHEN_ANY = 1 << 0,
        MG_WHEN_IDLE = 1 << 1,
        MG_WHEN_CHECKPOINT = 1 << 2,
        MG_WHEN_PRESSURE = 1 << 3,
};

enum mg_tristate {
        MG_LEAVE_ALONE = -1,
        MG_NO = 0,
        MG_YES = 1,
};

struct mg_unit_config {
        enum mg_mode mode;
        uint64_t trim_above_bytes;     /* TrimAbove=: the larger of the two counts */
        uint32_t trim_above_permyriad; /* of live */
        uint64_t min_gain_bytes;
        uint64_t max_pause_usec;
        uint64_t cooldown_usec;
        uint64_t cooldown_max_usec;
        uint32_t when; /* enum mg_when, or-ed */
        uint64_t trim_pad_bytes;
        bool arena_tops;
        bool shrink_caches;
        bool statistics;
        enum mg_tristate jemalloc_background_thread;
};

/* The defaults of section 9, Mode= as [Default] has it: observe. */
void unit_config_defaults(struct mg_unit_config *ret_config);

const char *mode_to_string(enum mg_mode mode); /* "off", "observe", "trim" */
int mode_from_string(const char *name);        /* enum mg_mode or -EINVAL */

/* Room for every When= value at once. */
#define MG_WHEN_TEXT_MAX 48

/* "any", "idle checkpoint", ...: into BUFFER of MG_WHEN_TEXT_MAX bytes, which it returns. */
const char *when_to_string(uint32_t when, char *buffer);

/* One word of When=: its bit, or -EINVAL. */
int when_from_string(const char *name);
