/* SPDX-License-Identifier: MIT */
/*
 * What an agent says unasked: hello, checkpoint, suspend, resume; and what each allocator says of itself. Layer: daemon.
 *
 * Every string is one datagram's at most, so 4 KiB bound what a peer can make the daemon keep. Strings that have
 * not changed are not touched, so that statistics allocate nothing.
 */
#include "daemon/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/duty.h"
#include "base/macros.h"
#include "base/text.h"
#include "daemon/identity.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/process.h"
#include "daemon/store.h"
#include "daemon/tick.h"
#include "daemon/unit.h"

/* A pool of workers shares a unit; beyond this it is an accident or an attack. */
#define AGENTS_PER_UNIT 4096

/* More hellos than this within ten seconds are a restart of the daemon (or of the host): then first statistics are spread. */
#define HELLO_CROWD       20
#define HELLO_WINDOW_USEC (10 * MG_USEC_PER_SEC)
#define SPREAD_USEC       (30 * MG_USEC_PER_SEC)

static bool span_is(struct mg_span span, const char *string) {
        return string && strlen(string) == span.length &&
               memcmp(span.bytes, string, span.length) == 0;
}

/* An absent key says nothing new. */
static void keep_string(char **string, struct mg_span span) {
        char *copy;

        if (!span.bytes || span_is(span, *string))
                return;
        copy = strndup(span.bytes, span.length);
        if (!copy)
                return;
        free(*string);
        *string = copy;
}

static void done_heap(struct peer_heap *heap) {
        free(heap->allocator);
        free(heap->version);
        free(heap->prefix);
        free(heap->options);
        free(heap->notice);
        *heap = (struct peer_heap){};
}

void peer_done_strings(struct peer *peer) {
        for (size_t i = 0; i < MG_HEAPS_MAX; i++)
                done_heap(&peer->heaps[i]);
        free(peer->version);
        free(peer->mode);
        free(peer->thread);
        free(peer->suspend_reason);
}

static void take_heap(struct peer_heap *heap, const struct mg_heap_message *message) {
        struct mg_span can = message->text[MG_HEAP_CAN];

        /* Another allocator in this place (a library was loaded): nothing of the old one holds. */
        if (heap->allocator && !span_is(message->text[MG_HEAP_ALLOCATOR], heap->allocator))
                done_heap(heap);
        if (!heap->allocator)
                for (size_t i = 0; i < _MG_HEAP_NUMBER_MAX; i++)
                        heap->number[i] = MG_UNKNOWN;
        keep_string(&heap->allocator, message->text[MG_HEAP_ALLOCATOR]);
        keep_string(&heap->version, message->text[MG_HEAP_VERSION]);
        keep_string(&heap->prefix, message->text[MG_HEAP_PREFIX]);
        keep_string(&heap->options, message->text[MG_HEAP_OPTIONS]);
        keep_string(&heap->notice, message->text[MG_HEAP_NOTICE]);
        for (size_t i = 0; i < _MG_HEAP_NUMBER_MAX; i++)
                if (message->number[i] != MG_UNKNOWN)
                        heap->number[i] = message->number[i];
        if (!can.bytes)
                return;
        heap->can_stats = span_has_word(can, "stats");
        heap->can_trim = span_has_word(can, "trim");
        heap->can_tune = span_has_word(can, "tune");
}

void peer_take_heaps(struct peer *peer, const struct mg_message *message) {
        size_t n = proto_heap_count(message);

        for (size_t i = 0; i < n; i++)
                take_heap(&peer->heaps[i], &message->heap[i]);
        for (size_t i = n; i < peer->n_heaps; i++)
                done_heap(&peer->heaps[i]);
        peer->n_heaps = (uint32_t) n;
}

static int open_process(const struct peer *peer, struct unit *unit, struct process **ret_process) {
        struct mg_proc proc;
        int r;

        r = proc_open("/proc", peer->pid, &proc);
        if (r < 0)
                return r;
        if (proc.start_time != peer->start_time) {
                proc_close(&proc);
                return -ESRCH; /* the pid has been given to another process */
        }
        r = process_new(unit, &proc, peer->uid, ret_process);
        if (r < 0)
                proc_close(&proc);
        return r;
}

