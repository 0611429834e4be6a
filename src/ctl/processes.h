/* SPDX-License-Identifier: MIT */
/* Processes as a table. Layer: ctl. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* PROCESSES: the reply of ListProcesses. WITH_UNIT adds the unit's column. Returns an enum ctl_exit. */
int processes_print(json_t *processes, bool with_unit);
