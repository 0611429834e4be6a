/* SPDX-License-Identifier: MIT */
/*
 * The golden vectors: each datagram decodes to just the slots that its text file names, or to
 * its errno; the named slots encode to just its bytes. From each good one follow more bad ones:
 * all its truncations, one byte behind it, a bad byte anywhere in it. The file also has to
 * hold each verb and each key, so that no new one goes without.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/macros.h"
#include "base/parse.h"
#include "proto/proto.h"

#define BYTES_MAX (72 * 1024)

struct bytes {
        char at[BYTES_MAX];
        size_t length;
};

struct vector {
        char name[128];
        struct bytes wire;
        struct bytes gives; /* a line for each slot, the verb first */
        struct bytes encoded;
        bool cannot_encode;
        int error;
};

typedef void (*vector_check)(const struct vector *vector);

static void append(struct bytes *bytes, const char *at, size_t length) {
        assert_true(bytes->length + length <= BYTES_MAX);
        memcpy(bytes->at + bytes->length, at, length);
        bytes->length += length;
}

/* Appends what follows a backslash and returns where it ends. */
static const char *append_escape(struct bytes *bytes, const char *at) {
        static const char names[] = "nrt0\\", values[] = "\n\r\t\0\\";
        int count, taken = 0;
        unsigned byte;
        char c;

        if (sscanf(at, "x%2x%n", &byte, &taken) == 1 && taken == 3) {
                c = (char) byte;
                append(bytes, &c, 1);
        } else if (sscanf(at, "{%d %c}%n", &count, &c, &taken) == 2 && taken > 0) {
                while (count-- > 0)
                        append(bytes, &c, 1);
        } else {
                const char *name = strchr(names, *at);
                assert_non_null(name);
                assert_true(*name != '\0');
                append(bytes, &values[name - names], 1);
                taken = 1;
        }
        return at + taken;
}

static void append_escaped(struct bytes *bytes, const char *text) {
        while (*text != '\0')
                if (*text == '\\') {
                        text = append_escape(bytes, text + 1);
                } else {
                        append(bytes, text++, 1);
                }
}

static void vector_take_line(struct vector *vector, const char *key, const char *value) {
        if (mg_streq(key, "wire")) {
                append_escaped(&vector->wire, value);
        } else if (mg_streq(key, "gives")) {
                append_escaped(&vector->gives, value);
                append(&vector->gives, "\n", 1);
        } else if (mg_streq(key, "encode") && mg_streq(value, "none")) {
                vector->cannot_encode = true;
        } else if (mg_streq(key, "encode")) {
                append_escaped(&vector->encoded, value);
        } else if (mg_streq(key, "error")) {
                vector->error = mg_streq(value, "EMSGSIZE") ? -EMSGSIZE : -EBADMSG;
                assert_true(vector->error == -EMSGSIZE || mg_streq(value, "EBADMSG"));
        } else {
                fail_msg("%s: what is \"%s\"?", vector->name, key);
        }
}

static void vector_finish(struct vector *vector, vector_check check) {
        if (vector->name[0] == '\0')
                return;
        assert_true((vector->error < 0) == (vector->gives.length == 0));
        if (vector->error == 0 && vector->encoded.length == 0)
                append(&vector->encoded, vector->wire.at, vector->wire.length);
        print_message("        %s\n", vector->name);
        check(vector);
}

static size_t each_vector(vector_check check) {
        static struct vector vector;
        char path[4096], line[1024];
        size_t n = 0;

        snprintf(path, sizeof(path), "%s/protocol-1.vectors", getenv("TEST_DATA"));
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        vector = (struct vector){};
        while (fgets(line, sizeof(line), file)) {
                line[strcspn(line, "\n")] = '\0';
                char *value = strstr(line, ": ");
                if (line[0] == '#' || line[0] == '\0')
                        continue;
                assert_non_null(value);
                *value = '\0';
                value += 2;
                if (!mg_streq(line, "name")) {
                        vector_take_line(&vector, line, value);
                        continue;
                }
                vector_finish(&vector, check);
                vector = (struct vector){};
                snprintf(vector.name, sizeof(vector.name), "%s", value);
                n++;
        }
        vector_finish(&vector, check);
        fclose(file);
        return n;
}

