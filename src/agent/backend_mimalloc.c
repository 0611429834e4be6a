/* SPDX-License-Identifier: MIT */
/*
 * mimalloc. In version 2 each thread's heap is its own, and a collect from here reaches none of them (2.0.9): that is said, and
 * nothing is tried. Version 3 keeps its pages in arenas for all threads. 3.6.0 purges them by mi_arenas_purge(), from any thread: 532 -> 22 MiB in
 * 25 ms. There mi_collect() does nothing in a thread that has never allocated, as the agent's. So before there was such a
 * purge the thread is made known first, which costs some metadata of mimalloc's own and no malloc() (3.6.0, asked in this way: 532 -> 30 MiB).
 * Neither tells how much is live, and its figures of resident memory are wrong, so there are no statistics. Layer: agent.
 */
#include <errno.h>

#include "agent/backend.h"
#include "agent/heaps.h"
#include "agent/process.h"
#include "base/macros.h"
#include "base/text.h"

extern void mi_arenas_purge(void) __attribute__((weak));
extern void mi_collect(_Bool force) __attribute__((weak));
extern void mi_thread_init(void) __attribute__((weak));
extern int mi_version(void) __attribute__((weak));

/* The first whose collect reaches the heaps of other threads. */
#define REACHES_ALL_FROM_MAJOR 3

/* 209 is 2.0.9, 30403 is 3.4.3: at some time, in each line of releases, the two smaller parts got two digits. */
#define FIVE_DIGITS_FROM 10000

static char version_text[32];

static unsigned read_version(unsigned *ret_base) {
        unsigned version = (unsigned) MG_MAX(mi_version(), 0);

        *ret_base = version >= FIVE_DIGITS_FROM ? 100 : 10;
        return version;
}

static bool reaches_all(void) {
        unsigned base, version = read_version(&base);

        return version / base / base >= REACHES_ALL_FROM_MAJOR;
}

static size_t probe(struct mg_heap *heaps, size_t room) {
        if (!mi_collect || !mi_version || room == 0)
                return 0;
        heaps[0] = (struct mg_heap){ .backend = &backend_mimalloc,
                                     .serves_malloc = heaps_serves_malloc(
                                                     (const void *) mi_collect) };
        return 1;
}

static void put_version(struct mg_text *text) {
        unsigned base, version = read_version(&base);

        text_put_u64(text, version / base / base);
        text_put_char(text, '.');
        text_put_u64(text, version / base % base);
        text_put_char(text, '.');
        text_put_u64(text, version % base);
}

static void describe(const struct mg_heap *heap, struct mg_heap_message *message) {
        struct mg_text text;

        text_init(&text, version_text, sizeof(version_text));
        put_version(&text);
        message->text[MG_HEAP_VERSION] = span_of(version_text);
        if (reaches_all())
                message->text[MG_HEAP_CAN] = span_of("trim");
        else
                message->text[MG_HEAP_NOTICE] = span_of(
                                "cannot trim from here: before mimalloc 3 each thread's heap is its own");
}

static int stats(const struct mg_heap *heap, struct mg_heap_message *message) {
        return -EOPNOTSUPP;
}

static void purge(void) {
        if (mi_arenas_purge) {
                mi_arenas_purge();
                return;
        }
        if (mi_thread_init)
                mi_thread_init();
        mi_collect(true);
}

static void trim(
                const struct mg_heap *heap,
                const struct mg_trim_request *request,
                struct mg_trim_outcome *ret_outcome) {
        if (!reaches_all()) {
                *ret_outcome = (struct mg_trim_outcome){
                        .result = MG_RESULT_UNSUPPORTED,
                        .reason = "cannot trim from here: mimalloc before 3",
                };
                return;
        }
        struct mg_stopwatch watch;
        stopwatch_start(&watch);
        purge();
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
