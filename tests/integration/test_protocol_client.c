/* SPDX-License-Identifier: MIT */
/*
 * The client that was written from memguard-protocol(7) alone, against our codec: this is the
 * daemon's side of one connection. TEST_CLIENT is the client, given the path of a socket.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/macros.h"
#include "proto/proto.h"

/* Only so that a client that hangs fails the test instead of stopping it. */
#define PATIENCE_SEC 60

static char directory[] = "/tmp/memguard-test-client-XXXXXX";
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static int listening_fd = -EBADF;
static int client_fd = -EBADF;
static pid_t client = -1;

static int start_client(void **state) {
        const struct timeval patience = { .tv_sec = PATIENCE_SEC };

        if (!mkdtemp(directory))
                return -1;
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent.sock", directory);
        listening_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (listening_fd < 0 ||
            bind(listening_fd, (struct sockaddr *) &address, sizeof(address)) < 0 ||
            listen(listening_fd, 1) < 0 ||
            setsockopt(listening_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
                return -1;
        client = fork();
        if (client == 0) {
                execl(getenv("TEST_CLIENT"), getenv("TEST_CLIENT"), address.sun_path, NULL);
                _exit(127);
        }
        client_fd = accept4(listening_fd, NULL, NULL, SOCK_CLOEXEC);
        if (client_fd < 0)
                return -1;
        return setsockopt(client_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

static int remove_socket(void **state) {
        if (client > 0)
                kill(client, SIGKILL);
        file_closep(&client_fd);
        file_closep(&listening_fd);
        unlink(address.sun_path);
        return rmdir(directory);
}

/* The next message of the client; it stays valid until the next call. */
static void receive(struct mg_message *ret_message) {
        static char datagram[MG_MESSAGE_MAX_BYTES + 1];

        ssize_t length = recv(client_fd, datagram, sizeof(datagram), 0);
        assert_true(length > 0);
        assert_int_equal(proto_decode(datagram, (size_t) length, ret_message), 0);
}

static void ask(const char *datagram, size_t length, struct mg_message *ret_reply) {
        assert_int_equal(send(client_fd, datagram, length, MSG_NOSIGNAL), length);
        receive(ret_reply);
}

static void request(enum mg_verb verb, uint64_t id, struct mg_message *ret_reply) {
        char datagram[MG_MESSAGE_MAX_BYTES];
        struct mg_message message;
        size_t length;

        proto_init(&message, verb);
        message.number[MG_NUMBER_ID] = id;
        message.number[MG_NUMBER_DEADLINE_USEC] = 5 * MG_USEC_PER_SEC;
        message.text[MG_TEXT_REASON] = span_of("über-threshold = yes");
        assert_int_equal(proto_encode(&message, datagram, sizeof(datagram), &length), 0);
        ask(datagram, length, ret_reply);
}

static void test_it_says_hello_first(void **state) {
        struct mg_message hello;

        receive(&hello);
        assert_int_equal(hello.verb, MG_VERB_HELLO);
        assert_int_equal(hello.number[MG_NUMBER_PROTOCOL], MG_PROTOCOL_VERSION);
        assert_int_equal(proto_heap_count(&hello), 1);
        assert_true(span_equals(hello.heap[0].text[MG_HEAP_ALLOCATOR], "python"));
        assert_true(span_has_word(hello.heap[0].text[MG_HEAP_CAN], "trim"));
}

static void test_it_answers_each_request(void **state) {
        struct mg_message reply;

        request(MG_VERB_STATS, 1, &reply);
        assert_int_equal(reply.verb, MG_VERB_STATS_REPLY);
        assert_int_equal(reply.number[MG_NUMBER_ID], 1);
        assert_int_equal(reply.number[MG_NUMBER_RESULT], MG_RESULT_DONE);
        assert_int_equal(proto_heap_count(&reply), 1);
        assert_true(reply.heap[0].number[MG_HEAP_LIVE_BYTES] > 100 * MG_KIB);
        assert_true(reply.heap[0].number[MG_HEAP_LIVE_BYTES] < MG_GIB);

        request(MG_VERB_TRIM, MG_UNKNOWN - 1, &reply);
        assert_int_equal(reply.verb, MG_VERB_TRIM_REPLY);
        assert_int_equal(reply.number[MG_NUMBER_ID], MG_UNKNOWN - 1);
        assert_int_equal(reply.number[MG_NUMBER_RESULT], MG_RESULT_DONE);
        assert_true(reply.number[MG_NUMBER_AFTER_BYTES] > MG_MIB);
        assert_true(reply.number[MG_NUMBER_AFTER_BYTES] < MG_GIB);

        request(MG_VERB_PING, 0, &reply);
        assert_int_equal(reply.verb, MG_VERB_PONG);
        assert_int_equal(reply.number[MG_NUMBER_ID], 0);
}

static void test_it_admits_what_it_cannot(void **state) {
        static const struct {
                const char *datagram;
                uint64_t id;
        } cases[] = {
                { "VERB=levitate\nID=7\nHEIGHT=3\n", 7 },
                { "VERB=levitate\n", MG_UNKNOWN },
                { "VERB=tune\nID=8\nBACKGROUND_THREAD=1\n", 8 },
        };
        struct mg_message reply;

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                ask(cases[i].datagram, strlen(cases[i].datagram), &reply);
                assert_int_equal(reply.verb, MG_VERB_UNSUPPORTED);
                assert_int_equal(reply.number[MG_NUMBER_ID], cases[i].id);
        }
}

static void test_unsupported_is_not_answered(void **state) {
        static const char datagram[] = "VERB=unsupported\nID=9\n";
        struct mg_message reply;

        assert_int_equal(
                        send(client_fd, datagram, sizeof(datagram) - 1, MSG_NOSIGNAL),
                        sizeof(datagram) - 1);
        request(MG_VERB_PING, 10, &reply);
        assert_int_equal(reply.verb, MG_VERB_PONG);
        assert_int_equal(reply.number[MG_NUMBER_ID], 10);
}

static void test_keys_of_the_future_and_the_longest_message(void **state) {
        char datagram[MG_MESSAGE_MAX_BYTES];
        struct mg_message reply;
        size_t length = (size_t) snprintf(
                        datagram, sizeof(datagram), "VERB=ping\nCOLOUR=\nID=11\nPADDING=");

        memset(datagram + length, '=', sizeof(datagram) - length);
        datagram[sizeof(datagram) - 1] = '\n';
        ask(datagram, sizeof(datagram), &reply);
        assert_int_equal(reply.verb, MG_VERB_PONG);
        assert_int_equal(reply.number[MG_NUMBER_ID], 11);
}

static void test_it_ends_when_the_daemon_goes(void **state) {
        int status;

        file_closep(&client_fd);
        assert_int_equal(TEMP_FAILURE_RETRY(waitpid(client, &status, 0)), client);
        client = -1;
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_says_hello_first),
                cmocka_unit_test(test_it_answers_each_request),
                cmocka_unit_test(test_it_admits_what_it_cannot),
                cmocka_unit_test(test_unsupported_is_not_answered),
                cmocka_unit_test(test_keys_of_the_future_and_the_longest_message),
                cmocka_unit_test(test_it_ends_when_the_daemon_goes),
        };
        return cmocka_run_group_tests(tests, start_client, remove_socket);
}
