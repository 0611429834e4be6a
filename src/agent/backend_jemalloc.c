/* SPDX-License-Identifier: MIT */
/*
 * jemalloc, under whatever prefix it was built with: everything goes through its mallctl(). Names are turned into
 * MIBs once. Its statistics may be compiled out; purging works without. Layer: agent.
 *
 * "stats.retained" is address space that was given back, not memory: it is added to nothing. What a purge yields is
 * resident - active - metadata. Purging goes arena by arena, so that a slice is one arena's dirty pages.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

#include "agent/backend.h"
#include "agent/executable.h"
#include "agent/heaps.h"
#include "agent/jemalloc.h"
#include "agent/process.h"
#include "base/macros.h"
#include "base/text.h"

/* The names under which it is linked dynamically; any other is found in the executable's symbol table. */
#define DECLARE_PREFIX(prefix)                                                                    \
        extern int prefix##mallctl(const char *, void *, size_t *, void *, size_t)                \
                        __attribute__((weak));                                                    \
        extern int prefix##mallctlnametomib(const char *, size_t *, size_t *)                     \
                        __attribute__((weak));                                                    \
        extern int prefix##mallctlbymib(const size_t *, size_t, void *, size_t *, void *, size_t) \
                        __attribute__((weak))
#define CALLS_OF(prefix) \
        { prefix##mallctl, prefix##mallctlnametomib, prefix##mallctlbymib }

DECLARE_PREFIX();
DECLARE_PREFIX(je_);
DECLARE_PREFIX(_rjem_);
extern const char *gnu_get_libc_version(void) __attribute__((weak));

#define MAX_INSTANCES 3
#define MAX_PREFIX    32
#define MIB_WORDS     4

enum stat {
        STAT_ALLOCATED,
        STAT_ACTIVE,
        STAT_METADATA,
        STAT_RESIDENT,
        STAT_MAPPED,
        STAT_RETAINED,
        _STAT_MAX,
};

static const char *const stat_names[_STAT_MAX] = { "stats.allocated", "stats.active",
                                                   "stats.metadata",  "stats.resident",
                                                   "stats.mapped",    "stats.retained" };

struct mib {
        size_t words[MIB_WORDS];
        size_t length; /* 0: this build lacks it */
};

struct instance {
        struct mg_jemalloc_calls calls;
        bool is_ready;
        bool was_forked;
        bool is_tuned; /* background threads were switched on request */
        bool tuned_background;
        struct mib epoch, purge, stats[_STAT_MAX];
        char prefix[MAX_PREFIX];
        char options[256];
        const char *version;
        const char *notice;
};

static struct instance instances[MAX_INSTANCES];
static size_t n_instances;
static bool asked_by_environment; /* MALLOC_CONF is set, and no prefixed form of it */
static bool has_unprefixed;       /* an instance that does read it */

static int get(const struct instance *jemalloc, const char *name, void *value, size_t size) {
        size_t got = size;
        int r = jemalloc->calls.ctl(name, value, &got, NULL, 0);
        return r == 0 && got == size ? 0 : -ENOENT;
}

static void resolve(const struct instance *jemalloc, const char *name, struct mib *mib) {
        mib->length = MIB_WORDS;
        if (jemalloc->calls.name_to_mib(name, mib->words, &mib->length) != 0)
                mib->length = 0;
}

static void put_name(struct mg_text *text, const char *label) {
        if (text->length > 0)
                text_put_char(text, ' ');
        text_put(text, label);
        text_put_char(text, ':');
}

static void put_bool(
                const struct instance *jemalloc,
                struct mg_text *text,
                const char *name,
                const char *label) {
        bool value;

        if (get(jemalloc, name, &value, sizeof(value)) < 0)
                return;
        put_name(text, label);
        text_put(text, value ? "true" : "false");
}

static void put_decay(
                const struct instance *jemalloc,
                struct mg_text *text,
                const char *name,
                const char *label) {
        ssize_t value;

        if (get(jemalloc, name, &value, sizeof(value)) < 0)
                return;
        put_name(text, label);
        if (value < 0)
                text_put_char(text, '-');
        text_put_u64(text, (uint64_t) (value < 0 ? -value : value));
}

static unsigned count_arenas(const struct instance *jemalloc) {
        unsigned n;

        return get(jemalloc, "arenas.narenas", &n, sizeof(n)) < 0 ? 0 : n;
}

static void read_options(struct instance *jemalloc) {
        const char *compiled_in = NULL;
        struct mg_text text;

        text_init(&text, jemalloc->options, sizeof(jemalloc->options));
        put_name(&text, "narenas");
        text_put_u64(&text, count_arenas(jemalloc));
        put_bool(jemalloc, &text, "background_thread", "background_thread");
        put_decay(jemalloc, &text, "opt.dirty_decay_ms", "dirty_decay_ms");
        put_decay(jemalloc, &text, "opt.muzzy_decay_ms", "muzzy_decay_ms");
        put_bool(jemalloc, &text, "opt.retain", "retain");
        if (get(jemalloc, "config.malloc_conf", &compiled_in, sizeof(compiled_in)) == 0 &&
            compiled_in && *compiled_in) {
                put_name(&text, "compiled_in");
                text_put(&text, compiled_in);
        }
}

static bool is_background_on(const struct instance *jemalloc) {
        bool on;

        return get(jemalloc, "background_thread", &on, sizeof(on)) == 0 && on;
}

static int set_background(const struct instance *jemalloc, bool on) {
        return -jemalloc->calls.ctl("background_thread", NULL, NULL, &on, sizeof(on));
}

/* Whether the program wants background threads: as a tune has left it, else as its options say. */
static bool wants_background(const struct instance *jemalloc) {
        bool asked = false;

        if (jemalloc->is_tuned)
                return jemalloc->tuned_background;
        get(jemalloc, "opt.background_thread", &asked, sizeof(asked));
        return asked;
}

/* First use, in the agent's thread: the program has long run its constructors by then. */
static void make_ready(struct instance *jemalloc) {
        const char *name = NULL;
        bool has_stats = false;

        if (jemalloc->was_forked && wants_background(jemalloc) && !is_background_on(jemalloc))
                set_background(jemalloc, true);
        jemalloc->was_forked = false;
        if (jemalloc->is_ready)
                return;
        jemalloc->is_ready = true;
        if (get(jemalloc, "version", &name, sizeof(name)) == 0)
                jemalloc->version = name;
        get(jemalloc, "config.stats", &has_stats, sizeof(has_stats));
        resolve(jemalloc, "epoch", &jemalloc->epoch);
        resolve(jemalloc, "arena.0.purge", &jemalloc->purge);
        for (int i = 0; has_stats && i < _STAT_MAX; i++)
                resolve(jemalloc, stat_names[i], &jemalloc->stats[i]);
        if (!has_stats && !jemalloc->notice)
                jemalloc->notice = "built without statistics: live bytes unknown, trim works";
}

void jemalloc_after_fork(void) {
        for (size_t i = 0; i < n_instances; i++)
                instances[i].was_forked = true;
}

/* A build with a prefix reads its options under that prefix only, and says nothing about the others. */
static const char *find_ignored_options(const char *prefix, bool has_symbol) {
        if (!*prefix || has_unprefixed)
                return NULL;
        if (has_symbol)
                return "malloc_conf is not in effect: this build reads it with its prefix";
        if (asked_by_environment)
                return "MALLOC_CONF is not in effect: this build reads it with its prefix";
        return NULL;
}

static bool is_known(const struct mg_jemalloc_calls *calls) {
        for (size_t i = 0; i < n_instances; i++)
                if (instances[i].calls.ctl == calls->ctl)
                        return true;
        return false;
}

static bool add_instance(
                const struct mg_jemalloc_calls *calls,
                const char *prefix,
                bool has_symbol,
                struct mg_heap *ret_heap) {
        if (!calls->ctl || !calls->name_to_mib || !calls->by_mib || is_known(calls) ||
            n_instances == MAX_INSTANCES || strlen(prefix) >= MAX_PREFIX)
                return false;
        struct instance *jemalloc = &instances[n_instances];
        *jemalloc = (struct instance){ .calls = *calls };
        memcpy(jemalloc->prefix, prefix, strlen(prefix));
        has_unprefixed |= !*prefix;
        jemalloc->notice = find_ignored_options(jemalloc->prefix, has_symbol);
        *ret_heap = (struct mg_heap){ .backend = &backend_jemalloc,
                                      .instance = (unsigned) n_instances };
        n_instances++;
        return true;
}

static size_t probe(struct mg_heap *heaps, size_t room) {
        static const char *const prefixes[] = { "", "je_", "_rjem_" };
        const struct mg_jemalloc_calls found[] = { CALLS_OF(), CALLS_OF(je_), CALLS_OF(_rjem_) };
        size_t n = 0;

        asked_by_environment = getenv("MALLOC_CONF") && !getenv("JE_MALLOC_CONF") &&
                               !getenv("_RJEM_MALLOC_CONF");
        for (size_t i = 0; i < MG_ELEMENTS(found) && n < room; i++) {
                if (!add_instance(&found[i], prefixes[i], false, &heaps[n]))
                        continue;
                heaps[n].serves_malloc = heaps_serves_malloc((const void *) found[i].ctl);
                n++;
        }
        return n;
}

/* What is linked statically and exported to nobody. */
static size_t probe_file(const struct mg_symbols *symbols, struct mg_heap *heaps, size_t room) {
        uintptr_t base = symbols->is_relocatable ? executable_load_base() : 0;
        size_t n = 0;

        for (size_t i = 0; i < symbols->n_sets && n < room; i++) {
                const struct mg_symbol_set *set = &symbols->set[i];
                const struct mg_jemalloc_calls calls = {
                        (mg_mallctl_fn) (base + set->mallctl),
                        (mg_mallctlnametomib_fn) (base + set->mallctlnametomib),
                        (mg_mallctlbymib_fn) (base + set->mallctlbymib),
                };
                if (!add_instance(&calls, set->prefix, symbols->has_malloc_conf, &heaps[n]))
                        continue;
                heaps[n].serves_malloc = !*set->prefix && heaps_malloc_is_in_executable();
                n++;
        }
        return n;
}

static void describe(const struct mg_heap *heap, struct mg_heap_message *message) {
        struct instance *jemalloc = &instances[heap->instance];

        make_ready(jemalloc);
        read_options(jemalloc);
        message->text[MG_HEAP_VERSION] = span_of(jemalloc->version);
        message->text[MG_HEAP_PREFIX] = span_of(jemalloc->prefix);
        message->text[MG_HEAP_OPTIONS] = span_of(jemalloc->options);
        message->text[MG_HEAP_CAN] =
                        span_of(jemalloc->stats[STAT_ALLOCATED].length > 0 ? "stats,trim,tune"
                                                                           : "trim,tune");
        message->text[MG_HEAP_NOTICE] = span_of(jemalloc->notice);
}

static uint64_t read_stat(const struct instance *jemalloc, enum stat stat) {
        const struct mib *mib = &jemalloc->stats[stat];
        size_t value, size = sizeof(value);

        if (mib->length == 0 ||
            jemalloc->calls.by_mib(mib->words, mib->length, &value, &size, NULL, 0) != 0)
                return MG_UNKNOWN;
        return value;
}

static int stats(const struct mg_heap *heap, struct mg_heap_message *message) {
        struct instance *jemalloc = &instances[heap->instance];
        uint64_t epoch = 1, value[_STAT_MAX];
        size_t size = sizeof(epoch);

        make_ready(jemalloc);
        if (jemalloc->epoch.length == 0 || jemalloc->stats[STAT_ALLOCATED].length == 0)
                return -EOPNOTSUPP;
        jemalloc->calls.by_mib(
                        jemalloc->epoch.words, jemalloc->epoch.length, &epoch, &size, &epoch, size);
        for (int i = 0; i < _STAT_MAX; i++)
                value[i] = read_stat(jemalloc, (enum stat) i);
        message->number[MG_HEAP_LIVE_BYTES] = value[STAT_ALLOCATED];
        message->number[MG_HEAP_SYSTEM_BYTES] = value[STAT_MAPPED];
        message->number[MG_HEAP_RESIDENT_BYTES] = value[STAT_RESIDENT];
        message->number[MG_HEAP_METADATA_BYTES] = value[STAT_METADATA];
        message->number[MG_HEAP_ACTIVE_BYTES] = value[STAT_ACTIVE];
        message->number[MG_HEAP_ADDRESS_SPACE_BYTES] = value[STAT_RETAINED];
        if (value[STAT_RESIDENT] != MG_UNKNOWN && value[STAT_ACTIVE] != MG_UNKNOWN &&
            value[STAT_METADATA] != MG_UNKNOWN)
                message->number[MG_HEAP_FREEABLE_BYTES] =
                                mg_sub_floor(value[STAT_RESIDENT],
                                             mg_add_cap(value[STAT_ACTIVE], value[STAT_METADATA]));
        message->number[MG_HEAP_ARENAS] = count_arenas(jemalloc);
        return 0;
}

static void trim(
                const struct mg_heap *heap,
                const struct mg_trim_request *request,
                struct mg_trim_outcome *ret_outcome) {
        struct instance *jemalloc = &instances[heap->instance];

        make_ready(jemalloc);
        *ret_outcome = (struct mg_trim_outcome){ .result = MG_RESULT_UNSUPPORTED,
                                                 .reason = "this jemalloc has no purge" };
        if (jemalloc->purge.length != 3)
                return;
        *ret_outcome = (struct mg_trim_outcome){ .result = MG_RESULT_DONE };
        unsigned n_arenas = count_arenas(jemalloc);
        for (unsigned arena = 0; arena < n_arenas; arena++) {
                if (arena > 0 && trim_is_over(request)) {
                        ret_outcome->result = MG_RESULT_PARTIAL;
                        ret_outcome->reason = "deadline or goal reached";
                        break;
                }
                struct mib purge = jemalloc->purge;
                purge.words[1] = arena;
                struct mg_stopwatch watch;
                stopwatch_start(&watch);
                jemalloc->calls.by_mib(purge.words, purge.length, NULL, NULL, NULL, 0);
                uint64_t pause = stopwatch_pause_usec(&watch);
                ret_outcome->pause_usec = MG_MAX(ret_outcome->pause_usec, pause);
                trim_let_others_run(pause);
        }
}

static void tune(
                const struct mg_heap *heap,
                bool background_thread,
                struct mg_tune_outcome *ret_outcome) {
        struct instance *jemalloc = &instances[heap->instance];
        bool on;

        make_ready(jemalloc);
        *ret_outcome = (struct mg_tune_outcome){
                .result = MG_RESULT_UNSUPPORTED,
                .reason = "this jemalloc has no background threads",
                .background_thread = MG_UNKNOWN
        };
        if (get(jemalloc, "background_thread", &on, sizeof(on)) < 0)
                return;
        /* On other libcs jemalloc finds pthread_create in a way that has crashed programs. */
        if (background_thread && !gnu_get_libc_version)
                *ret_outcome = (struct mg_tune_outcome){ .result = MG_RESULT_REFUSED,
                                                         .reason = "background threads need glibc",
                                                         .background_thread = on };
        else if (set_background(jemalloc, background_thread) < 0)
                *ret_outcome = (struct mg_tune_outcome){ .result = MG_RESULT_REFUSED,
                                                         .reason = "jemalloc refused",
                                                         .background_thread = on };
        else
                *ret_outcome = (struct mg_tune_outcome){
                        .result = MG_RESULT_DONE, .background_thread = is_background_on(jemalloc)
                };
        jemalloc->is_tuned = true;
        jemalloc->tuned_background = is_background_on(jemalloc);
}

const struct mg_backend backend_jemalloc = {
        .name = "jemalloc",
        .probe = probe,
        .probe_file = probe_file,
        .describe = describe,
        .stats = stats,
        .trim = trim,
        .tune = tune,
};
