/* SPDX-License-Identifier: MIT */
/*
 * A connection's life: messages in, requests out, the end. Layer: daemon.
 *
 * Invariants: at most one request is in flight; its handler is called exactly once, whatever happens; a closed peer is
 * in no list but the graveyard, so that whoever holds it in the event at hand can still look at `closed`.
 */
#include "daemon/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macros.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/peer_io.h"
#include "daemon/process.h"
#include "daemon/unit.h"

/* Messages read in one go before others have their turn. */
#define READ_BATCH 16

/* A program may report a checkpoint in each of its sweeps; ten a second on end is no sweep. */
#define MESSAGE_BURST         200
#define MESSAGE_INTERVAL_USEC (100 * MG_USEC_PER_MSEC)

static struct mg_journal_unit journal_unit_of(const struct peer *peer) {
        if (!peer->process)
                return (struct mg_journal_unit){};
        return (struct mg_journal_unit){
                .name = peer->process->unit->name,
                .user = peer->process->unit->user,
        };
}

static void tell_problem(const struct peer *peer, const char *problem) {
        journal_agent_problem(&(struct mg_journal_agent_problem){
                        .unit = journal_unit_of(peer),
                        .pid = peer->pid,
                        .command = peer->process ? peer->process->comm : NULL,
                        .problem = problem,
        });
}

static void end_request(struct peer *peer, int status, const struct mg_message *reply) {
        struct peer_request request = peer->request;
        peer_idle_handler idle_handler;

        peer->request = (struct peer_request){ .verb = MG_VERB_UNKNOWN };
        if (peer->deadline_source)
                (void) sd_event_source_set_enabled(peer->deadline_source, SD_EVENT_OFF);
        if (request.handler)
                request.handler(peer, status, reply, request.userdata);
        /* The handler may have asked anew: who waits then goes on waiting. */
        if (peer_is_busy(peer))
                return;
        idle_handler = MG_TAKE(peer->idle_handler);
        if (idle_handler)
                idle_handler(peer, peer->idle_userdata);
}

void peer_when_idle(struct peer *peer, peer_idle_handler handler, void *userdata) {
        peer->idle_handler = handler;
        peer->idle_userdata = userdata;
}

void peer_forget(struct peer *peer, const void *userdata) {
        if (peer->idle_userdata == userdata)
                peer->idle_handler = NULL;
        if (peer->request.userdata != userdata)
                return;
        if (peer->stats_handler)
                peer->stats_handler = NULL; /* the statistics themselves are still welcome */
        else
                peer->request.handler = NULL;
}

static void detach(struct peer *peer) {
        struct process *process = MG_TAKE(peer->process);

        if (!process)
                return;
        process->peer = NULL;
        process->sample.has_agent = false;
        process->sample.can_trim = false;
        process->sample.busy = false;
        process->unit->n_agents--;
        peer->manager->agents_lost++;
}

void peer_close(struct peer *peer, const char *reason) {
        struct manager *manager = peer->manager;

        if (peer->closed)
                return;
        journal_log(LOG_DEBUG, NULL, "Agent of pid %d: connection closed: %s", (int) peer->pid,
                    reason);
        peer->closed = true;
        peer->io_source = sd_event_source_disable_unref(peer->io_source);
        peer->deadline_source = sd_event_source_disable_unref(peer->deadline_source);
        close(MG_TAKE_FD(peer->fd));
        list_remove(&peer->all);
        list_append(&manager->graveyard, &peer->all);
        manager->n_peers--;
        detach(peer);
        (void) sd_event_source_set_enabled(manager->graveyard_source, SD_EVENT_ONESHOT);
        end_request(peer, -ECONNRESET, NULL);
}

void peer_fail(struct peer *peer, const char *problem) {
        if (peer->closed)
                return;
        tell_problem(peer, problem);
        peer_close(peer, "its own fault");
}

static void empty_graveyard(struct manager *manager) {
        MG_LIST_FOREACH_SAFE(entry, &manager->graveyard) {
                struct peer *peer = MG_CONTAINER_OF(entry, struct peer, all);

                list_remove(&peer->all);
                peer_done_strings(peer);
                free(peer);
        }
}

int peer_on_graveyard(sd_event_source *source, void *userdata) {
        empty_graveyard(userdata);
        return 0;
}

void peer_close_all(struct manager *manager) {
        while (!list_is_empty(&manager->peers))
                peer_close(MG_CONTAINER_OF(manager->peers.next, struct peer, all), "stopping");
        empty_graveyard(manager);
}

static bool is_reply_to(const struct mg_message *message, const struct peer_request *request) {
        static const enum mg_verb reply_of[_MG_VERB_MAX] = {
                [MG_VERB_STATS] = MG_VERB_STATS_REPLY,
                [MG_VERB_TRIM] = MG_VERB_TRIM_REPLY,
                [MG_VERB_TUNE] = MG_VERB_TUNE_REPLY,
                [MG_VERB_PING] = MG_VERB_PONG,
        };

        if (request->verb == MG_VERB_UNKNOWN || message->number[MG_NUMBER_ID] != request->id)
                return false;
        return message->verb == reply_of[request->verb] || message->verb == MG_VERB_UNSUPPORTED;
}

/* A reply nobody waits for (any more): it came too late, unless it is to something never asked. */
static int handle_stray_reply(struct peer *peer, const struct mg_message *message) {
        uint64_t id = message->number[MG_NUMBER_ID];

        if (id == MG_UNKNOWN || id == 0 || id > peer->last_id)
                return -EBADMSG;
        if (message->verb == MG_VERB_STATS_REPLY)
                peer_take_late_stats(peer, message);
        peer->late_replies++;
        peer->manager->late_replies++;
        return 0;
}

