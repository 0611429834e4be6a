/* SPDX-License-Identifier: MIT */
/* --since=: the moments that journalctl understands, and a time span alone, which means so long ago. Layer: ctl; pure but for the time zone. */
#pragma once

#include <stdint.h>

/*
 * "1h", "-2h 30min", "3 h ago", "now", "today", "yesterday", "14:03", "2026-11-30", "2026-11-30 14:03:22", "@1764511402", the dates also
 * with " UTC". NOW is realtime. Returns 0, -EINVAL (no such moment) or -ERANGE (it lies ahead).
 */
int since_parse(const char *text, uint64_t now_usec, uint64_t *ret_usec);
