/* SPDX-License-Identifier: MIT */
/* One line a day for each unit that had anything to tell. Layer: daemon. */
#pragma once

#include <stdint.h>

struct unit;

/* From the once-a-minute part of the tick. */
void summary_tick(struct unit *unit, uint64_t now_usec);
