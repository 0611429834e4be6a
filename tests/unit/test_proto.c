/* SPDX-License-Identifier: MIT */
/*
 * The codec beside its golden vectors: what each verb requires, what the encoder refuses and
 * replaces, lists of words, printable UTF-8, and the example of memguard-protocol(7).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/macros.h"
#include "base/utf8.h"
#include "proto/proto.h"

/* From memguard-protocol(7), not from the codec's table. */
static const char *const required[_MG_VERB_MAX] = {
        [MG_VERB_UNKNOWN] = "",    [MG_VERB_HELLO] = "PROTOCOL,MODE,HEAPS",
        [MG_VERB_STATS] = "ID",    [MG_VERB_STATS_REPLY] = "ID,RESULT,HEAPS",
        [MG_VERB_TRIM] = "ID",     [MG_VERB_TRIM_REPLY] = "ID,RESULT",
        [MG_VERB_TUNE] = "ID",     [MG_VERB_TUNE_REPLY] = "ID,RESULT",
        [MG_VERB_CHECKPOINT] = "", [MG_VERB_SUSPEND] = "",
        [MG_VERB_RESUME] = "",     [MG_VERB_PING] = "ID",
        [MG_VERB_PONG] = "ID",     [MG_VERB_UNSUPPORTED] = "",
};

static void fill(struct mg_message *message, enum mg_verb verb) {
        proto_init(message, verb);
        for (int k = 0; k < _MG_NUMBER_MAX; k++)
                message->number[k] = 1;
        for (int k = 0; k < _MG_TEXT_KEY_MAX; k++)
                message->text[k] = span_of("x");
        for (int k = 0; k < _MG_HEAP_NUMBER_MAX; k++)
                message->heap[0].number[k] = 1;
        for (int k = 0; k < _MG_HEAP_TEXT_MAX; k++)
                message->heap[0].text[k] = span_of("x");
}

static void assert_round_trip(const struct mg_message *message) {
        char first[MG_MESSAGE_MAX_BYTES], second[MG_MESSAGE_MAX_BYTES];
        struct mg_message decoded;
        size_t length, again;

        assert_int_equal(proto_encode(message, first, sizeof(first), &length), 0);
        assert_int_equal(proto_decode(first, length, &decoded), 0);
        assert_int_equal(decoded.verb, message->verb);
        assert_int_equal(proto_encode(&decoded, second, sizeof(second), &again), 0);
        assert_int_equal(again, length);
        assert_memory_equal(first, second, length);
}

static void assert_refused(const struct mg_message *message) {
        char buffer[MG_MESSAGE_MAX_BYTES];
        size_t length = 777;

        assert_int_equal(proto_encode(message, buffer, sizeof(buffer), &length), -EINVAL);
        assert_int_equal(length, 777);
}

/* The datagram of VERB with all keys but the one named LEFT_OUT, written without the encoder. */
static int decode_without(enum mg_verb verb, const char *left_out) {
        char bytes[MG_MESSAGE_MAX_BYTES];
        struct mg_message message;
        size_t at = 0;

#define LINE(format, name, value)      \
        if (!mg_streq(name, left_out)) \
        at += (size_t) snprintf(bytes + at, sizeof(bytes) - at, format "=%s\n", name, value)
        LINE("%s", "VERB", verb_to_string(verb));
        for (int k = 0; k < _MG_NUMBER_MAX; k++)
                if (k != MG_NUMBER_HEAPS)
                        LINE("%s", proto_number_name(k), k == MG_NUMBER_RESULT ? "done" : "1");
        LINE("%s", "HEAPS", "0");
        for (int k = 0; k < _MG_TEXT_KEY_MAX; k++)
                LINE("%s", proto_text_name(k), "x");
#undef LINE
        return proto_decode(bytes, at, &message);
}

static void test_required_numbers(void **state) {
        for (int verb = 0; verb < _MG_VERB_MAX; verb++)
                for (int k = 0; k < _MG_NUMBER_MAX; k++) {
                        const char *name = proto_number_name(k);
                        bool needed = span_has_word(span_of(required[verb]), name);
                        struct mg_message message;

                        assert_int_equal(decode_without(verb, name), needed ? -EBADMSG : 0);
                        fill(&message, verb);
                        message.number[k] = MG_UNKNOWN;
                        if (needed || verb == MG_VERB_UNKNOWN)
                                assert_refused(&message);
                        else
                                assert_round_trip(&message);
                }
}

static void test_required_texts(void **state) {
        for (int verb = 0; verb < _MG_VERB_MAX; verb++)
                for (int k = 0; k < _MG_TEXT_KEY_MAX; k++) {
                        const char *name = proto_text_name(k);
                        bool needed = span_has_word(span_of(required[verb]), name);
                        struct mg_message message;

                        assert_int_equal(decode_without(verb, name), needed ? -EBADMSG : 0);
                        fill(&message, verb);
                        message.text[k] = span_of("");
                        if (needed || verb == MG_VERB_UNKNOWN)
                                assert_refused(&message);
                        else
                                assert_round_trip(&message);
                }
}

