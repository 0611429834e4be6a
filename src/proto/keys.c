/* SPDX-License-Identifier: MIT */
/* The names of verbs, results and keys. Layer: proto; pure. */
#include "proto/keys.h"

#include "base/macros.h"

static const char *const verb_names[] = {
        [MG_VERB_UNKNOWN] = "unknown",
        [MG_VERB_HELLO] = "hello",
        [MG_VERB_STATS] = "stats",
        [MG_VERB_STATS_REPLY] = "stats-reply",
        [MG_VERB_TRIM] = "trim",
        [MG_VERB_TRIM_REPLY] = "trim-reply",
        [MG_VERB_TUNE] = "tune",
        [MG_VERB_TUNE_REPLY] = "tune-reply",
        [MG_VERB_CHECKPOINT] = "checkpoint",
        [MG_VERB_SUSPEND] = "suspend",
        [MG_VERB_RESUME] = "resume",
        [MG_VERB_PING] = "ping",
        [MG_VERB_PONG] = "pong",
        [MG_VERB_UNSUPPORTED] = "unsupported",
};
_Static_assert(MG_ELEMENTS(verb_names) == _MG_VERB_MAX, "a name for each verb");

static const char *const result_names[] = {
        [MG_RESULT_DONE] = "done",       [MG_RESULT_PARTIAL] = "partial",
        [MG_RESULT_REFUSED] = "refused", [MG_RESULT_UNSUPPORTED] = "unsupported",
        [MG_RESULT_BUSY] = "busy",
};
_Static_assert(MG_ELEMENTS(result_names) == _MG_RESULT_MAX, "a name for each result");

#define BY(verb)    (UINT32_C(1) << MG_VERB_##verb)
#define BY_REPLIES  (BY(STATS_REPLY) | BY(TRIM_REPLY) | BY(TUNE_REPLY))
#define BY_REQUESTS (BY(STATS) | BY(TRIM) | BY(TUNE) | BY(PING))

static const struct mg_key message_numbers[] = {
        [MG_NUMBER_PROTOCOL] = { "PROTOCOL", BY(HELLO) },
        [MG_NUMBER_ID] = { "ID", BY_REQUESTS | BY_REPLIES | BY(PONG) },
        [MG_NUMBER_HEAPS] = { "HEAPS", BY(HELLO) | BY(STATS_REPLY) },
        [MG_NUMBER_RESULT] = { "RESULT", BY_REPLIES, result_names, _MG_RESULT_MAX },
        [MG_NUMBER_RSS_ANON_BYTES] = { "RSS_ANON_BYTES" },
        [MG_NUMBER_BASE_BYTES] = { "BASE_BYTES" },
        [MG_NUMBER_CACHE_BYTES] = { "CACHE_BYTES" },
        [MG_NUMBER_CACHES] = { "CACHES" },
        [MG_NUMBER_SUSPENDED] = { "SUSPENDED" },
        [MG_NUMBER_STATS_COST_USEC] = { "STATS_COST_USEC" },
        [MG_NUMBER_STATS_COST_BYTES] = { "STATS_COST_BYTES" },
        [MG_NUMBER_FORCE] = { "FORCE" },
        [MG_NUMBER_LIMIT_USEC] = { "LIMIT_USEC" },
        [MG_NUMBER_GOAL_BYTES] = { "GOAL_BYTES" },
        [MG_NUMBER_PAD_BYTES] = { "PAD_BYTES" },
        [MG_NUMBER_ARENA_TOPS] = { "ARENA_TOPS" },
        [MG_NUMBER_SHRINK] = { "SHRINK" },
        [MG_NUMBER_DEADLINE_USEC] = { "DEADLINE_USEC" },
        [MG_NUMBER_BEFORE_BYTES] = { "BEFORE_BYTES" },
        [MG_NUMBER_AFTER_BYTES] = { "AFTER_BYTES" },
        [MG_NUMBER_DURATION_USEC] = { "DURATION_USEC" },
        [MG_NUMBER_PAUSE_USEC] = { "PAUSE_USEC" },
        [MG_NUMBER_CPU_USEC] = { "CPU_USEC" },
        [MG_NUMBER_MINOR_FAULTS] = { "MINOR_FAULTS" },
        [MG_NUMBER_SHRUNK_BYTES] = { "SHRUNK_BYTES" },
        [MG_NUMBER_BACKGROUND_THREAD] = { "BACKGROUND_THREAD" },
};
_Static_assert(MG_ELEMENTS(message_numbers) == _MG_NUMBER_MAX, "a name for each number");

