/* SPDX-License-Identifier: MIT */
/*
 * The one codec of the agent protocol; memguard-protocol(7) is the normative text.
 * A datagram is one message: lines KEY=VALUE, each ended by a newline, the first being
 * VERB=. Agent and daemon link the same code. Layer: proto; pure: no system calls, no
 * allocation, no stdio (the agent runs it inside other people's programs).
 *
 * A message is a flat table: every numeric key has a slot in number[], every textual key one
 * in text[], and what belongs to one allocator sits in heap[]. A slot that was not in the
 * datagram is MG_UNKNOWN, or has a NULL text.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MG_PROTOCOL_VERSION  1
#define MG_MESSAGE_MAX_BYTES 4096

/* Allocators of one process: glibc is nearly always there beside another; more than 4 were never seen. */
#define MG_HEAPS_MAX 4

enum mg_verb {
        MG_VERB_UNKNOWN, /* well-formed, but of a verb this version lacks: answer UNSUPPORTED */
        MG_VERB_HELLO,
        MG_VERB_STATS,
        MG_VERB_STATS_REPLY,
        MG_VERB_TRIM,
        MG_VERB_TRIM_REPLY,
        MG_VERB_TUNE,
        MG_VERB_TUNE_REPLY,
        MG_VERB_CHECKPOINT,
        MG_VERB_SUSPEND,
        MG_VERB_RESUME,
        MG_VERB_PING,
        MG_VERB_PONG,
        MG_VERB_UNSUPPORTED,
        _MG_VERB_MAX,
};

/* RESULT= of a trim-reply, tune-reply or stats-reply. */
enum mg_result {
        MG_RESULT_DONE,
        MG_RESULT_PARTIAL,     /* the deadline came first */
        MG_RESULT_REFUSED,     /* REASON= says why: suspended, duty, rights, ... */
        MG_RESULT_UNSUPPORTED, /* no allocator here can */
        MG_RESULT_BUSY,        /* an earlier request is still being served */
        _MG_RESULT_MAX,
};

/* Numeric keys outside a heap. Bytes, microseconds and counts as the names say. */
enum mg_number {
        MG_NUMBER_PROTOCOL,       /* hello: MG_PROTOCOL_VERSION */
        MG_NUMBER_ID,             /* of a request; its reply repeats it */
        MG_NUMBER_HEAPS,          /* how many HEAPn_ groups follow */
        MG_NUMBER_RESULT,         /* enum mg_result, on the wire as its name */
        MG_NUMBER_RSS_ANON_BYTES, /* as the agent read it from statm, for base and for cost scaling */
        MG_NUMBER_BASE_BYTES,     /* hello: RssAnon outside the heaps, when the heap was young */
        MG_NUMBER_CACHE_BYTES,    /* stats-reply: sum over registered caches */
        MG_NUMBER_CACHES,         /* stats-reply: how many are registered */
        MG_NUMBER_SUSPENDED,      /* stats-reply, hello: depth of memguard_suspend() */
        MG_NUMBER_STATS_COST_USEC,  /* hello, stats-reply: what the last statistics call took */
        MG_NUMBER_STATS_COST_BYTES, /* hello, stats-reply: RssAnon at that call */
        MG_NUMBER_FORCE,            /* stats: 1 asks once, whatever the predicted cost */
        MG_NUMBER_LIMIT_USEC,       /* stats: refuse what is predicted to take longer (MaxPause=) */
        MG_NUMBER_GOAL_BYTES,       /* trim: how much would be welcome; 0 or absent: all */
        MG_NUMBER_PAD_BYTES,        /* trim: to leave at the main heap's top */
        MG_NUMBER_ARENA_TOPS,       /* trim: 1 reaches the tops of thread arenas too */
        MG_NUMBER_SHRINK,        /* trim: 1 calls the shrink callbacks of registered caches first */
        MG_NUMBER_DEADLINE_USEC, /* trim: start no further slice after so long */
        MG_NUMBER_BEFORE_BYTES,  /* trim-reply: RssAnon before */
        MG_NUMBER_AFTER_BYTES,   /* trim-reply: RssAnon after */
        MG_NUMBER_DURATION_USEC, /* trim-reply: wall time of all slices */
        MG_NUMBER_PAUSE_USEC,    /* trim-reply: the longest another thread could have waited */
        MG_NUMBER_CPU_USEC,      /* trim-reply: CPU time of the agent thread */
        MG_NUMBER_MINOR_FAULTS,  /* trim-reply: of the process while it ran */
        MG_NUMBER_SHRUNK_BYTES,  /* trim-reply: given up by registered caches */
        MG_NUMBER_BACKGROUND_THREAD, /* tune, tune-reply: jemalloc's, 0 or 1 */
        _MG_NUMBER_MAX,
};

