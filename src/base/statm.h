/* SPDX-License-Identifier: MIT */
/* The text of /proc/PID/statm. Layer: base; pure. */
#pragma once

#include <stdint.h>

/*
 * RssAnon: resident less shared pages, in bytes. The kernel's counters are approximate since 6.2, so shared may be ahead of resident:
 * that is 0, never a huge number. Returns 0, or -EBADMSG with *RET_BYTES untouched.
 */
int statm_parse_anon(const char *text, uint64_t page_bytes, uint64_t *ret_bytes);