static int find_unit(struct peer *peer, struct unit **ret_unit) {
        struct process_unit found;
        struct unit_identity identity;
        int r = unit_of_process(peer->pid, peer->uid, peer->manager->own_unit_path, &found);

        if (r < 0)
                return r;
        identity = (struct unit_identity){
                .name = found.name,
                .path = found.path[0] ? found.path : NULL,
                .user = found.user,
                .user_uid = found.user_uid,
        };
        return unit_get(peer->manager, &identity, ret_unit);
}

/* What only shares a pseudo-unit's executable was a stopgap: agents say better who belongs to it. */
static void drop_strangers(struct unit *unit) {
        MG_LIST_FOREACH_SAFE(entry, &unit->processes)
                if (!process_of(entry)->had_agent)
                        process_free(process_of(entry));
}

/* It may have been moved to another cgroup, or have executed another program, which makes it another pseudo-unit's. */
static void leave_other_units(const struct process *process) {
        struct manager *manager = process->unit->manager;

        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                if (u != process->unit)
                        process_free(process_find(u, process->proc.pid, process->proc.start_time));
}

/* Gives the connection its process: an agent of the same process that was there before has been replaced. */
static int attach(struct peer *peer) {
        struct process *process;
        struct unit *unit;
        int r = find_unit(peer, &unit);

        if (r < 0)
                return r;
        if (unit->n_agents >= AGENTS_PER_UNIT)
                return -ENOSPC;
        process = process_find(unit, peer->pid, peer->start_time);
        if (process && process->peer)
                peer_close(process->peer, "replaced by a newer agent of the same process");
        if (process)
                process_renew(process); /* perhaps it has executed another program */
        else
                r = open_process(peer, unit, &process);
        if (r < 0)
                return r;
        leave_other_units(process);
        peer->process = process;
        process->peer = peer;
        if (unit->source == MG_SOURCE_PROC)
                store_load_state(unit);
        process->sample.has_agent = true;
        process->had_agent = true;
        unit->n_agents++;
        if (!unit->path)
                drop_strangers(unit);
        return 0;
}

static uint64_t first_stats_usec(struct peer *peer) {
        struct manager *manager = peer->manager;
        uint64_t now_usec = manager_now(manager);

        if (now_usec - manager->hello_window_usec > HELLO_WINDOW_USEC) {
                manager->hello_window_usec = now_usec;
                manager->hello_window_count = 0;
        }
        if (++manager->hello_window_count <= HELLO_CROWD)
                return now_usec;
        /* Neighbouring pids must not meet in one tick: a multiplicative hash scatters them. */
        return now_usec + (uint32_t) peer->pid * UINT64_C(2654435761) % SPREAD_USEC;
}

/* The agent's own word, where it gives one: it knows what happened while nobody listened. */
static void set_suspended(struct peer *peer, const struct mg_message *message, uint32_t counted) {
        uint64_t told = message->number[MG_NUMBER_SUSPENDED];

        peer->suspended = told == MG_UNKNOWN ? counted
                                             : (uint32_t) MG_MIN(told, (uint64_t) UINT32_MAX);
        peer->process->sample.suspended = peer->suspended > 0;
}

static void take_hello(struct peer *peer, const struct mg_message *message) {
        struct mg_process_sample *sample = &peer->process->sample;
        struct mg_span can = message->text[MG_TEXT_CAN];

        keep_string(&peer->version, message->text[MG_TEXT_VERSION]);
        keep_string(&peer->mode, message->text[MG_TEXT_MODE]);
        keep_string(&peer->thread, message->text[MG_TEXT_THREAD]);
        peer_take_heaps(peer, message);
        peer->can_tune = span_has_word(can, "tune");
        peer->can_shrink = span_has_word(can, "shrink");
        peer->stats_cost_usec = message->number[MG_NUMBER_STATS_COST_USEC];
        peer->stats_cost_bytes = message->number[MG_NUMBER_STATS_COST_BYTES];
        set_suspended(peer, message, 0);
        sample->base_bytes = message->number[MG_NUMBER_BASE_BYTES];
        sample->can_trim = span_has_word(can, "trim");
        for (size_t i = 0; i < peer->n_heaps; i++) {
                sample->can_trim |= peer->heaps[i].can_trim;
                peer->can_tune |= peer->heaps[i].can_tune;
        }
        peer->tune_pending = true;
}