static void test_a_heap_needs_its_allocator_only(void **state) {
        struct mg_message message;

        for (int k = 0; k < _MG_HEAP_NUMBER_MAX; k++) {
                fill(&message, MG_VERB_STATS_REPLY);
                message.heap[0].number[k] = MG_UNKNOWN;
                assert_round_trip(&message);
        }
        for (int k = 0; k < _MG_HEAP_TEXT_MAX; k++) {
                fill(&message, MG_VERB_HELLO);
                message.heap[0].text[k] = span_of(NULL);
                if (k == MG_HEAP_ALLOCATOR)
                        assert_refused(&message);
                else
                        assert_round_trip(&message);
        }
}

static void test_what_is_out_of_range_is_not_sent(void **state) {
        struct mg_message message;

        fill(&message, MG_VERB_UNKNOWN);
        assert_refused(&message);
        fill(&message, _MG_VERB_MAX);
        assert_refused(&message);
        fill(&message, MG_VERB_TRIM_REPLY);
        message.number[MG_NUMBER_RESULT] = _MG_RESULT_MAX;
        assert_refused(&message);
        fill(&message, MG_VERB_STATS_REPLY);
        message.number[MG_NUMBER_HEAPS] = MG_HEAPS_MAX + 1;
        assert_refused(&message);
        message.number[MG_NUMBER_HEAPS] = MG_UNKNOWN - 1;
        assert_refused(&message);
        message.number[MG_NUMBER_HEAPS] = 2; /* the second has no allocator */
        assert_refused(&message);
}

static void test_heaps_beyond_the_count_are_not_sent(void **state) {
        char buffer[MG_MESSAGE_MAX_BYTES];
        struct mg_message message;
        size_t length;

        fill(&message, MG_VERB_STATS_REPLY);
        message.number[MG_NUMBER_HEAPS] = 0;
        assert_int_equal(proto_encode(&message, buffer, sizeof(buffer), &length), 0);
        assert_null(memmem(buffer, length, "HEAP0_", 6));
        message.number[MG_NUMBER_HEAPS] = MG_UNKNOWN;
        message.verb = MG_VERB_PING;
        assert_int_equal(proto_encode(&message, buffer, sizeof(buffer), &length), 0);
        assert_null(memmem(buffer, length, "HEAP", 4));
}

static void test_heap_count(void **state) {
        static const uint64_t heaps[] = { MG_UNKNOWN,       0, 1, MG_HEAPS_MAX, MG_HEAPS_MAX + 1,
                                          UINT64_C(1) << 32 };
        static const size_t counts[] = { 0, 0, 1, MG_HEAPS_MAX, MG_HEAPS_MAX, MG_HEAPS_MAX };
        struct mg_message message;

        proto_init(&message, MG_VERB_HELLO);
        for (size_t i = 0; i < MG_ELEMENTS(heaps); i++) {
                message.number[MG_NUMBER_HEAPS] = heaps[i];
                assert_int_equal(proto_heap_count(&message), counts[i]);
        }
}

static void test_encoder_keeps_the_framing(void **state) {
        static const struct {
                const char *tag;
                const char *sent;
        } cases[] = {
                { "plain", "plain" },
                { "line\nVERB=trim", "line?VERB=trim" },
                { "cr\r tab\t esc\x1b del\x7f", "cr? tab? esc? del?" },
                { "läuft 測定 😀", "läuft 測定 😀" },
                { "latin l\xe4uft", "latin l?uft" },
                { "c1 \xc2\x9b", "c1 ??" },
                { "cut \xe6\xb8", "cut ??" },
                { "overlong \xc0\xaf", "overlong ??" },
                { "surrogate \xed\xa0\x80", "surrogate ???" },
                { "=", "=" },
        };
        char buffer[MG_MESSAGE_MAX_BYTES], expected[256];
        struct mg_message message;
        size_t length;

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                proto_init(&message, MG_VERB_CHECKPOINT);
                message.text[MG_TEXT_TAG] = span_of(cases[i].tag);
                assert_int_equal(proto_encode(&message, buffer, sizeof(buffer), &length), 0);
                snprintf(expected, sizeof(expected), "VERB=checkpoint\nTAG=%s\n", cases[i].sent);
                assert_int_equal(length, strlen(expected));
                assert_memory_equal(buffer, expected, length);
                assert_round_trip(&message);
        }
        message.text[MG_TEXT_TAG] = (struct mg_span){ "a\0b", 3 };
        assert_int_equal(proto_encode(&message, buffer, sizeof(buffer), &length), 0);
        assert_memory_equal(buffer, "VERB=checkpoint\nTAG=a?b\n", length);
}