/* Textual keys outside a heap. */
enum mg_text_key {
        MG_TEXT_VERSION, /* hello: of libmemguard */
        MG_TEXT_MODE,    /* hello: preload, linked, event-loop */
        MG_TEXT_THREAD,  /* hello: follow, always, never */
        MG_TEXT_CAN, /* hello: comma-separated: stats, trim, arena-tops, tune, shrink, checkpoint */
        MG_TEXT_REASON, /* trim: why; replies: why not; suspend: the host's word */
        MG_TEXT_TAG,    /* checkpoint */
        _MG_TEXT_KEY_MAX,
};

/* Numeric keys of one allocator: on the wire HEAPn_ and the name. */
enum mg_heap_number {
        MG_HEAP_LIVE_BYTES,
        MG_HEAP_SYSTEM_BYTES,   /* taken from the system for this heap, resident or not */
        MG_HEAP_RESIDENT_BYTES, /* the allocator's own figure, where it has one */
        MG_HEAP_FREEABLE_BYTES, /* the allocator's own estimate of what a trim gives back, at most */
        MG_HEAP_METADATA_BYTES,
        MG_HEAP_FREE_CHUNKS,
        MG_HEAP_ARENAS,
        MG_HEAP_HANDLES,       /* glibc: arenas whose top is within reach */
        MG_HEAP_SERVES_MALLOC, /* 1: this one answers the program's malloc() */
        MG_HEAP_ACTIVE_BYTES,  /* jemalloc: pages that hold something live */
        MG_HEAP_ADDRESS_SPACE_BYTES, /* jemalloc: reserved, not mapped (its "retained"): no memory at all */
        _MG_HEAP_NUMBER_MAX,
};

enum mg_heap_text {
        MG_HEAP_ALLOCATOR, /* glibc, jemalloc, tcmalloc, mimalloc */
        MG_HEAP_VERSION,
        MG_HEAP_PREFIX,  /* of its symbols: "je_", "_rjem_"; absent: none */
        MG_HEAP_OPTIONS, /* effective, space-separated name:value pairs */
        MG_HEAP_CAN,     /* comma-separated: stats, trim, arena-tops, tune */
        MG_HEAP_NOTICE,  /* hello: something worth one line: options not in effect, no statistics */
        _MG_HEAP_TEXT_MAX,
};

/* Bytes inside the decoded datagram (or the encoder's caller's memory); not NUL-ended. */
struct mg_span {
        const char *bytes;
        size_t length;
};

struct mg_heap_message {
        uint64_t number[_MG_HEAP_NUMBER_MAX];
        struct mg_span text[_MG_HEAP_TEXT_MAX];
};

struct mg_message {
        enum mg_verb verb;
        uint64_t number[_MG_NUMBER_MAX];
        struct mg_span text[_MG_TEXT_KEY_MAX];
        struct mg_heap_message heap[MG_HEAPS_MAX]; /* the first number[MG_NUMBER_HEAPS] are meant */
};

/* Everything unknown, of VERB. */
void proto_init(struct mg_message *message, enum mg_verb verb);

/*
 * Reads DATAGRAM, whose bytes MESSAGE then points into. Returns 0, -EMSGSIZE beyond
 * MG_MESSAGE_MAX_BYTES, or -EBADMSG: no VERB= first, a line without "=" or without a key, a control
 * character (C0, DEL, C1), invalid UTF-8, a missing last newline, a known key that is repeated or
 * empty, a known number that is not an unsigned decimal below MG_UNKNOWN, a RESULT= this version
 * lacks, more than MG_HEAPS_MAX heaps, a heap key beyond HEAPS=, a key that the verb (or a heap)
 * requires missing. Unknown keys are ignored.
 */
int proto_decode(const char *datagram, size_t length, struct mg_message *ret_message);

/*
 * Writes MESSAGE to BUFFER, at most MG_MESSAGE_MAX_BYTES. Keys in table order; unknown numbers,
 * NULL and empty texts, and heaps beyond number[MG_NUMBER_HEAPS] left out; bytes that would break
 * the framing replaced by "?". *ret_length has no NUL counted (none is written). Returns 0,
 * -EMSGSIZE (does not fit), or -EINVAL (a key that the verb requires is unknown; a verb, result or
 * heap count out of range).
 */
int proto_encode(const struct mg_message *message, char *buffer, size_t size, size_t *ret_length);

/* How many heaps of a decoded message are meant: never above MG_HEAPS_MAX, 0 without HEAPS=. */
size_t proto_heap_count(const struct mg_message *message);

const char *verb_to_string(enum mg_verb verb);       /* "hello", "stats-reply"; "unknown" */
const char *result_to_string(enum mg_result result); /* "done", ... */

/* Wire names of the keys: "RSS_ANON_BYTES"; of a heap's without "HEAPn_". */
const char *proto_number_name(enum mg_number number);
const char *proto_text_name(enum mg_text_key key);
const char *proto_heap_number_name(enum mg_heap_number number);
const char *proto_heap_text_name(enum mg_heap_text key);

/* A span over a NUL-ended string; NULL gives an unknown one. */
struct mg_span span_of(const char *string);

int span_equals(struct mg_span span, const char *string);

/* Whether the comma-separated LIST has WORD. */
int span_has_word(struct mg_span list, const char *word);
