/* SPDX-License-Identifier: MIT */
/*
 * tcmalloc as gperftools has it, by its C interface. What its page heap holds free is exactly what a release gives back; what
 * its caches and half-used spans hold is out of reach (measured: 16 KiB blocks 491 -> 42 MiB, 512 B of which one in 7 is
 * kept: nothing). Released in slices of 64 MiB: the page heap is locked meanwhile, 79 ms a GiB.
 *
 * A call releases whole spans. What that is beyond the slice tcmalloc keeps as credit, also from one trim to the next, and
 * later calls return at once until it is used up: a call that brings nothing is no sign that nothing is left. Layer: agent.
 */
#include <errno.h>

#include "agent/backend.h"
#include "agent/heaps.h"
#include "agent/process.h"
#include "base/macros.h"
#include "base/text.h"

extern int MallocExtension_GetNumericProperty(const char *property, size_t *value)
                __attribute__((weak));
extern void MallocExtension_ReleaseToSystem(size_t bytes) __attribute__((weak));
extern const char *tc_version(int *major, int *minor, const char **patch) __attribute__((weak));

#define SLICE_BYTES (64 * MG_MIB)

static char version_text[32];

static uint64_t read_property(const char *name) {
        size_t value;

        return MallocExtension_GetNumericProperty(name, &value) ? value : MG_UNKNOWN;
}

static size_t probe(struct mg_heap *heaps, size_t room) {
        if (!MallocExtension_GetNumericProperty || !MallocExtension_ReleaseToSystem ||
            !tc_version || room == 0)
                return 0;
        heaps[0] = (struct mg_heap){ .backend = &backend_tcmalloc,
                                     .serves_malloc = heaps_serves_malloc(
                                                     (const void *) tc_version) };
        return 1;
}

static void describe(const struct mg_heap *heap, struct mg_heap_message *message) {
        int major = 0, minor = 0;
        const char *patch = "";
        struct mg_text text;

        tc_version(&major, &minor, &patch);
        text_init(&text, version_text, sizeof(version_text));
        text_put_u64(&text, (uint64_t) MG_MAX(major, 0));
        text_put_char(&text, '.');
        text_put_u64(&text, (uint64_t) MG_MAX(minor, 0));
        text_put(&text, patch);
        message->text[MG_HEAP_VERSION] = span_of(version_text);
        message->text[MG_HEAP_CAN] = span_of("stats,trim");
}

static int stats(const struct mg_heap *heap, struct mg_heap_message *message) {
        uint64_t system = read_property("generic.heap_size");
        uint64_t unmapped = read_property("tcmalloc.pageheap_unmapped_bytes");

        if (system == MG_UNKNOWN)
                return -EOPNOTSUPP;
        message->number[MG_HEAP_LIVE_BYTES] = read_property("generic.current_allocated_bytes");
        message->number[MG_HEAP_SYSTEM_BYTES] = system;
        message->number[MG_HEAP_FREEABLE_BYTES] = read_property("tcmalloc.pageheap_free_bytes");
        if (unmapped != MG_UNKNOWN)
                message->number[MG_HEAP_RESIDENT_BYTES] = mg_sub_floor(system, unmapped);
        return 0;
}

/*
 * So many release FREE_BYTES whatever the credit, which cannot exceed the heap. A program that meanwhile frees and takes again
 * makes them no more.
 */
static uint64_t slices_for(uint64_t free_bytes) {
        uint64_t system = read_property("generic.heap_size");

        return (free_bytes + (system == MG_UNKNOWN ? 0 : system)) / SLICE_BYTES + 1;
}

static void trim(
                const struct mg_heap *heap,
                const struct mg_trim_request *request,
                struct mg_trim_outcome *ret_outcome) {
        uint64_t free_bytes = read_property("tcmalloc.pageheap_free_bytes");

        if (free_bytes == MG_UNKNOWN) {
                *ret_outcome = (struct mg_trim_outcome){
                        .result = MG_RESULT_UNSUPPORTED, .reason = "this tcmalloc has no page heap"
                };
                return;
        }
        *ret_outcome = (struct mg_trim_outcome){ .result = MG_RESULT_DONE };
        uint64_t slices = slices_for(free_bytes);
        for (uint64_t slice = 0; slice < slices && free_bytes > 0 && free_bytes != MG_UNKNOWN;
             slice++) {
                if (slice > 0 && trim_is_over(request)) {
                        ret_outcome->result = MG_RESULT_PARTIAL;
                        ret_outcome->reason = "deadline or goal reached";
                        break;
                }
                struct mg_stopwatch watch;
                stopwatch_start(&watch);
                MallocExtension_ReleaseToSystem(SLICE_BYTES);
                uint64_t pause = stopwatch_pause_usec(&watch);
                ret_outcome->pause_usec = MG_MAX(ret_outcome->pause_usec, pause);
                free_bytes = read_property("tcmalloc.pageheap_free_bytes");
                trim_let_others_run(pause);
        }
}

const struct mg_backend backend_tcmalloc = {
        .name = "tcmalloc",
        .probe = probe,
        .describe = describe,
        .stats = stats,
        .trim = trim,
};
