/* SPDX-License-Identifier: MIT */
/* The agent's connection to the daemon. Layer: agent; no allocation. */
#include "agent/client.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/heaps.h"
#include "agent/hooks.h"
#include "agent/process.h"
#include "base/macros.h"

#define FIRST_BACKOFF_USEC MG_USEC_PER_SEC
#define MAX_BACKOFF_USEC   MG_USEC_PER_MIN

/* The daemon admits a burst of 32 messages and two a second: news stays well below. */
#define MAX_TOKENS 8
#define TOKEN_USEC MG_USEC_PER_SEC

/* In the program's table the socket goes to a number that programs do not count on. */
#define SHARED_TABLE_FD_MARGIN 24
#define SHARED_TABLE_FD_MAX    4000
#define LOWEST_OWN_FD          3

/* Of the agent's one thread; too large for its stack. */
static char datagram[MG_MESSAGE_MAX_BYTES + 1];
static char answer[MG_MESSAGE_MAX_BYTES];

void client_init(
                struct mg_client *client,
                const struct mg_settings *settings,
                const char *mode,
                uint64_t now_usec) {
        *client = (struct mg_client){
                .socket_fd = -EBADF,
                .due_at_usec = mg_add_cap(now_usec, settings->delay_usec),
                .backoff_usec = FIRST_BACKOFF_USEC,
                .random = now_usec ^ ((uint64_t) getpid() << 32),
                .tokens = MAX_TOKENS,
                .tokens_at_usec = now_usec,
        };
        memcpy(client->socket_path, settings->socket_path, sizeof(client->socket_path));
        serve_init(&client->server, mode, thread_mode_to_string(settings->thread_mode));
}

/* xorshift64: this is jitter, not secrecy. */
static uint64_t next_random(uint64_t *state) {
        uint64_t x = *state ? *state : 1;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *state = x;
        return x;
}

uint64_t client_next_backoff(uint64_t *backoff_usec, uint64_t *random) {
        uint64_t wait = *backoff_usec / 2 + next_random(random) % (*backoff_usec / 2 + 1);

        *backoff_usec = MG_MIN(*backoff_usec * 2, MAX_BACKOFF_USEC);
        return wait;
}

static bool read_cookie(int fd, uint64_t *ret_cookie) {
        socklen_t length = sizeof(*ret_cookie);
        return getsockopt(fd, SOL_SOCKET, SO_COOKIE, ret_cookie, &length) == 0;
}

/* In a shared table the program may have closed the number, and opened something of its own under it. */
static bool is_own_socket(const struct mg_client *client) {
        uint64_t cookie;

        if (client->socket_fd < 0)
                return false;
        return !client->shared_table ||
               (read_cookie(client->socket_fd, &cookie) && cookie == client->cookie);
}

static void drop_socket(struct mg_client *client) {
        if (is_own_socket(client)) {
                shutdown(client->socket_fd, SHUT_RDWR);
                close(client->socket_fd);
        }
        client->socket_fd = -EBADF;
}

void client_close(struct mg_client *client) {
        drop_socket(client);
}

void client_forget(struct mg_client *client) {
        if (client->shared_table && is_own_socket(client))
                close(client->socket_fd);
        client->socket_fd = -EBADF;
}

static void retry_later(struct mg_client *client, uint64_t now_usec) {
        drop_socket(client);
        client->due_at_usec = mg_add_cap(
                        now_usec, client_next_backoff(&client->backoff_usec, &client->random));
}

static int choose_fd_minimum(bool shared_table) {
        struct rlimit limit;

        if (!shared_table)
                return LOWEST_OWN_FD;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur <= SHARED_TABLE_FD_MARGIN)
                return LOWEST_OWN_FD;
        return (int) MG_MIN(limit.rlim_cur - SHARED_TABLE_FD_MARGIN, (rlim_t) SHARED_TABLE_FD_MAX);
}

static int open_socket(struct mg_client *client) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        memcpy(address.sun_path, client->socket_path, sizeof(address.sun_path));
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        fd = process_lift_fd(fd < 0 ? -errno : fd, choose_fd_minimum(client->shared_table));
        if (fd < 0)
                return fd;
        client->socket_fd = fd;
        client->connection++;
        if (client->shared_table && !read_cookie(fd, &client->cookie)) {
                close(fd);
                client->socket_fd = -EBADF;
                return -EOPNOTSUPP;
        }
        return connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ? -errno : 0;
}

