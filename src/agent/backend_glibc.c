/* SPDX-License-Identifier: MIT */
/*
 * glibc's allocator: mallinfo2() for what is live, malloc_trim() for free pages inside the heaps, handles for the tops of
 * thread arenas. Every glibc-only symbol is weak, or a preloaded program of another libc would not start. Layer: agent.
 *
 * What mallinfo2() calls free still counts pages given back already, so it is an upper bound and no more. Both calls
 * lock one arena after the other and walk its free chunks.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "agent/arena_handles.h"
#include "agent/backend.h"
#include "agent/heaps.h"
#include "agent/process.h"
#include "agent/rights.h"
#include "base/macros.h"
#include "base/text.h"

extern struct mallinfo2 mallinfo2(void) __attribute__((weak));
extern int malloc_trim(size_t pad) __attribute__((weak));
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static char options_text[256];
static uint64_t arenas_bytes = MG_UNKNOWN; /* at the last look, without mmapped blocks */
static struct mg_span version, options, abilities, notice;

static void add_option(struct mg_text *text, const char *variable, const char *name) {
        const char *value = getenv(variable);

        if (!value || !*value)
                return;
        if (text->length > 0)
                text_put_char(text, ' ');
        text_put(text, name);
        text_put_char(text, ':');
        text_put(text, value);
}

/* What was asked for from outside. glibc has no call that tells what is in effect. */
static void read_options(void) {
        struct mg_text text;

        text_init(&text, options_text, sizeof(options_text));
        add_option(&text, "MALLOC_ARENA_MAX", "arena_max");
        add_option(&text, "MALLOC_TRIM_THRESHOLD_", "trim_threshold");
        add_option(&text, "MALLOC_MMAP_THRESHOLD_", "mmap_threshold");
        add_option(&text, "MALLOC_TOP_PAD_", "top_pad");
        add_option(&text, "GLIBC_TUNABLES", "tunables");
        options = span_of(options_text);
}

static size_t probe(struct mg_heap *heaps, size_t room) {
        struct mg_malloc_settings settings;

        if (!gnu_get_libc_version || room == 0)
                return 0;
        bool served = heaps_serves_malloc((const void *) gnu_get_libc_version) &&
                      handles_recognise_malloc();
        malloc_settings_read(&settings);
        read_options();
        if (heaps_makes_handles())
                handles_enable(served, &settings);
        bool has_tops = heaps_makes_handles() && !handles_refusal();
        version = span_of(gnu_get_libc_version());
        abilities =
                        span_of(!mallinfo2 ? "trim"
                                : has_tops ? "stats,trim,arena-tops"
                                           : "stats,trim");
        notice = span_of(
                        !mallinfo2 ? "no mallinfo2 (glibc 2.33): no statistics"
                        : !heaps_makes_handles()
                                        ? "linked: the tops of thread arenas are out of reach"
                                        : handles_refusal());
        heaps[0] = (struct mg_heap){ .backend = &backend_glibc, .serves_malloc = served };
        return 1;
}

/* Beside another allocator that serves the program, glibc's own heap has often never been used. */
static bool is_unused(const struct mg_heap *heap) {
        if (heap->serves_malloc || !mallinfo2)
                return false;
        struct mallinfo2 info = mallinfo2();
        return info.arena + info.hblkhd == 0;
}

static void describe(const struct mg_heap *heap, struct mg_heap_message *message) {
        message->text[MG_HEAP_VERSION] = version;
        message->text[MG_HEAP_OPTIONS] = options;
        message->text[MG_HEAP_CAN] = is_unused(heap) ? span_of("stats") : abilities;
        message->text[MG_HEAP_NOTICE] = notice;
}

static int stats(const struct mg_heap *heap, struct mg_heap_message *message) {
        if (!mallinfo2)
                return -EOPNOTSUPP;
        struct mallinfo2 info = mallinfo2();

        arenas_bytes = info.arena;
        message->number[MG_HEAP_LIVE_BYTES] = info.uordblks + info.hblkhd;
        message->number[MG_HEAP_SYSTEM_BYTES] = info.arena + info.hblkhd;
        message->number[MG_HEAP_FREEABLE_BYTES] = info.fordblks;
        message->number[MG_HEAP_FREE_CHUNKS] = info.ordblks + info.smblks;
        if (!handles_refusal()) {
                message->number[MG_HEAP_HANDLES] = handles_count();
                message->number[MG_HEAP_ARENAS] = handles_count() + 1;
        }
        return 0;
}

/* mlockall() says that page faults are worse than memory: its tops are no waste. */
static bool is_memory_locked(uint64_t rss_anon_bytes) {
        char *status = process_text[0];

        if (process_file_read(MG_PROCESS_MAIN_STATUS, status, MG_PROCESS_FILE_BYTES) < 0)
                return true;
        return rss_anon_bytes != MG_UNKNOWN && rights_locked_bytes(status) > rss_anon_bytes / 2;
}

static void trim(
                const struct mg_heap *heap,
                const struct mg_trim_request *request,
                struct mg_trim_outcome *ret_outcome) {
        bool complete = true;

        if (!malloc_trim) {
                *ret_outcome = (struct mg_trim_outcome){ .result = MG_RESULT_UNSUPPORTED,
                                                         .reason = "no malloc_trim" };
                return;
        }
        *ret_outcome = (struct mg_trim_outcome){ .result = MG_RESULT_DONE };
        uint64_t share = handles_largest_share_permyriad(arenas_bytes);
        struct mg_stopwatch watch;
        stopwatch_start(&watch);
        malloc_trim(request->pad_bytes);
        /* It locks one arena at a time, each for about its share of the heap. */
        ret_outcome->pause_usec = mg_scale(stopwatch_pause_usec(&watch), share, 10000);

        if (!request->arena_tops || handles_count() == 0)
                return;
        if (is_memory_locked(request->before_bytes)) {
                ret_outcome->reason = "arena tops: memory is locked";
                return;
        }
        uint64_t longest = handles_trim_tops(request, &complete);
        ret_outcome->pause_usec = MG_MAX(ret_outcome->pause_usec, longest);
        if (!complete)
                *ret_outcome = (struct mg_trim_outcome){ .result = MG_RESULT_PARTIAL,
                                                         .reason = "deadline or goal reached",
                                                         .pause_usec = ret_outcome->pause_usec };
}

const struct mg_backend backend_glibc = {
        .name = "glibc",
        .probe = probe,
        .describe = describe,
        .stats = stats,
        .trim = trim,
};
