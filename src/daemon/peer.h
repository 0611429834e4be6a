/* SPDX-License-Identifier: MIT */
/*
 * One connection to the agent socket. Whatever comes over it is hostile until proven otherwise: a message out of
 * turn, malformed, too many or with descriptors costs this connection and nothing else. At most one request is in
 * flight. Owned by the manager. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/list.h"
#include "daemon/rate_limit.h"
#include "proto/proto.h"

struct manager;
struct peer;
struct process;

enum peer_state {
        PEER_CONNECTED, /* no hello yet */
        PEER_READY,
        _PEER_STATE_MAX,
};

/* One allocator of the process: what hello said of it and the last statistics. Strings owned, may be NULL. */
struct peer_heap {
        char *allocator;
        char *version;
        char *prefix;
        char *options;
        char *notice;
        bool can_stats;
        bool can_trim;
        bool can_tune;
        uint64_t number[_MG_HEAP_NUMBER_MAX];
};

/*
 * How a request ended. STATUS: 0 with REPLY; -ETIMEDOUT; -ECONNRESET: the connection is going away (the peer is still
 * valid during the call). REPLY is valid during the call.
 */
typedef void (*peer_reply_handler)(
                struct peer *peer,
                int status,
                const struct mg_message *reply,
                void *userdata);

struct peer_request {
        enum mg_verb verb; /* MG_VERB_UNKNOWN: none in flight */
        uint64_t id;
        uint64_t sent_usec;
        peer_reply_handler handler;
        void *userdata;
};

/* Somebody who waits for the request in flight to end, to ask next. Called once; the peer may be closed by then. */
typedef void (*peer_idle_handler)(struct peer *peer, void *userdata);

struct peer {
        struct mg_list all; /* manager->peers */
        struct manager *manager;
        struct process *process; /* NULL before hello */
        enum peer_state state;
        int fd;
        pid_t pid;
        uint64_t start_time;
        uid_t uid;
        sd_event_source *io_source;
        sd_event_source *deadline_source; /* hello, then the request in flight */
        bool closed; /* in the manager's graveyard: freed once the event at hand has been dealt with */

        struct peer_request request;
        peer_idle_handler idle_handler; /* NULL: nobody waits */
        void *idle_userdata;
        uint64_t last_id;
        uint64_t last_heard_usec;
        uint64_t last_asked_usec;
        uint64_t late_replies;
        struct rate_limit rate;
        bool unresponsive; /* a request timed out and nothing was heard since */
        bool tune_pending;
        bool can_tune;
        bool can_shrink;
        bool stats_forced;           /* the one forced look at a heap first met large was spent */
        uint64_t stats_forced_bytes; /* how large */

        /* from hello */
        char *version; /* of libmemguard */
        char *mode;    /* preload, linked, event-loop */
        char *thread;  /* follow, always, never */
        char *suspend_reason;
        uint32_t suspended;
        struct peer_heap heaps[MG_HEAPS_MAX];
        uint32_t n_heaps;

        /* the duty limit on statistics */
        peer_reply_handler stats_handler; /* of who asked for the statistics in flight */
        uint64_t stats_cost_usec;         /* MG_UNKNOWN: never measured */
        uint64_t stats_cost_bytes;
        uint64_t stats_sent_usec;
        uint64_t stats_due_usec; /* not before: the duty limit, the spread after a restart, a refusal */
        uint32_t stats_refused;
};

/* Serves the manager's agent_fd. */
int peer_listen(struct manager *manager);

/* Takes over FD, a fresh connection. Closes it where limits or identity forbid. */
void peer_accept(struct manager *manager, int fd);

/* Detaches, hangs up, tells a waiting request. The object stays readable until the event at hand is over. */
void peer_close(struct peer *peer, const char *reason);

/* The same, with a line in the journal: PROBLEM is the agent's fault. */
void peer_fail(struct peer *peer, const char *problem);

/* Closes all of them and frees what is closed: the daemon ends. */
void peer_close_all(struct manager *manager);

/*
 * Sends MESSAGE (its ID is filled in) and calls HANDLER exactly once, later. Returns 0, -EBUSY (one is in
 * flight), or a send error after which the peer is gone: HANDLER has not been called.
 */
int peer_request(
                struct peer *peer,
                struct mg_message *message,
                uint64_t timeout_usec,
                peer_reply_handler handler,
                void *userdata);

/* HANDLER hears when the request in flight has ended. One can wait; a second one replaces it. */
void peer_when_idle(struct peer *peer, peer_idle_handler handler, void *userdata);

/* Whoever waits for the peer with USERDATA does not want to hear any more. */
void peer_forget(struct peer *peer, const void *userdata);

/* A message that is no reply: hello, checkpoint, suspend, resume. Returns 0, or -EBADMSG: the peer is to be closed. */
int peer_handle_news(struct peer *peer, const struct mg_message *message);

/* From hello or stats-reply: what each allocator says. Allocates only when something textual changed. */
void peer_take_heaps(struct peer *peer, const struct mg_message *message);
void peer_done_strings(struct peer *peer);

/* What is to be asked of it now by itself: tune, statistics, a ping. From the tick; never during a round of its unit. */
void peer_work(struct peer *peer, uint64_t now_usec);

/* From a stats-reply, or a hello that has them: into the process's sample. */
void peer_take_stats(struct peer *peer, const struct mg_message *message);

/* From one that came too late for whoever asked: what it cost, where that is not known yet, or the process is never asked again. */
void peer_take_late_stats(struct peer *peer, const struct mg_message *reply);

/* Whether the duty limit, MaxPause= and the configuration let statistics be asked for at NOW. */
bool peer_may_ask_stats(const struct peer *peer, uint64_t now_usec);

/* The same on credit, around a trim, where growth of live must not be taken for a failure. The debt is paid by waiting longer. */
bool peer_may_look(const struct peer *peer);

/* Asks for statistics, which end up in the process's sample before HANDLER (may be NULL) hears. Returns as peer_request(). */
int peer_ask_stats(struct peer *peer, peer_reply_handler handler, void *userdata);

static inline bool peer_is_busy(const struct peer *peer) {
        return peer->request.verb != MG_VERB_UNKNOWN;
}