/* Decodes from a heap block of just that size, so that ASan and valgrind see reads beyond it. */
static int decode_exactly(
                const char *bytes,
                size_t length,
                struct mg_message *ret_message,
                char **ret_block) {
        char *block = malloc(length > 0 ? length : 1);

        assert_non_null(block);
        memcpy(block, bytes, length);
        *ret_block = block;
        return proto_decode(block, length, ret_message);
}

static int try_decode(const char *bytes, size_t length) {
        struct mg_message message;
        char *block;

        int r = decode_exactly(bytes, length, &message, &block);
        free(block);
        return r;
}

static void dump_number(struct bytes *out, const char *prefix, const char *name, uint64_t number) {
        char line[128];

        if (number == MG_UNKNOWN)
                return;
        snprintf(line, sizeof(line), "%s%s=%llu\n", prefix, name, (unsigned long long) number);
        append(out, line, strlen(line));
}

static void dump_text(
                struct bytes *out,
                const char *prefix,
                const char *name,
                struct mg_span text) {
        if (!text.bytes)
                return;
        append(out, prefix, strlen(prefix));
        append(out, name, strlen(name));
        append(out, "=", 1);
        append(out, text.bytes, text.length);
        append(out, "\n", 1);
}

static void dump_heap(struct bytes *out, size_t i, const struct mg_heap_message *heap) {
        char prefix[16];

        snprintf(prefix, sizeof(prefix), "HEAP%zu_", i);
        for (int k = 0; k < _MG_HEAP_NUMBER_MAX; k++)
                dump_number(out, prefix, proto_heap_number_name(k), heap->number[k]);
        for (int k = 0; k < _MG_HEAP_TEXT_MAX; k++)
                dump_text(out, prefix, proto_heap_text_name(k), heap->text[k]);
}

static void dump(struct bytes *out, const struct mg_message *message) {
        const char *verb = verb_to_string(message->verb);

        append(out, verb, strlen(verb));
        append(out, "\n", 1);
        for (int k = 0; k < _MG_NUMBER_MAX; k++)
                if (k == MG_NUMBER_RESULT && message->number[k] != MG_UNKNOWN)
                        dump_text(out, "", "RESULT", span_of(result_to_string(message->number[k])));
                else
                        dump_number(out, "", proto_number_name(k), message->number[k]);
        for (int k = 0; k < _MG_TEXT_KEY_MAX; k++)
                dump_text(out, "", proto_text_name(k), message->text[k]);
        for (size_t i = 0; i < MG_HEAPS_MAX; i++)
                dump_heap(out, i, &message->heap[i]);
}

static void check_decoded(const struct vector *vector) {
        static struct bytes dumped;
        struct mg_message message;
        char *block;

        memset(&message, 0xa5, sizeof(message));
        assert_int_equal(
                        decode_exactly(vector->wire.at, vector->wire.length, &message, &block),
                        vector->error);
        if (vector->error < 0) {
                for (size_t i = 0; i < sizeof(message); i++)
                        assert_int_equal(((unsigned char *) &message)[i], 0xa5);
        } else {
                dumped.length = 0;
                dump(&dumped, &message);
                assert_int_equal(dumped.length, vector->gives.length);
                assert_memory_equal(dumped.at, vector->gives.at, dumped.length);
        }
        free(block);
}

static bool set_number(const char *name, struct mg_span value, struct mg_message *message) {
        for (int k = 0; k < _MG_NUMBER_MAX; k++) {
                if (!mg_streq(name, proto_number_name(k)))
                        continue;
                if (k != MG_NUMBER_RESULT) {
                        assert_int_equal(
                                        parse_u64_span(value.bytes, value.length,
                                                       &message->number[k]),
                                        0);
                        return true;
                }
                for (int r = 0; r < _MG_RESULT_MAX; r++)
                        if (span_equals(value, result_to_string(r)))
                                message->number[k] = r;
                return true;
        }
        return false;
}

static bool set_text(const char *name, struct mg_span value, struct mg_message *message) {
        for (int k = 0; k < _MG_TEXT_KEY_MAX; k++)
                if (mg_streq(name, proto_text_name(k))) {
                        message->text[k] = value;
                        return true;
                }
        return false;
}