static const struct mg_key message_texts[] = {
        [MG_TEXT_VERSION] = { "VERSION" }, [MG_TEXT_MODE] = { "MODE", BY(HELLO) },
        [MG_TEXT_THREAD] = { "THREAD" },   [MG_TEXT_CAN] = { "CAN" },
        [MG_TEXT_REASON] = { "REASON" },   [MG_TEXT_TAG] = { "TAG" },
};
_Static_assert(MG_ELEMENTS(message_texts) == _MG_TEXT_KEY_MAX, "a name for each text");

static const struct mg_key heap_numbers[] = {
        [MG_HEAP_LIVE_BYTES] = { "LIVE_BYTES" },
        [MG_HEAP_SYSTEM_BYTES] = { "SYSTEM_BYTES" },
        [MG_HEAP_RESIDENT_BYTES] = { "RESIDENT_BYTES" },
        [MG_HEAP_FREEABLE_BYTES] = { "FREEABLE_BYTES" },
        [MG_HEAP_METADATA_BYTES] = { "METADATA_BYTES" },
        [MG_HEAP_FREE_CHUNKS] = { "FREE_CHUNKS" },
        [MG_HEAP_ARENAS] = { "ARENAS" },
        [MG_HEAP_HANDLES] = { "HANDLES" },
        [MG_HEAP_SERVES_MALLOC] = { "SERVES_MALLOC" },
        [MG_HEAP_ACTIVE_BYTES] = { "ACTIVE_BYTES" },
        [MG_HEAP_ADDRESS_SPACE_BYTES] = { "ADDRESS_SPACE_BYTES" },
};
_Static_assert(MG_ELEMENTS(heap_numbers) == _MG_HEAP_NUMBER_MAX, "a name for each number");

/* A heap without a name could be matched with nothing, whatever the verb. */
static const struct mg_key heap_texts[] = {
        [MG_HEAP_ALLOCATOR] = { "ALLOCATOR", UINT32_MAX },
        [MG_HEAP_VERSION] = { "VERSION" },
        [MG_HEAP_PREFIX] = { "PREFIX" },
        [MG_HEAP_OPTIONS] = { "OPTIONS" },
        [MG_HEAP_CAN] = { "CAN" },
        [MG_HEAP_NOTICE] = { "NOTICE" },
};
_Static_assert(MG_ELEMENTS(heap_texts) == _MG_HEAP_TEXT_MAX, "a name for each text");

const struct mg_key_table proto_message_keys = {
        message_numbers,
        _MG_NUMBER_MAX,
        message_texts,
        _MG_TEXT_KEY_MAX,
};
const struct mg_key_table proto_heap_keys = {
        heap_numbers,
        _MG_HEAP_NUMBER_MAX,
        heap_texts,
        _MG_HEAP_TEXT_MAX,
};

const char *verb_to_string(enum mg_verb verb) {
        return verb_names[verb];
}

enum mg_verb verb_from_span(struct mg_span name) {
        for (enum mg_verb verb = MG_VERB_UNKNOWN + 1; verb < _MG_VERB_MAX; verb++)
                if (span_equals(name, verb_names[verb]))
                        return verb;
        return MG_VERB_UNKNOWN;
}

const char *result_to_string(enum mg_result result) {
        return result_names[result];
}

const char *proto_number_name(enum mg_number number) {
        return message_numbers[number].name;
}

const char *proto_text_name(enum mg_text_key key) {
        return message_texts[key].name;
}

const char *proto_heap_number_name(enum mg_heap_number number) {
        return heap_numbers[number].name;
}

const char *proto_heap_text_name(enum mg_heap_text key) {
        return heap_texts[key].name;
}