/* An agent that looked just now, while the heap is young, says what it saw, and need not be asked the same again. */
static void take_first_stats(struct peer *peer, const struct mg_message *message) {
        uint64_t cost_usec = message->number[MG_NUMBER_STATS_COST_USEC];

        peer->stats_due_usec = first_stats_usec(peer);
        if (cost_usec == MG_UNKNOWN || peer->n_heaps == 0 ||
            message->heap[0].number[MG_HEAP_LIVE_BYTES] == MG_UNKNOWN)
                return;
        peer_take_stats(peer, message);
        peer->stats_due_usec = MG_MAX(
                        peer->stats_due_usec,
                        mg_add_cap(manager_now(peer->manager), duty_interval_usec(cost_usec)));
}

/* "jemalloc 5.3.0 (narenas:8 background_thread:false), glibc 2.36" */
static void tell_allocators(const struct peer *peer) {
        char buffer[1024];
        struct mg_text text;

        text_init(&text, buffer, sizeof(buffer));
        for (size_t i = 0; i < peer->n_heaps; i++) {
                const struct peer_heap *heap = &peer->heaps[i];

                text_put(&text, i > 0 ? ", " : "");
                text_put(&text, heap->allocator ?: "?");
                if (heap->version) {
                        text_put_char(&text, ' ');
                        text_put(&text, heap->version);
                }
                if (heap->options) {
                        text_put(&text, " (");
                        text_put(&text, heap->options);
                        text_put_char(&text, ')');
                }
                if (heap->notice) {
                        text_put(&text, ": ");
                        text_put(&text, heap->notice);
                }
        }
        journal_allocators(&(struct mg_journal_allocators){
                        .unit = { peer->process->unit->name, peer->process->unit->user },
                        .pid = peer->pid,
                        .command = peer->process->comm,
                        .agent_version = peer->version,
                        .text = buffer,
                        .again = told_before(
                                        &peer->manager->allocators_told,
                                        peer->process->unit->path ?: peer->process->unit->name,
                                        buffer),
        });
}

static const char *why_not_attached(int error) {
        switch (error) {
        case -ENOMEM:
                return "out of memory";
        case -EUSERS:
                return "its tree of cgroups has too many units";
        default:
                return "its process is gone";
        }
}

static int handle_hello(struct peer *peer, const struct mg_message *message) {
        int r;

        if (peer->state != PEER_CONNECTED)
                return -EBADMSG;
        if (message->number[MG_NUMBER_PROTOCOL] != MG_PROTOCOL_VERSION) {
                peer_fail(peer, "speaks another version of the protocol: connection closed");
                return 0;
        }
        r = attach(peer);
        if (r == -ENOSPC) {
                peer_fail(peer, "is one too many of its unit: connection closed");
                return 0;
        }
        if (r < 0) {
                peer_close(peer, why_not_attached(r));
                return 0;
        }
        take_hello(peer, message);
        peer->state = PEER_READY;
        take_first_stats(peer, message);
        (void) sd_event_source_set_enabled(peer->deadline_source, SD_EVENT_OFF);
        peer->manager->hellos++;
        peer->manager->agents_connected++;
        tell_allocators(peer);
        return 0;
}

static void handle_suspend(struct peer *peer, const struct mg_message *message) {
        keep_string(&peer->suspend_reason, message->text[MG_TEXT_REASON]);
        set_suspended(peer, message, peer->suspended + (peer->suspended < UINT32_MAX));
}

static void handle_resume(struct peer *peer, const struct mg_message *message) {
        set_suspended(peer, message, peer->suspended - (peer->suspended > 0));
}

static void on_looked(
                struct peer *peer,
                int status,
                const struct mg_message *reply,
                void *userdata) {
        if (status == 0 && !peer->closed)
                tick_soon(peer->process->unit);
}

/* The moment passes: what was freed is counted now, and decided upon before the program takes it again. */
static void handle_checkpoint(struct peer *peer) {
        struct unit *unit = peer->process->unit;

        unit->checkpoint_at_usec = manager_now(peer->manager);
        if (unit->config.mode != MG_MODE_OFF && !unit->round && !peer_is_busy(peer) &&
            peer_may_look(peer))
                (void) peer_ask_stats(peer, on_looked, NULL);
}

int peer_handle_news(struct peer *peer, const struct mg_message *message) {
        if (message->verb == MG_VERB_HELLO)
                return handle_hello(peer, message);
        if (peer->state != PEER_READY)
                return -EBADMSG;
        if (message->verb == MG_VERB_CHECKPOINT)
                handle_checkpoint(peer);
        else if (message->verb == MG_VERB_SUSPEND)
                handle_suspend(peer, message);
        else
                handle_resume(peer, message);
        return 0;
}
