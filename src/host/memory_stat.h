/* SPDX-License-Identifier: MIT */
/*
 * The text of cgroup v2's memory files. Layer: host; these functions are pure (a fuzz target).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/sample.h"

/* All of struct mg_memory MG_UNKNOWN. */
void memory_unknown(struct mg_memory *ret_memory);

/*
 * Where the keys are in this kernel's memory.stat, which prints the same lines in the same order for every cgroup: what one text
 * has shown makes the next one cheap. Zeroed: nothing is known. Believed only as far as each text bears it out.
 */
#define MG_STAT_LINES_MAX 96
struct memory_stat_layout {
        unsigned n_lines;  /* up to the last one of use; 0: nothing is known */
        bool has_all_keys; /* else a text of more lines is another layout */
        struct {
                uint8_t key_length;
                uint8_t key; /* which one, or how many there are: of no use */
        } lines[MG_STAT_LINES_MAX];
};

/*
 * memory.stat, LENGTH bytes and a NUL: fills what is there, leaves other members alone, ignores unknown and malformed lines; of equal keys
 * the first counts. Each value's key is compared; where LAYOUT does not fit, it is learned anew.
 */
void memory_stat_parse(
                const char *text,
                size_t length,
                struct memory_stat_layout *layout,
                struct mg_memory *memory);

/* A file with one number, or "max" (which gives MG_UNKNOWN). Returns 0 or -EINVAL. */
int memory_value_parse(const char *text, uint64_t *ret_value);

/* "key value" lines (memory.events, cpu.stat): the value of KEY, or MG_UNKNOWN. */
uint64_t flat_keyed_find(const char *text, const char *key);
