/* SPDX-License-Identifier: MIT */
/*
 * The protocol's vocabulary as data: the wire name of each slot of struct mg_message and the
 * verbs that cannot do without it. Encoder and decoder both walk these tables and hold no
 * other knowledge of a key. Layer: proto, private to it; pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/proto.h"

struct mg_key {
        const char *name;
        uint32_t required_by;     /* bit 1 << enum mg_verb */
        const char *const *words; /* a number that travels as a word: its index here */
        size_t n_words;
};

/* The slots of a message, or of one of its heaps, in the order of their enums. */
struct mg_key_table {
        const struct mg_key *numbers;
        size_t n_numbers;
        const struct mg_key *texts;
        size_t n_texts;
};

extern const struct mg_key_table proto_message_keys;
extern const struct mg_key_table proto_heap_keys;

/* MG_VERB_UNKNOWN for any name this version lacks, "unknown" included. */
enum mg_verb verb_from_span(struct mg_span name);
