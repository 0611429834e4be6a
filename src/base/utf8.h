/* SPDX-License-Identifier: MIT */
/*
 * Printable UTF-8: what may stand in a protocol line, and on a terminal. Layer: base; pure.
 */
#pragma once

#include <stddef.h>

/*
 * The length of the character at BYTES, of which LENGTH > 0 are there; 0 when it is none, or
 * a control character (C0, DEL, C1: the latter move cursors too, and all of this is shown on
 * terminals and in the journal).
 */
size_t utf8_printable_length(const char *bytes, size_t length);
