/* SPDX-License-Identifier: MIT */
/* One line a day for each unit that had anything to tell. Layer: daemon. */
#pragma once

#include <stdint.h>

struct unit;

/* What the unit did up to now is told already, or was before this daemon. */
void summary_begin(struct unit *unit);

/* From the once-a-minute part of the tick. */
void summary_tick(struct unit *unit, uint64_t now_usec);
