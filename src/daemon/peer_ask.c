/* SPDX-License-Identifier: MIT */
/*
 * What the daemon asks of an agent by itself: to tune, statistics, a ping. Layer: daemon.
 *
 * Statistics walk the allocator's free chunks under its locks, so the duty limit comes first: never more than its share
 * of wall time, never longer than MaxPause= in one go. Within that, a heap that may hold something worth a trim is looked at
 * each tick, because freeing moves no number of the cgroup; any other once a minute.
 */
#include "daemon/peer.h"

#include <errno.h>

#include "base/duty.h"
#include "base/macros.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/process.h"
#include "daemon/unit.h"

#define STATS_INTERVAL_USEC MG_USEC_PER_MIN
#define PING_INTERVAL_USEC  MG_USEC_PER_MIN

/* How far ahead of the duty limit the looks around a trim may go. */
#define STATS_CREDIT_USEC (50 * MG_USEC_PER_SEC)

/* A first look at a heap larger than this is worth a line: it may take a while. */
#define LARGE_HEAP_BYTES (256 * MG_MIB)

static uint64_t now_bytes_of(const struct peer *peer) {
        uint64_t bytes = peer->process->sample.rss_anon_bytes;

        return bytes == MG_UNKNOWN ? 0 : bytes;
}

/* MG_UNKNOWN: nobody has measured yet, neither here nor in an earlier process of the unit. */
static uint64_t predict_cost(const struct peer *peer) {
        const struct unit *unit = peer->process->unit;

        if (peer->stats_cost_usec == MG_UNKNOWN)
                return policy_predict_statistics(&unit->policy, now_bytes_of(peer));
        if (peer->stats_cost_bytes == MG_UNKNOWN)
                return peer->stats_cost_usec;
        return duty_predict_usec(peer->stats_cost_usec, peer->stats_cost_bytes, now_bytes_of(peer));
}

static bool has_statistics(const struct peer *peer) {
        for (size_t i = 0; i < peer->n_heaps; i++)
                if (peer->heaps[i].can_stats)
                        return true;
        return false;
}

static bool may_ask_stats(const struct peer *peer, uint64_t now_usec) {
        const struct mg_unit_config *config = &peer->process->unit->config;
        uint64_t cost = predict_cost(peer);

        if (!config->statistics || peer->unresponsive || !has_statistics(peer) ||
            now_usec < peer->stats_due_usec)
                return false;
        return cost == MG_UNKNOWN ? !peer->stats_forced : cost <= config->max_pause_usec;
}

/*
 * A heap that has doubled since it was looked at, and is too dear to be looked at again: what it said then says nothing now, and to
 * take all of its growth for live would be a guess.
 */
static void forget_outgrown_stats(struct peer *peer) {
        struct mg_process_sample *sample = &peer->process->sample;
        uint64_t cost;

        if (now_bytes_of(peer) <= mg_add_cap(sample->stats_rss_bytes, sample->stats_rss_bytes))
                return;
        cost = predict_cost(peer);
        if (cost != MG_UNKNOWN && cost > peer->process->unit->config.max_pause_usec)
                sample->live_bytes = MG_UNKNOWN;
}

bool peer_may_ask_stats(const struct peer *peer, uint64_t now_usec) {
        return peer->process->unit->config.mode != MG_MODE_OFF && may_ask_stats(peer, now_usec);
}

/* In Mode=off nobody but an operator's hand begins a round. */
bool peer_may_look(const struct peer *peer) {
        return !peer->closed && may_ask_stats(peer, manager_now(peer->manager) + STATS_CREDIT_USEC);
}

static void tell_of_large(const struct peer *peer) {
        const struct unit *unit = peer->process->unit;

        journal_statistics_large(&(struct mg_journal_statistics_large){
                        .unit = { unit->name, unit->user },
                        .pid = peer->pid,
                        .command = peer->process->comm,
                        .rss_anon_bytes = peer->stats_forced_bytes,
                        .cost_usec = peer->stats_cost_usec,
        });
}

static void learn_cost(struct peer *peer, const struct mg_message *reply, uint64_t elapsed_usec) {
        bool first = peer->stats_cost_usec == MG_UNKNOWN;
        uint64_t cost = reply->number[MG_NUMBER_STATS_COST_USEC];
        uint64_t bytes = reply->number[MG_NUMBER_STATS_COST_BYTES];

        /* It cannot have taken longer than the daemon waited. */
        if (cost != MG_UNKNOWN)
                peer->stats_cost_usec = MG_MIN(cost, elapsed_usec);
        else if (peer->stats_cost_usec == MG_UNKNOWN)
                peer->stats_cost_usec = elapsed_usec;
        if (bytes != MG_UNKNOWN && bytes > 0)
                peer->stats_cost_bytes = bytes;
        policy_learn_statistics(
                        &peer->process->unit->policy, peer->stats_cost_usec, now_bytes_of(peer));
        if (first && peer->stats_forced && peer->stats_forced_bytes > LARGE_HEAP_BYTES)
                tell_of_large(peer);
}

