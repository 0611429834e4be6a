/* SPDX-License-Identifier: MIT */
/*
 * mimalloc. Version 3 collects for all threads (measured on 3.4.3: 532 -> 20 MiB); in version 2 each thread's heap is
 * its own, and a collect from here reaches none of them: that is said, and nothing is tried. Neither tells how much is live, and
 * its figures of resident memory are wrong, so there are no statistics. Layer: agent.
 */
#include <errno.h>

#include "agent/backend.h"
#include "agent/heaps.h"
#include "agent/process.h"
#include "base/macros.h"
#include "base/text.h"

extern void mi_collect(_Bool force) __attribute__((weak));
extern int mi_version(void) __attribute__((weak));

/* The first version whose collect reaches the heaps of other threads: 3.x.y is 3xy, later 3xxyy. */
#define REACHES_ALL_FROM 300

static char version_text[32];

static bool reaches_all(void) {
        return mi_version() >= REACHES_ALL_FROM;
}

static size_t probe(struct mg_heap *heaps, size_t room) {
        if (!mi_collect || !mi_version || room == 0)
                return 0;
        heaps[0] = (struct mg_heap){ .backend = &backend_mimalloc,
                                     .serves_malloc = heaps_serves_malloc(
                                                     (const void *) mi_collect) };
        return 1;
}

/* 209 is 2.0.9, 30403 is 3.4.3. */
static void put_version(struct mg_text *text, unsigned version) {
        unsigned base = version >= 10000 ? 100 : 10;

        text_put_u64(text, version / base / base);
        text_put_char(text, '.');
        text_put_u64(text, version / base % base);
        text_put_char(text, '.');
        text_put_u64(text, version % base);
}

static void describe(const struct mg_heap *heap, struct mg_heap_message *message) {
        struct mg_text text;

        text_init(&text, version_text, sizeof(version_text));
        put_version(&text, (unsigned) MG_MAX(mi_version(), 0));
        message->text[MG_HEAP_VERSION] = span_of(version_text);
        if (reaches_all())
                message->text[MG_HEAP_CAN] = span_of("trim");
        else
                message->text[MG_HEAP_NOTICE] = span_of(
                                "cannot trim from here: in mimalloc 2 each thread's heap is its own");
}

static int stats(const struct mg_heap *heap, struct mg_heap_message *message) {
        return -EOPNOTSUPP;
}

static void trim(
                const struct mg_heap *heap,
                const struct mg_trim_request *request,
                struct mg_trim_outcome *ret_outcome) {
        if (!reaches_all()) {
                *ret_outcome = (struct mg_trim_outcome){
                        .result = MG_RESULT_UNSUPPORTED,
                        .reason = "cannot trim from here: mimalloc 2",
                };
                return;
        }
        struct mg_stopwatch watch;
        stopwatch_start(&watch);
        mi_collect(true);
        *ret_outcome = (struct mg_trim_outcome){ .result = MG_RESULT_DONE,
                                                 .pause_usec = stopwatch_pause_usec(&watch) };
}

const struct mg_backend backend_mimalloc = {
        .name = "mimalloc",
        .probe = probe,
        .describe = describe,
        .stats = stats,
        .trim = trim,
};
