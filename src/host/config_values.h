/* SPDX-License-Identifier: MIT */
/*
 * The kinds of value that memguard.ini has, from text and back. What is written is read back as the same value. Layer: host; pure.
 */
#pragma once

#include <stdint.h>

#include "base/text.h"

/*
 * FIELD is the member of a configuration that holds the value, of the C type named with each kind. read() returns 0, or -EINVAL and
 * leaves FIELD alone; numbers are held within MINIMUM and MAXIMUM.
 */
struct mg_value_kind {
        int (*read)(const char *value, uint64_t minimum, uint64_t maximum, void *field);
        void (*write)(struct mg_text *text, const void *field);
};

extern const struct mg_value_kind value_bool;      /* bool */
extern const struct mg_value_kind value_tristate;  /* enum mg_tristate; empty is MG_LEAVE_ALONE */
extern const struct mg_value_kind value_mode;      /* enum mg_mode */
extern const struct mg_value_kind value_when;      /* uint32_t of enum mg_when */
extern const struct mg_value_kind value_count;     /* uint32_t */
extern const struct mg_value_kind value_percent;   /* uint32_t, permyriad */
extern const struct mg_value_kind value_size;      /* uint64_t */
extern const struct mg_value_kind value_duration;  /* uint64_t, microseconds */
extern const struct mg_value_kind value_pause;     /* the same; a bare number is refused */
extern const struct mg_value_kind value_threshold; /* struct mg_threshold */
extern const struct mg_value_kind value_log_level; /* int, syslog's */

/* As struct mg_unit_config has it: the larger of the two counts, what is not said is 0. */
struct mg_threshold {
        uint64_t bytes;
        uint32_t permyriad;
};
