/* SPDX-License-Identifier: MIT */
/* One unit in detail. Layer: ctl. */
#pragma once

#include <jansson.h>

/* Prints UNIT (a row of ListUnits), its processes and the last decision. Returns an enum ctl_exit. */
int unit_detail_print(const json_t *unit);
