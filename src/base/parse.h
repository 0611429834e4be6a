/* SPDX-License-Identifier: MIT */
/*
 * Numbers, sizes, shares, times and booleans from text, strictly: no locale, no sign,
 * no leading blanks, nothing left over, no silent overflow. All take a NUL-ended string and
 * return 0, -EINVAL (not of the form) or -ERANGE (does not fit); outputs are untouched on
 * failure. Layer: base; pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The first LENGTH bytes of TEXT, which need no NUL: decimal digits only. */
int parse_u64_span(const char *text, size_t length, uint64_t *ret_value);
int parse_u64(const char *text, uint64_t *ret_value);

/* 4096, 512K, 1.5G: powers of 1024, suffix K M G T (also lower case, optional B); result < MG_UNKNOWN. */
int parse_size(const char *text, uint64_t *ret_bytes);

/* 20% or 0.5%: hundredths of a percent, at most 1,000,000 (10,000 %). */
int parse_percent(const char *text, uint32_t *ret_permyriad);

/*
 * systemd's time spans: "30s", "2min 30s", "1h", "500ms", "50us", "1d"; a number alone is seconds.
 * Fractions as in "1.5s" are taken, down to whole microseconds.
 */
int parse_duration(const char *text, uint64_t *ret_usec);

/* systemd's booleans: 1 yes y true t on / 0 no n false f off, any case. Returns 1, 0 or -EINVAL. */
int parse_boolean(const char *text);