static int send_message(struct peer *peer, const struct mg_message *message) {
        char datagram[MG_MESSAGE_MAX_BYTES];
        size_t length;
        int r = proto_encode(message, datagram, sizeof(datagram), &length);

        if (r < 0)
                return r;
        if (send(peer->fd, datagram, length, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
                return 0;
        return -errno;
}

/* A verb of a newer agent is answered, so that it need not wait to learn that this daemon is older. */
static int answer_unknown(struct peer *peer, const struct mg_message *message) {
        struct mg_message answer;

        if (message->number[MG_NUMBER_ID] == MG_UNKNOWN)
                return 0;
        proto_init(&answer, MG_VERB_UNSUPPORTED);
        answer.number[MG_NUMBER_ID] = message->number[MG_NUMBER_ID];
        if (send_message(peer, &answer) < 0)
                peer_fail(peer, "does not read its messages: connection closed");
        return 0;
}

static int handle_message(struct peer *peer, const struct mg_message *message) {
        switch (message->verb) {
        case MG_VERB_STATS_REPLY:
        case MG_VERB_TRIM_REPLY:
        case MG_VERB_TUNE_REPLY:
        case MG_VERB_PONG:
        case MG_VERB_UNSUPPORTED:
                if (!is_reply_to(message, &peer->request))
                        return handle_stray_reply(peer, message);
                end_request(peer, message->verb == MG_VERB_UNSUPPORTED ? -EOPNOTSUPP : 0, message);
                return 0;
        case MG_VERB_HELLO:
        case MG_VERB_CHECKPOINT:
        case MG_VERB_SUSPEND:
        case MG_VERB_RESUME:
                return peer_handle_news(peer, message);
        case MG_VERB_UNKNOWN:
                return answer_unknown(peer, message);
        case MG_VERB_STATS:
        case MG_VERB_TRIM:
        case MG_VERB_TUNE:
        case MG_VERB_PING:
        case _MG_VERB_MAX:
                break;
        }
        return -EBADMSG; /* requests are the daemon's to make */
}

/* Returns false when there is nothing more to read, or the peer is closed. */
static bool read_one(struct peer *peer) {
        char datagram[MG_MESSAGE_MAX_BYTES];
        struct iovec iov = { datagram, sizeof(datagram) };
        struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
        uint64_t now_usec = manager_now(peer->manager);
        struct mg_message message;
        ssize_t n = recvmsg(peer->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0) {
                peer_close(peer, "hung up");
                return false;
        }
        /* Without room for control data the kernel drops what was sent along, and says so. */
        if (header.msg_flags & MSG_CTRUNC)
                peer_fail(peer, "sent descriptors: connection closed");
        else if (!rate_limit_take(&peer->rate, MESSAGE_BURST, MESSAGE_INTERVAL_USEC, now_usec))
                peer_fail(peer, "sent too many messages: connection closed");
        else if ((header.msg_flags & MSG_TRUNC) || proto_decode(datagram, n, &message) < 0)
                peer_fail(peer, "sent a malformed message: connection closed");
        else {
                peer->unresponsive = false;
                peer->last_heard_usec = now_usec;
                if (handle_message(peer, &message) < 0)
                        peer_fail(peer, "sent a message out of turn: connection closed");
        }
        return !peer->closed;
}

int peer_on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct peer *peer = userdata;

        for (int i = 0; i < READ_BATCH; i++)
                if (!read_one(peer))
                        break;
        return 0;
}

int peer_on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        struct peer *peer = userdata;

        if (peer->state == PEER_CONNECTED) {
                peer_fail(peer, "said no hello: connection closed");
                return 0;
        }
        if (!peer_is_busy(peer))
                return 0;
        if (!peer->unresponsive)
                tell_problem(peer, "does not answer");
        peer->unresponsive = true;
        end_request(peer, -ETIMEDOUT, NULL);
        return 0;
}

static int arm_deadline(struct peer *peer, uint64_t timeout_usec) {
        int r = sd_event_source_set_time(
                        peer->deadline_source,
                        mg_add_cap(manager_now(peer->manager), timeout_usec));

        return r < 0 ? r : sd_event_source_set_enabled(peer->deadline_source, SD_EVENT_ONESHOT);
}

int peer_request(
                struct peer *peer,
                struct mg_message *message,
                uint64_t timeout_usec,
                peer_reply_handler handler,
                void *userdata) {
        int r;

        if (peer->closed || peer->state != PEER_READY)
                return -ENOTCONN;
        if (peer_is_busy(peer))
                return -EBUSY;
        message->number[MG_NUMBER_ID] = ++peer->last_id;
        r = send_message(peer, message);
        if (r >= 0)
                r = arm_deadline(peer, timeout_usec);
        if (r == -EAGAIN)
                peer_fail(peer, "does not read its messages: connection closed");
        else if (r < 0)
                peer_close(peer, "cannot be sent to");
        if (r < 0)
                return r;
        peer->last_asked_usec = manager_now(peer->manager);
        peer->request = (struct peer_request){
                .verb = message->verb,
                .id = message->number[MG_NUMBER_ID],
                .sent_usec = peer->last_asked_usec,
                .handler = handler,
                .userdata = userdata,
        };
        return 0;
}