static bool set_heap(const char *name, struct mg_span value, struct mg_message *message) {
        size_t heap;
        int taken = 0;

        if (sscanf(name, "HEAP%zu_%n", &heap, &taken) != 1 || taken == 0)
                return false;
        assert_true(heap < MG_HEAPS_MAX);
        for (int k = 0; k < _MG_HEAP_NUMBER_MAX; k++)
                if (mg_streq(name + taken, proto_heap_number_name(k)))
                        return parse_u64_span(value.bytes, value.length,
                                              &message->heap[heap].number[k]) == 0;
        for (int k = 0; k < _MG_HEAP_TEXT_MAX; k++)
                if (mg_streq(name + taken, proto_heap_text_name(k))) {
                        message->heap[heap].text[k] = value;
                        return true;
                }
        return false;
}

/* The message that the lines of GIVES name, made without the decoder. */
static void build(const struct bytes *gives, struct mg_message *ret_message) {
        const char *at = gives->at, *end = gives->at + gives->length;

        proto_init(ret_message, MG_VERB_UNKNOWN);
        for (const char *next; at < end; at = next + 1) {
                next = memchr(at, '\n', (size_t) (end - at));
                const char *equals = memchr(at, '=', (size_t) (next - at));
                char name[128];
                if (!equals) {
                        for (int verb = 0; verb < _MG_VERB_MAX; verb++)
                                if (span_equals((struct mg_span){ at, (size_t) (next - at) },
                                                verb_to_string(verb)))
                                        ret_message->verb = verb;
                        continue;
                }
                struct mg_span value = { equals + 1, (size_t) (next - equals - 1) };
                snprintf(name, sizeof(name), "%.*s", (int) (equals - at), at);
                assert_true(set_number(name, value, ret_message) ||
                            set_text(name, value, ret_message) ||
                            set_heap(name, value, ret_message));
        }
}

static void check_encoded(const struct vector *vector) {
        char buffer[MG_MESSAGE_MAX_BYTES + 1];
        struct mg_message message;
        size_t length = 12345;

        if (vector->error < 0)
                return;
        build(&vector->gives, &message);
        buffer[vector->encoded.length] = '#';
        int r = proto_encode(&message, buffer, MG_MESSAGE_MAX_BYTES, &length);
        if (vector->cannot_encode) {
                assert_int_equal(r, -EINVAL);
                assert_int_equal(length, 12345);
                return;
        }
        assert_int_equal(r, 0);
        assert_int_equal(length, vector->encoded.length);
        assert_memory_equal(buffer, vector->encoded.at, length);
        assert_int_equal(buffer[length], '#');

        /* A buffer one byte short is too short, and not written beyond. */
        buffer[length - 1] = '#';
        assert_int_equal(proto_encode(&message, buffer, length - 1, &length), -EMSGSIZE);
        assert_int_equal(length, vector->encoded.length);
        assert_int_equal(buffer[length - 1], '#');
}

/*
 * A truncated message may be a shorter one, cut at the end of a line. Then it must mean the same
 * as far as it goes: the lines of its dump are all lines of the whole one, in order.
 */
static void check_harmless(const struct vector *vector, size_t length) {
        static struct bytes dumped;
        struct mg_message message;
        const char *whole = vector->gives.at, *end = whole + vector->gives.length;
        char *block;

        assert_int_equal(vector->wire.at[length - 1], '\n');
        assert_int_equal(decode_exactly(vector->wire.at, length, &message, &block), 0);
        dumped.length = 0;
        dump(&dumped, &message);
        free(block);
        for (size_t at = 0; at < dumped.length;) {
                size_t line = (size_t) ((char *) memchr(dumped.at + at, '\n', dumped.length - at) -
                                        dumped.at) +
                              1 - at;
                whole = memmem(whole, (size_t) (end - whole), dumped.at + at, line);
                assert_non_null(whole);
                whole += line;
                at += line;
        }
}

static void check_truncations(const struct vector *vector) {
        if (vector->error < 0)
                return;
        for (size_t length = 0; length < vector->wire.length; length++) {
                int r = try_decode(vector->wire.at, length);
                if (r == 0)
                        check_harmless(vector, length);
                else
                        assert_int_equal(r, -EBADMSG);
        }
}