/* The sum over the heaps, or MG_UNKNOWN where one does not say: half a sum would be taken for a whole. */
static uint64_t sum_heaps(const struct peer *peer, enum mg_heap_number number) {
        uint64_t sum = 0;

        for (size_t i = 0; i < peer->n_heaps; i++) {
                if (peer->heaps[i].number[number] == MG_UNKNOWN)
                        return MG_UNKNOWN;
                sum = mg_add_cap(sum, peer->heaps[i].number[number]);
        }
        return peer->n_heaps > 0 ? sum : MG_UNKNOWN;
}

/* These allocators give back in slices, between which every thread goes on. */
static bool is_sliced(const struct peer *peer) {
        for (size_t i = 0; i < peer->n_heaps; i++) {
                const struct peer_heap *heap = &peer->heaps[i];

                if (heap->number[MG_HEAP_SERVES_MALLOC] == 1 && heap->allocator)
                        return mg_streq(heap->allocator, "jemalloc") ||
                               mg_streq(heap->allocator, "tcmalloc");
        }
        return false;
}

void peer_take_stats(struct peer *peer, const struct mg_message *reply) {
        struct mg_process_sample *sample = &peer->process->sample;

        peer_take_heaps(peer, reply);
        if (proc_rss_anon(&peer->process->proc, &sample->rss_anon_bytes) < 0)
                sample->rss_anon_bytes = MG_UNKNOWN;
        sample->stats_rss_bytes = sample->rss_anon_bytes;
        sample->live_bytes = sum_heaps(peer, MG_HEAP_LIVE_BYTES);
        sample->system_bytes = sum_heaps(peer, MG_HEAP_SYSTEM_BYTES);
        sample->estimate_bytes = sum_heaps(peer, MG_HEAP_FREEABLE_BYTES);
        sample->free_chunks = sum_heaps(peer, MG_HEAP_FREE_CHUNKS);
        sample->arenas = sum_heaps(peer, MG_HEAP_ARENAS);
        sample->cache_bytes = reply->number[MG_NUMBER_CACHE_BYTES];
        sample->sliced = is_sliced(peer);
        sample->stats_at_usec = manager_now(peer->manager);
        if (reply->number[MG_NUMBER_SUSPENDED] != MG_UNKNOWN) {
                peer->suspended = (uint32_t) MG_MIN(
                                reply->number[MG_NUMBER_SUSPENDED], (uint64_t) UINT32_MAX);
                sample->suspended = peer->suspended > 0;
        }
}

/* Refused, or not answered: asked again soon, then ever more seldom. */
static void put_off(
                struct peer *peer,
                int status,
                const struct mg_message *reply,
                uint64_t now_usec) {
        uint64_t delay_usec = peer->manager->settings.interval_usec
                              << MG_MIN(peer->stats_refused, 8U);

        peer->stats_refused++;
        peer->stats_due_usec = now_usec + MG_MIN(delay_usec, STATS_INTERVAL_USEC);
        if (status == 0)
                journal_log(LOG_DEBUG, NULL, "Agent of pid %d: statistics %s: %.*s",
                            (int) peer->pid, result_to_string(reply->number[MG_NUMBER_RESULT]),
                            (int) reply->text[MG_TEXT_REASON].length,
                            reply->text[MG_TEXT_REASON].bytes ?: "");
}

static void on_stats(
                struct peer *peer,
                int status,
                const struct mg_message *reply,
                void *userdata) {
        uint64_t now_usec = manager_now(peer->manager);
        uint64_t earliest_usec = peer->stats_due_usec;

        if (peer->closed)
                return;
        if (status < 0 || reply->number[MG_NUMBER_RESULT] != MG_RESULT_DONE) {
                put_off(peer, status, reply, now_usec);
                return;
        }
        peer->stats_refused = 0;
        learn_cost(peer, reply, now_usec - peer->stats_sent_usec);
        peer_take_stats(peer, reply);
        peer->stats_due_usec =
                        mg_add_cap(MG_MAX(earliest_usec, peer->stats_sent_usec),
                                   duty_interval_usec(predict_cost(peer)));
}

void peer_take_late_stats(struct peer *peer, const struct mg_message *reply) {
        if (peer->process && peer->stats_cost_usec == MG_UNKNOWN &&
            reply->number[MG_NUMBER_RESULT] == MG_RESULT_DONE)
                learn_cost(peer, reply, manager_now(peer->manager) - peer->stats_sent_usec);
}