static void test_encoder_knows_the_limit(void **state) {
        static char big[2 * MG_MESSAGE_MAX_BYTES], tag[MG_MESSAGE_MAX_BYTES];
        const size_t frame = strlen("VERB=checkpoint\nTAG=\n");
        struct mg_message message;
        size_t length = 777;

        memset(tag, 'x', sizeof(tag));
        proto_init(&message, MG_VERB_CHECKPOINT);
        message.text[MG_TEXT_TAG] = (struct mg_span){ tag, MG_MESSAGE_MAX_BYTES - frame + 1 };
        assert_int_equal(proto_encode(&message, big, sizeof(big), &length), -EMSGSIZE);
        assert_int_equal(proto_encode(&message, big, 0, &length), -EMSGSIZE);
        assert_int_equal(length, 777);
        message.text[MG_TEXT_TAG].length--;
        assert_int_equal(proto_encode(&message, big, sizeof(big), &length), 0);
        assert_int_equal(length, MG_MESSAGE_MAX_BYTES);
}

static void test_words_of_a_list(void **state) {
        static const struct {
                const char *list;
                const char *word;
                int has;
        } cases[] = {
                { "stats,trim,arena-tops", "stats", 1 },
                { "stats,trim,arena-tops", "trim", 1 },
                { "stats,trim,arena-tops", "arena-tops", 1 },
                { "trim", "trim", 1 },
                { "stats,trim,arena-tops", "arena", 0 },
                { "stats,trim,arena-tops", "tops", 0 },
                { "stats,trim,arena-tops", "stats,trim", 0 },
                { "stats, trim", "trim", 0 },
                { "Trim", "trim", 0 },
                { ",,trim,", "trim", 1 },
                { "trimm,tri", "trim", 0 },
                { ",", "trim", 0 },
                { "", "trim", 0 },
                { NULL, "trim", 0 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++)
                assert_int_equal(
                                span_has_word(span_of(cases[i].list), cases[i].word), cases[i].has);
        assert_true(span_equals(span_of(NULL), ""));
        assert_false(span_equals(span_of(NULL), "x"));
        assert_false(span_equals((struct mg_span){ "x\0", 2 }, "x"));
}

/* By code point, straight from RFC 3629: printable in its one form, and in no other. */
static size_t utf8_encode(uint32_t point, size_t length, char *ret_bytes) {
        static const unsigned char leads[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

        if (length == 1) {
                ret_bytes[0] = (char) point;
                return length;
        }
        for (size_t i = length - 1; i > 0; i--, point >>= 6)
                ret_bytes[i] = (char) (0x80 | (point & 0x3f));
        ret_bytes[0] = (char) (leads[length] | point);
        return length;
}

static void test_every_code_point(void **state) {
        static const uint32_t ends[] = { 0, 0x80, 0x800, 0x10000, 0x200000 };
        char bytes[4];

        for (size_t length = 1; length <= 4; length++)
                for (uint32_t point = 0; point < ends[length]; point++) {
                        bool is_good = point >= ends[length - 1] && point <= 0x10ffff &&
                                       !(point >= 0xd800 && point <= 0xdfff) && point >= 0x20 &&
                                       !(point >= 0x7f && point <= 0x9f);
                        utf8_encode(point, length, bytes);
                        assert_int_equal(
                                        utf8_printable_length(bytes, length), is_good ? length : 0);
                        for (size_t cut = 1; cut < length; cut++)
                                assert_int_equal(utf8_printable_length(bytes, cut), 0);
                }
}

/* Adds a line of the page's example to the datagram, or ends the datagram and decodes it. */
static size_t take_example_line(const char *line, char *datagram, size_t length) {
        struct mg_message message;

        if ((line[0] == '<' || line[0] == '>') && line[1] == ' ') {
                assert_true(length + strlen(line) < MG_MESSAGE_MAX_BYTES);
                strcpy(datagram + length, line + 2);
                return length + strlen(line + 2);
        }
        if (length > 0)
                assert_int_equal(proto_decode(datagram, length, &message), 0);
        return 0;
}

static void test_the_page_s_example_decodes(void **state) {
        char path[4096], line[512], datagram[MG_MESSAGE_MAX_BYTES];
        size_t length = 0, messages = 0;

        snprintf(path, sizeof(path), "%s/../../../man/memguard-protocol.7.scd",
                 getenv("TEST_DATA"));
        FILE *page = fopen(path, "re");
        assert_non_null(page);
        while (fgets(line, sizeof(line), page)) {
                size_t before = length;
                length = take_example_line(line, datagram, length);
                if (before > 0 && length == 0)
                        messages++;
        }
        fclose(page);
        assert_true(messages >= 7);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_required_numbers),
                cmocka_unit_test(test_required_texts),
                cmocka_unit_test(test_a_heap_needs_its_allocator_only),
                cmocka_unit_test(test_what_is_out_of_range_is_not_sent),
                cmocka_unit_test(test_heaps_beyond_the_count_are_not_sent),
                cmocka_unit_test(test_heap_count),
                cmocka_unit_test(test_encoder_keeps_the_framing),
                cmocka_unit_test(test_encoder_knows_the_limit),
                cmocka_unit_test(test_words_of_a_list),
                cmocka_unit_test(test_every_code_point),
                cmocka_unit_test(test_the_page_s_example_decodes),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
