/* SPDX-License-Identifier: MIT */
/* All allocators of this process, found once. Layer: agent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "agent/backend.h"

/* Once, on a thread of the program. MAKES_HANDLES: this is the preload object, which sees threads being made. */
void heaps_probe(bool makes_handles);

/* In the agent's thread, before the first connection: what only the executable's file tells. Later calls do nothing. */
void heaps_probe_file(void);

size_t heaps_count(void);
const struct mg_heap *heaps_get(size_t i);

/* For back-ends, while probing. */
bool heaps_makes_handles(void);

/* Whether the program's malloc() comes from the object that contains SYMBOL. */
bool heaps_serves_malloc(const void *symbol);
bool heaps_malloc_is_in_executable(void);

/* Asks each heap for its texts: for hello, and for tune-reply. */
void heaps_describe(struct mg_message *message);

/* What each heap is called, so that numbers can be matched to it; as last described. */
void heaps_name(struct mg_message *message);

/* Whether any heap's CAN= has WORD; as last described. */
bool heaps_can(const char *word);

/* The numbers of each heap that has some. Returns how many had. */
size_t heaps_stats(struct mg_message *message);
