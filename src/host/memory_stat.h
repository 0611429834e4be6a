/* SPDX-License-Identifier: MIT */
/*
 * The text of cgroup v2's memory files. Layer: host; these functions are pure (a fuzz target).
 */
#pragma once

#include "core/sample.h"

/* All of struct mg_memory MG_UNKNOWN. */
void memory_unknown(struct mg_memory *ret_memory);

/* memory.stat: fills what is there, leaves other members alone, ignores unknown and malformed lines. */
void memory_stat_parse(const char *text, struct mg_memory *memory);

/* A file with one number, or "max" (which gives MG_UNKNOWN). Returns 0 or -EINVAL. */
int memory_value_parse(const char *text, uint64_t *ret_value);

/* "key value" lines (memory.events, cpu.stat): the value of KEY, or MG_UNKNOWN. */
uint64_t flat_keyed_find(const char *text, const char *key);
