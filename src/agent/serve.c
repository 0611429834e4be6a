/* SPDX-License-Identifier: MIT */
/* The agent's answers. Layer: agent; no allocation. */
#include "agent/serve.h"

#include <time.h>

#include "agent/arena_handles.h"
#include "agent/heaps.h"
#include "agent/hooks.h"
#include "agent/process.h"
#include "base/macros.h"
#include "base/text.h"

/* A slice that was shorter has held nobody up. */
#define REST_USEC 1000

atomic_bool trim_must_stop;

void serve_init(struct mg_server *server, const char *mode, const char *thread) {
        *server = (struct mg_server){ .mode = mode, .thread = thread };
        look_init(&server->look);
}

bool trim_is_over(const struct mg_trim_request *request) {
        uint64_t now_bytes;

        if (atomic_load(&trim_must_stop))
                return true;
        if (request->deadline_at_usec != MG_UNKNOWN &&
            process_now_usec() >= request->deadline_at_usec)
                return true;
        return request->goal_bytes > 0 && request->before_bytes != MG_UNKNOWN &&
               process_rss_anon(&now_bytes) == 0 &&
               mg_sub_floor(request->before_bytes, now_bytes) >= request->goal_bytes;
}

void trim_let_others_run(uint64_t pause_usec) {
        const struct timespec rest = { .tv_nsec = REST_USEC * 1000 };

        if (pause_usec >= REST_USEC)
                nanosleep(&rest, NULL);
}

static uint64_t read_rss_anon(void) {
        uint64_t bytes;

        return process_rss_anon(&bytes) < 0 ? MG_UNKNOWN : bytes;
}

static void put_word(struct mg_text *list, const char *word) {
        if (list->length > 0)
                text_put_char(list, ',');
        text_put(list, word);
}

static struct mg_span list_abilities(void) {
        static const char *const of_heaps[] = { "stats", "trim", "arena-tops", "tune" };
        static char buffer[64];
        struct mg_text list;

        text_init(&list, buffer, sizeof(buffer));
        for (size_t i = 0; i < MG_ELEMENTS(of_heaps); i++)
                if (heaps_can(of_heaps[i]))
                        put_word(&list, of_heaps[i]);
        /* Caches may be registered at any time, and hello comes once. */
        put_word(&list, "shrink");
        put_word(&list, "checkpoint");
        return span_of(buffer);
}

void serve_hello(struct mg_server *server, struct mg_message *ret_message) {
        uint64_t rss_anon = read_rss_anon();

        proto_init(ret_message, MG_VERB_HELLO);
        heaps_describe(ret_message);
        if (rss_anon != MG_UNKNOWN)
                look_take_young(&server->look, rss_anon, ret_message);
        ret_message->number[MG_NUMBER_PROTOCOL] = MG_PROTOCOL_VERSION;
        ret_message->number[MG_NUMBER_RSS_ANON_BYTES] = rss_anon;
        ret_message->number[MG_NUMBER_SUSPENDED] = hooks_suspended();
        look_recall(&server->look, ret_message);
        ret_message->text[MG_TEXT_VERSION] = span_of(MG_VERSION);
        ret_message->text[MG_TEXT_MODE] = span_of(server->mode);
        ret_message->text[MG_TEXT_THREAD] = span_of(server->thread);
        ret_message->text[MG_TEXT_CAN] = list_abilities();
}

static void serve_stats(
                struct mg_server *server,
                const struct mg_message *request,
                struct mg_message *reply) {
        uint64_t rss_anon = read_rss_anon();
        bool force = request->number[MG_NUMBER_FORCE] == 1;
        const char *refusal =
                        look_refusal(&server->look, rss_anon, process_now_usec(),
                                     request->number[MG_NUMBER_LIMIT_USEC]);

        proto_init(reply, MG_VERB_STATS_REPLY);
        reply->number[MG_NUMBER_HEAPS] = 0;
        reply->number[MG_NUMBER_RSS_ANON_BYTES] = rss_anon;
        reply->number[MG_NUMBER_SUSPENDED] = hooks_suspended();
        reply->number[MG_NUMBER_STATS_COST_USEC] = server->look.cost_usec;
        reply->number[MG_NUMBER_STATS_COST_BYTES] = server->look.cost_bytes;
        if (!heaps_can("stats")) {
                reply->number[MG_NUMBER_RESULT] = MG_RESULT_UNSUPPORTED;
                reply->text[MG_TEXT_REASON] = span_of("no allocator here has statistics");
        } else if (refusal && !force) {
                reply->number[MG_NUMBER_RESULT] = MG_RESULT_REFUSED;
                reply->text[MG_TEXT_REASON] = span_of(refusal);
        } else {
                heaps_name(reply);
                look_take(&server->look, rss_anon, reply);
                reply->number[MG_NUMBER_RESULT] = MG_RESULT_DONE;
                hooks_count_caches(
                                &reply->number[MG_NUMBER_CACHES],
                                &reply->number[MG_NUMBER_CACHE_BYTES]);
        }
}

/* A heap that cannot be trimmed makes all of it unsupported only when it is the one that matters. */
static void add_outcome(
                struct mg_message *reply,
                const struct mg_heap *heap,
                const struct mg_trim_outcome *outcome) {
        uint64_t *result = &reply->number[MG_NUMBER_RESULT];

        if (outcome->reason && (!reply->text[MG_TEXT_REASON].bytes || heap->serves_malloc))
                reply->text[MG_TEXT_REASON] = span_of(outcome->reason);
        if (*result == MG_UNKNOWN || heap->serves_malloc || *result == MG_RESULT_UNSUPPORTED)
                *result = outcome->result;
        reply->number[MG_NUMBER_PAUSE_USEC] =
                        MG_MAX(reply->number[MG_NUMBER_PAUSE_USEC], outcome->pause_usec);
}