/* Texts of an allocator may be of any length, numbers are not: what is decided upon gets there. */
static void leave_texts_out(struct mg_message *message) {
        for (size_t i = 0; i < proto_heap_count(message); i++) {
                struct mg_span *text = message->heap[i].text;
                text[MG_HEAP_VERSION] = text[MG_HEAP_OPTIONS] = (struct mg_span){ 0 };
                text[MG_HEAP_NOTICE] =
                                span_of("version and options left out: too long for a message");
        }
}

static int encode(const struct mg_message *message, size_t *ret_length) {
        int r = proto_encode(message, answer, sizeof(answer), ret_length);
        if (r != -EMSGSIZE)
                return r;
        struct mg_message shorter = *message;
        leave_texts_out(&shorter);
        return proto_encode(&shorter, answer, sizeof(answer), ret_length);
}

static int send_message(struct mg_client *client, const struct mg_message *message) {
        size_t length;

        int r = encode(message, &length);
        if (r < 0)
                return r;
        if (!is_own_socket(client))
                return -EBADF;
        ssize_t n = send(client->socket_fd, answer, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        return n < 0 ? -errno : 0;
}

static int connect_and_greet(struct mg_client *client) {
        struct mg_message hello;

        heaps_probe_file();
        int r = open_socket(client);
        if (r < 0)
                return r;
        /* The depth that hello tells is the newest: older news about it would only confuse. */
        hooks_drop_events();
        serve_hello(&client->server, &hello);
        return send_message(client, &hello);
}

static void refill_tokens(struct mg_client *client, uint64_t now_usec) {
        uint64_t earned = mg_sub_floor(now_usec, client->tokens_at_usec) / TOKEN_USEC;

        client->tokens = MG_MIN(client->tokens + earned, (uint64_t) MAX_TOKENS);
        client->tokens_at_usec += earned * TOKEN_USEC;
}

static void send_news(struct mg_client *client, uint64_t now_usec) {
        struct mg_event event;

        refill_tokens(client, now_usec);
        while (client->tokens > 0 && hooks_take_event(&event)) {
                struct mg_message message;
                proto_init(&message, event.verb);
                message.number[MG_NUMBER_SUSPENDED] = event.suspended;
                message.text[event.verb == MG_VERB_CHECKPOINT ? MG_TEXT_TAG : MG_TEXT_REASON] =
                                span_of(event.text);
                client->tokens--;
                if (send_message(client, &message) < 0) {
                        retry_later(client, now_usec);
                        return;
                }
        }
}

uint64_t client_run(struct mg_client *client, uint64_t now_usec) {
        if (client->socket_fd < 0) {
                if (now_usec >= client->due_at_usec && connect_and_greet(client) < 0)
                        retry_later(client, now_usec);
                if (client->socket_fd < 0)
                        return mg_sub_floor(client->due_at_usec, now_usec);
        }
        send_news(client, now_usec);
        if (client->socket_fd < 0)
                return mg_sub_floor(client->due_at_usec, now_usec);
        return hooks_has_event() ? TOKEN_USEC : MG_UNKNOWN;
}

static int answer_datagram(struct mg_client *client, size_t length) {
        struct mg_message request, reply;

        int r = proto_decode(datagram, length, &request);
        if (r < 0)
                return r;
        /* Only a daemon that speaks is one worth coming back to at once. */
        client->backoff_usec = FIRST_BACKOFF_USEC;
        if (serve_request(&client->server, &request, &reply) == 0)
                return 0;
        return send_message(client, &reply);
}

int client_receive(struct mg_client *client, uint64_t now_usec) {
        if (client->socket_fd < 0)
                return 0;
        if (!is_own_socket(client)) {
                retry_later(client, now_usec);
                return 1;
        }
        /* Without room for control data, descriptors that come along are discarded by the kernel. */
        ssize_t n = recv(client->socket_fd, datagram, sizeof(datagram), MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n <= 0 || answer_datagram(client, (size_t) n) < 0)
                retry_later(client, process_now_usec());
        return 1;
}
