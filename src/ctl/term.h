/* SPDX-License-Identifier: MIT */
/* What $TERM says of a terminal, without a database: what has not to be asked for is understood by all. Layer: ctl; pure. */
#pragma once

#include <stdbool.h>

/* TERM may be NULL. Moves its cursor by ECMA-48's sequences: whatever is not known to be older or none. */
bool term_is_addressable(const char *term);

/* Has xterm's second screen. */
bool term_has_alternate(const char *term);