/* Two handlers for one reply: the peer's own first, so that the second finds the sample filled. */
static void on_stats_then(
                struct peer *peer,
                int status,
                const struct mg_message *reply,
                void *userdata) {
        peer_reply_handler then = MG_TAKE(peer->stats_handler);

        on_stats(peer, status, reply, NULL);
        if (then)
                then(peer, status, reply, userdata);
}

int peer_ask_stats(struct peer *peer, peer_reply_handler handler, void *userdata) {
        const struct unit *unit = peer->process->unit;
        struct mg_message message;
        int r;

        proto_init(&message, MG_VERB_STATS);
        message.number[MG_NUMBER_LIMIT_USEC] = unit->config.max_pause_usec;
        /* A forked child that was first met large does not know its cost, and would refuse; its unit's is known here. */
        if (peer->stats_cost_usec == MG_UNKNOWN)
                message.number[MG_NUMBER_FORCE] = 1;
        r =
                        peer_request(peer, &message, peer->manager->settings.agent_timeout_usec,
                                     on_stats_then, userdata);
        if (r < 0)
                return r;
        peer->stats_handler = handler;
        peer->stats_sent_usec = peer->request.sent_usec;
        if (message.number[MG_NUMBER_FORCE] == 1) {
                peer->stats_forced = true;
                peer->stats_forced_bytes = now_bytes_of(peer);
        }
        return 0;
}

/* Whether the process may hold as much as a trim has to bring. */
static bool is_interesting(const struct peer *peer) {
        const struct mg_process_sample *sample = &peer->process->sample;
        uint64_t base = sample->base_bytes == MG_UNKNOWN ? 0 : sample->base_bytes;

        return mg_sub_floor(now_bytes_of(peer), base) >= peer->process->unit->config.min_gain_bytes;
}

static bool is_stats_due(const struct peer *peer, uint64_t now_usec) {
        uint64_t last_usec = peer->process->sample.stats_at_usec;

        if (!peer_may_ask_stats(peer, now_usec))
                return false;
        return last_usec == MG_UNKNOWN || is_interesting(peer) ||
               now_usec - last_usec >= STATS_INTERVAL_USEC;
}

static void on_tuned(
                struct peer *peer,
                int status,
                const struct mg_message *reply,
                void *userdata) {
        const char *wanted = userdata;

        bool is_in_effect = status == 0 && reply->number[MG_NUMBER_RESULT] == MG_RESULT_DONE &&
                            reply->number[MG_NUMBER_BACKGROUND_THREAD] ==
                                            (uint64_t) mg_streq(wanted, "yes");

        if (peer->closed || is_in_effect)
                return;
        journal_log(LOG_NOTICE,
                    &(struct mg_journal_unit){ peer->process->unit->name,
                                               peer->process->unit->user },
                    "JemallocBackgroundThread=%s is not in effect in pid %d (%s)", wanted,
                    (int) peer->pid, peer->process->comm);
}

/* Returns whether something was sent. */
static bool ask_to_tune(struct peer *peer) {
        enum mg_tristate wanted = peer->process->unit->config.jemalloc_background_thread;
        struct mg_message message;

        peer->tune_pending = false;
        if (wanted == MG_LEAVE_ALONE || !peer->can_tune)
                return false;
        proto_init(&message, MG_VERB_TUNE);
        message.number[MG_NUMBER_BACKGROUND_THREAD] = wanted == MG_YES;
        return peer_request(peer, &message, peer->manager->settings.agent_timeout_usec, on_tuned,
                            wanted == MG_YES ? "yes" : "no") != -EBUSY;
}

static void ping(struct peer *peer) {
        struct mg_message message;

        proto_init(&message, MG_VERB_PING);
        (void) peer_request(peer, &message, peer->manager->settings.agent_timeout_usec, NULL, NULL);
}

void peer_work(struct peer *peer, uint64_t now_usec) {
        bool is_off = peer->process->unit->config.mode == MG_MODE_OFF;

        if (peer->state != PEER_READY || peer_is_busy(peer))
                return;
        forget_outgrown_stats(peer);
        if (peer->tune_pending && !is_off && !peer->unresponsive && ask_to_tune(peer))
                return;
        if (is_stats_due(peer, now_usec))
                (void) peer_ask_stats(peer, NULL, NULL);
        else if (mg_sub_floor(now_usec, MG_MAX(peer->last_heard_usec, peer->last_asked_usec)) >=
                 PING_INTERVAL_USEC)
                ping(peer);
}