static void trim_heaps(const struct mg_trim_request *request, struct mg_message *reply) {
        reply->number[MG_NUMBER_PAUSE_USEC] = 0;
        for (size_t i = 0; i < heaps_count(); i++) {
                struct mg_trim_outcome outcome = { .result = MG_RESULT_PARTIAL,
                                                   .reason = "deadline or goal reached" };
                if (i == 0 || !trim_is_over(request))
                        heaps_get(i)->backend->trim(heaps_get(i), request, &outcome);
                add_outcome(reply, heaps_get(i), &outcome);
        }
        if (heaps_count() == 0)
                reply->number[MG_NUMBER_RESULT] = MG_RESULT_UNSUPPORTED;
}

static struct mg_trim_request read_trim_request(const struct mg_message *message, uint64_t now) {
        uint64_t goal = message->number[MG_NUMBER_GOAL_BYTES];
        uint64_t pad = message->number[MG_NUMBER_PAD_BYTES];
        uint64_t deadline = message->number[MG_NUMBER_DEADLINE_USEC];

        return (struct mg_trim_request){
                .goal_bytes = goal == MG_UNKNOWN ? 0 : goal,
                .pad_bytes = pad == MG_UNKNOWN ? 0 : pad,
                .arena_tops = message->number[MG_NUMBER_ARENA_TOPS] == 1,
                .deadline_at_usec = deadline == MG_UNKNOWN ? MG_UNKNOWN : mg_add_cap(now, deadline),
                .before_bytes = read_rss_anon(),
        };
}

static void serve_trim(const struct mg_message *request, struct mg_message *reply) {
        uint64_t started = process_now_usec();

        proto_init(reply, MG_VERB_TRIM_REPLY);
        if (hooks_suspended() > 0) {
                reply->number[MG_NUMBER_RESULT] = MG_RESULT_REFUSED;
                reply->text[MG_TEXT_REASON] = span_of("suspended by the program");
                return;
        }
        struct mg_trim_request trim = read_trim_request(request, started);
        uint64_t cpu = process_thread_cpu_usec(), faults = process_minor_faults();
        if (request->number[MG_NUMBER_SHRINK] == 1)
                reply->number[MG_NUMBER_SHRUNK_BYTES] = hooks_shrink_caches(trim.goal_bytes);
        trim_heaps(&trim, reply);
        reply->number[MG_NUMBER_BEFORE_BYTES] = trim.before_bytes;
        reply->number[MG_NUMBER_AFTER_BYTES] = read_rss_anon();
        reply->number[MG_NUMBER_DURATION_USEC] = process_now_usec() - started;
        reply->number[MG_NUMBER_CPU_USEC] = process_thread_cpu_usec() - cpu;
        if (faults != MG_UNKNOWN)
                reply->number[MG_NUMBER_MINOR_FAULTS] = process_minor_faults() - faults;
}

static void serve_tune(const struct mg_message *request, struct mg_message *reply) {
        uint64_t wanted = request->number[MG_NUMBER_BACKGROUND_THREAD];

        proto_init(reply, MG_VERB_TUNE_REPLY);
        reply->number[MG_NUMBER_RESULT] = MG_RESULT_UNSUPPORTED;
        reply->text[MG_TEXT_REASON] = span_of("no allocator here has this setting");
        for (size_t i = 0; wanted <= 1 && i < heaps_count(); i++) {
                struct mg_tune_outcome outcome;
                if (!heaps_get(i)->backend->tune)
                        continue;
                heaps_get(i)->backend->tune(heaps_get(i), wanted == 1, &outcome);
                reply->number[MG_NUMBER_RESULT] = outcome.result;
                reply->number[MG_NUMBER_BACKGROUND_THREAD] = outcome.background_thread;
                reply->text[MG_TEXT_REASON] = span_of(outcome.reason);
        }
        heaps_describe(reply);
}

int serve_request(
                struct mg_server *server,
                const struct mg_message *request,
                struct mg_message *ret_reply) {
        switch (request->verb) {
        case MG_VERB_STATS:
                serve_stats(server, request, ret_reply);
                break;
        case MG_VERB_TRIM:
                serve_trim(request, ret_reply);
                break;
        case MG_VERB_TUNE:
                serve_tune(request, ret_reply);
                break;
        case MG_VERB_PING:
                proto_init(ret_reply, MG_VERB_PONG);
                break;
        case MG_VERB_UNSUPPORTED:
                return 0;
        case MG_VERB_UNKNOWN:
        case MG_VERB_HELLO:
        case MG_VERB_STATS_REPLY:
        case MG_VERB_TRIM_REPLY:
        case MG_VERB_TUNE_REPLY:
        case MG_VERB_CHECKPOINT:
        case MG_VERB_SUSPEND:
        case MG_VERB_RESUME:
        case MG_VERB_PONG:
        case _MG_VERB_MAX:
                proto_init(ret_reply, MG_VERB_UNSUPPORTED);
                break;
        }
        ret_reply->number[MG_NUMBER_ID] = request->number[MG_NUMBER_ID];
        return 1;
}