static void check_trailing_bytes(const struct vector *vector) {
        static struct bytes longer;

        if (vector->error < 0)
                return;
        longer = vector->wire;
        longer.length++;
        for (int byte = 0; byte < 256; byte++) {
                longer.at[longer.length - 1] = (char) byte;
                int r = try_decode(longer.at, longer.length);
                assert_int_equal(r, longer.length > MG_MESSAGE_MAX_BYTES ? -EMSGSIZE : -EBADMSG);
        }
}

static void check_bad_bytes(const struct vector *vector) {
        static const char bad[] = { '\0', '\r', '\t', '\x1b', '\x7f', '\xff', '\xc0' };
        static struct bytes damaged;

        if (vector->error < 0)
                return;
        damaged = vector->wire;
        for (size_t at = 0; at < vector->wire.length; at++) {
                for (size_t i = 0; i < sizeof(bad); i++) {
                        damaged.at[at] = bad[i];
                        assert_int_equal(try_decode(damaged.at, damaged.length), -EBADMSG);
                }
                damaged.at[at] = vector->wire.at[at];
        }
}

static struct mg_message seen; /* slots that some vector fills: 0; others: MG_UNKNOWN, NULL */
static bool seen_verb[_MG_VERB_MAX];

static void note_seen(const struct vector *vector) {
        struct mg_message message;

        if (vector->error < 0)
                return;
        build(&vector->gives, &message);
        seen_verb[message.verb] = true;
        for (int k = 0; k < _MG_NUMBER_MAX; k++)
                seen.number[k] = MG_MIN(seen.number[k], message.number[k]);
        for (int k = 0; k < _MG_TEXT_KEY_MAX; k++)
                if (message.text[k].bytes)
                        seen.text[k] = span_of("seen");
        for (size_t i = 0; i < MG_HEAPS_MAX; i++) {
                for (int k = 0; k < _MG_HEAP_NUMBER_MAX; k++)
                        seen.heap[0].number[k] =
                                        MG_MIN(seen.heap[0].number[k], message.heap[i].number[k]);
                for (int k = 0; k < _MG_HEAP_TEXT_MAX; k++)
                        if (message.heap[i].text[k].bytes)
                                seen.heap[0].text[k] = span_of("seen");
        }
}

static void test_decode(void **state) {
        assert_true(each_vector(check_decoded) > 100);
}

static void test_encode(void **state) {
        each_vector(check_encoded);
}

static void test_truncations(void **state) {
        each_vector(check_truncations);
}

static void test_trailing_bytes(void **state) {
        each_vector(check_trailing_bytes);
}

static void test_bad_bytes(void **state) {
        each_vector(check_bad_bytes);
}

static void test_vectors_cover_everything(void **state) {
        proto_init(&seen, MG_VERB_UNKNOWN);
        each_vector(note_seen);
        for (int verb = 0; verb < _MG_VERB_MAX; verb++)
                if (!seen_verb[verb])
                        fail_msg("no vector of %s", verb_to_string(verb));
        for (int k = 0; k < _MG_NUMBER_MAX; k++)
                if (seen.number[k] == MG_UNKNOWN)
                        fail_msg("no vector with %s", proto_number_name(k));
        for (int k = 0; k < _MG_TEXT_KEY_MAX; k++)
                if (!seen.text[k].bytes)
                        fail_msg("no vector with %s", proto_text_name(k));
        for (int k = 0; k < _MG_HEAP_NUMBER_MAX; k++)
                if (seen.heap[0].number[k] == MG_UNKNOWN)
                        fail_msg("no vector with %s of a heap", proto_heap_number_name(k));
        for (int k = 0; k < _MG_HEAP_TEXT_MAX; k++)
                if (!seen.heap[0].text[k].bytes)
                        fail_msg("no vector with %s of a heap", proto_heap_text_name(k));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_decode),      cmocka_unit_test(test_encode),
                cmocka_unit_test(test_truncations), cmocka_unit_test(test_trailing_bytes),
                cmocka_unit_test(test_bad_bytes),   cmocka_unit_test(test_vectors_cover_everything),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
