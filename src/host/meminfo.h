/* SPDX-License-Identifier: MIT */
/*
 * The host's memory as /proc/meminfo tells it. Layer: host; pure.
 */
#pragma once

#include <stdint.h>

/* *RET_TOTAL_BYTES: MemTotal. *RET_AVAILABLE_BYTES: MemAvailable, what could be had without swapping. -EINVAL without both. */
int meminfo_parse(const char *text, uint64_t *ret_total_bytes, uint64_t *ret_available_bytes);
