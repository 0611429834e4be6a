/* SPDX-License-Identifier: MIT */
/* What history and plot both need: a unit's history as far as --since= reaches. Layer: ctl. */
#pragma once

#include <jansson.h>

/* The caller owns *ret_history. Returns an enum ctl_exit; an error has been printed. */
int history_fetch(const char *unit, json_t **ret_history);
