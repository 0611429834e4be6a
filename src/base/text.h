/* SPDX-License-Identifier: MIT */
/*
 * A bounded text builder: appends into the caller's buffer, always NUL-ended, and
 * remembers when something did not fit. No locale, no stdio, no allocation, so that
 * the agent may use it inside any program. Layer: base; pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mg_text {
        char *buffer;
        size_t size;
        size_t length;
        bool overflow; /* something was cut: what is there is a prefix */
};

/* SIZE counts the NUL and is at least 1. */
void text_init(struct mg_text *text, char *buffer, size_t size);
void text_put(struct mg_text *text, const char *string);
void text_put_span(struct mg_text *text, const char *bytes, size_t length);
void text_put_char(struct mg_text *text, char c);
void text_put_u64(struct mg_text *text, uint64_t value);

/* The way systemd's tools show bytes: 0B, 512K, 1.2G (1024-based, one decimal under 10); "-" for MG_UNKNOWN. */
void text_put_size(struct mg_text *text, uint64_t bytes);

/* 850us, 16ms, 4s, 2min 30s, 1h 5min, 3d 4h: the two largest parts; "-" for MG_UNKNOWN. */
void text_put_duration(struct mg_text *text, uint64_t usec);

/* Room for any text_put_size() or text_put_duration() result. */
#define MG_SHORT_TEXT_MAX 32

/* The same into a buffer of MG_SHORT_TEXT_MAX bytes; returns BUFFER, for use as an argument. */
const char *format_size(uint64_t bytes, char buffer[static MG_SHORT_TEXT_MAX]);
const char *format_duration(uint64_t usec, char buffer[static MG_SHORT_TEXT_MAX]);
