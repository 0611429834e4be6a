/* SPDX-License-Identifier: MIT */
/*
 * Datagram to message and back. A message and each of its heaps are the same thing here, a
 * group of slots with a table of keys; one set of functions serves both. Nothing is written
 * to the caller's message before the whole datagram was found good. Layer: proto; pure.
 */
#include "proto/proto.h"

#include <errno.h>
#include <stdbool.h>

#include "base/macros.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/utf8.h"
#include "proto/keys.h"

#define VERB_KEY    "VERB"
#define HEAP_PREFIX "HEAP"

struct group {
        const struct mg_key_table *keys;
        uint64_t *number;
        struct mg_span *text;
};

static struct group message_group(struct mg_message *message) {
        return (struct group){ &proto_message_keys, message->number, message->text };
}

static struct group heap_group(struct mg_heap_message *heap) {
        return (struct group){ &proto_heap_keys, heap->number, heap->text };
}

static void group_clear(struct group group) {
        for (size_t i = 0; i < group.keys->n_numbers; i++)
                group.number[i] = MG_UNKNOWN;
        for (size_t i = 0; i < group.keys->n_texts; i++)
                group.text[i] = (struct mg_span){};
}

static bool group_has_required(struct group group, enum mg_verb verb) {
        uint32_t bit = UINT32_C(1) << verb;

        for (size_t i = 0; i < group.keys->n_numbers; i++)
                if ((group.keys->numbers[i].required_by & bit) && group.number[i] == MG_UNKNOWN)
                        return false;
        for (size_t i = 0; i < group.keys->n_texts; i++)
                if ((group.keys->texts[i].required_by & bit) && group.text[i].length == 0)
                        return false;
        return true;
}

static bool group_is_clear(struct group group) {
        for (size_t i = 0; i < group.keys->n_numbers; i++)
                if (group.number[i] != MG_UNKNOWN)
                        return false;
        for (size_t i = 0; i < group.keys->n_texts; i++)
                if (group.text[i].bytes)
                        return false;
        return true;
}

void proto_init(struct mg_message *message, enum mg_verb verb) {
        message->verb = verb;
        group_clear(message_group(message));
        for (size_t i = 0; i < MG_HEAPS_MAX; i++)
                group_clear(heap_group(&message->heap[i]));
}

size_t proto_heap_count(const struct mg_message *message) {
        uint64_t heaps = message->number[MG_NUMBER_HEAPS];
        return heaps == MG_UNKNOWN ? 0 : (size_t) MG_MIN(heaps, (uint64_t) MG_HEAPS_MAX);
}

struct mg_span span_of(const char *string) {
        return (struct mg_span){ string, string ? strlen(string) : 0 };
}

int span_equals(struct mg_span span, const char *string) {
        return span.length == strlen(string) &&
               (span.length == 0 || memcmp(span.bytes, string, span.length) == 0);
}

static struct mg_span span_before(struct mg_span span, size_t at) {
        return (struct mg_span){ span.bytes, at };
}

static struct mg_span span_after(struct mg_span span, size_t at) {
        return (struct mg_span){ span.bytes + at, span.length - at };
}

/* Where C stands first in SPAN; its length when nowhere. */
static size_t span_find(struct mg_span span, char c) {
        size_t at = 0;
        while (at < span.length && span.bytes[at] != c)
                at++;
        return at;
}

int span_has_word(struct mg_span list, const char *word) {
        while (list.length > 0) {
                size_t comma = span_find(list, ',');
                if (span_equals(span_before(list, comma), word))
                        return 1;
                list = span_after(list, MG_MIN(comma + 1, list.length));
        }
        return 0;
}

/* Whole lines of printable characters, the last one ended like the others. */
static bool is_framed(struct mg_span rest) {
        if (rest.length == 0 || rest.bytes[rest.length - 1] != '\n')
                return false;
        while (rest.length > 0) {
                bool is_end = rest.bytes[0] == '\n';
                size_t length = is_end ? 1 : utf8_printable_length(rest.bytes, rest.length);
                if (length == 0)
                        return false;
                rest = span_after(rest, length);
        }
        return true;
}

/* Cuts the first line off a framed *REST. */
static int take_line(struct mg_span *rest, struct mg_span *ret_key, struct mg_span *ret_value) {
        size_t end = span_find(*rest, '\n');
        struct mg_span line = span_before(*rest, end);
        size_t equals = span_find(line, '=');

        if (equals == 0 || equals == line.length)
                return -EBADMSG;
        *rest = span_after(*rest, end + 1);
        *ret_key = span_before(line, equals);
        *ret_value = span_after(line, equals + 1);
        return 0;
}

static int number_parse(const struct mg_key *key, struct mg_span value, uint64_t *ret_number) {
        uint64_t number;

        if (!key->words) {
                if (parse_u64_span(value.bytes, value.length, &number) < 0 || number == MG_UNKNOWN)
                        return -EBADMSG;
                *ret_number = number;
                return 0;
        }
        for (size_t i = 0; i < key->n_words; i++)
                if (span_equals(value, key->words[i])) {
                        *ret_number = i;
                        return 0;
                }
        return -EBADMSG;
}

static bool find_key(
                const struct mg_key *keys,
                size_t n_keys,
                struct mg_span name,
                size_t *ret_index) {
        for (size_t i = 0; i < n_keys; i++)
                if (span_equals(name, keys[i].name)) {
                        *ret_index = i;
                        return true;
                }
        return false;
}

/* A name that the group does not know is no error: a newer peer may say more. */
static int group_store(struct group group, struct mg_span name, struct mg_span value) {
        const struct mg_key_table *keys = group.keys;
        size_t i;

        if (find_key(keys->numbers, keys->n_numbers, name, &i)) {
                if (group.number[i] != MG_UNKNOWN)
                        return -EBADMSG;
                return number_parse(&keys->numbers[i], value, &group.number[i]);
        }
        if (find_key(keys->texts, keys->n_texts, name, &i)) {
                if (group.text[i].bytes || value.length == 0)
                        return -EBADMSG;
                group.text[i] = value;
        }
        return 0;
}

/* Whether *NAME begins with HEAPn_, n in its only spelling; then *NAME is what follows. */
static bool take_heap_index(struct mg_span *name, uint64_t *ret_index) {
        size_t prefix = strlen(HEAP_PREFIX), underscore = span_find(*name, '_');
        uint64_t index;

        if (underscore <= prefix || underscore == name->length ||
            memcmp(name->bytes, HEAP_PREFIX, prefix) != 0)
                return false;
        struct mg_span digits = span_after(span_before(*name, underscore), prefix);
        int r = parse_u64_span(digits.bytes, digits.length, &index);
        if (r == -EINVAL || (digits.bytes[0] == '0' && digits.length > 1))
                return false;
        *ret_index = r < 0 ? UINT64_MAX : index;
        *name = span_after(*name, underscore + 1);
        return true;
}

static bool is_heap_key(struct mg_span name) {
        const struct mg_key_table *keys = &proto_heap_keys;
        size_t i;

        return find_key(keys->numbers, keys->n_numbers, name, &i) ||
               find_key(keys->texts, keys->n_texts, name, &i);
}

static int store_line(struct mg_message *message, struct mg_span key, struct mg_span value) {
        uint64_t index;

        if (span_equals(key, VERB_KEY))
                return -EBADMSG; /* the first line was it */
        if (!take_heap_index(&key, &index))
                return group_store(message_group(message), key, value);
        if (index >= MG_HEAPS_MAX)
                return is_heap_key(key) ? -EBADMSG : 0;
        return group_store(heap_group(&message->heap[index]), key, value);
}

/* The heaps that HEAPS= announces are all named, and there are no others. */
static bool heaps_are_whole(struct mg_message *message) {
        uint64_t heaps = message->number[MG_NUMBER_HEAPS];

        if (heaps == MG_UNKNOWN)
                heaps = 0;
        if (heaps > MG_HEAPS_MAX)
                return false;
        for (size_t i = 0; i < MG_HEAPS_MAX; i++) {
                struct group group = heap_group(&message->heap[i]);
                if (i < heaps ? !group_has_required(group, message->verb) : !group_is_clear(group))
                        return false;
        }
        return true;
}

static bool is_whole(struct mg_message *message) {
        return group_has_required(message_group(message), message->verb) &&
               heaps_are_whole(message);
}

int proto_decode(const char *datagram, size_t length, struct mg_message *ret_message) {
        struct mg_span rest = { datagram, length }, key, value;
        struct mg_message message;

        if (length > MG_MESSAGE_MAX_BYTES)
                return -EMSGSIZE;
        if (!is_framed(rest) || take_line(&rest, &key, &value) < 0 || !span_equals(key, VERB_KEY) ||
            value.length == 0)
                return -EBADMSG;
        proto_init(&message, verb_from_span(value));
        while (rest.length > 0)
                if (take_line(&rest, &key, &value) < 0 || store_line(&message, key, value) < 0)
                        return -EBADMSG;
        if (!is_whole(&message))
                return -EBADMSG;
        *ret_message = message;
        return 0;
}

/* Unlike struct mg_text it writes no NUL: the last of 4096 bytes is the message's. */
struct output {
        char *buffer;
        size_t size;
        size_t length;
        bool overflow;
};

static void put_span(struct output *output, struct mg_span span) {
        if (span.length > output->size - output->length) {
                output->overflow = true;
                return;
        }
        memcpy(output->buffer + output->length, span.bytes, span.length);
        output->length += span.length;
}

static void put_printable(struct output *output, struct mg_span span) {
        while (span.length > 0) {
                size_t length = utf8_printable_length(span.bytes, span.length);
                put_span(output, length > 0 ? span_before(span, length) : span_of("?"));
                span = span_after(span, MG_MAX(length, (size_t) 1));
        }
}

static void put_line(
                struct output *output,
                const char *prefix,
                const char *key,
                struct mg_span value) {
        put_span(output, span_of(prefix));
        put_span(output, span_of(key));
        put_span(output, span_of("="));
        put_printable(output, value);
        put_span(output, span_of("\n"));
}

static void put_number(
                struct output *output,
                const char *prefix,
                const struct mg_key *key,
                uint64_t number) {
        char buffer[MG_SHORT_TEXT_MAX];
        struct mg_text digits;

        if (key->words) {
                put_line(output, prefix, key->name, span_of(key->words[number]));
                return;
        }
        text_init(&digits, buffer, sizeof(buffer));
        text_put_u64(&digits, number);
        put_line(output, prefix, key->name, (struct mg_span){ digits.buffer, digits.length });
}

static void put_group(struct output *output, const char *prefix, struct group group) {
        for (size_t i = 0; i < group.keys->n_numbers; i++)
                if (group.number[i] != MG_UNKNOWN)
                        put_number(output, prefix, &group.keys->numbers[i], group.number[i]);
        for (size_t i = 0; i < group.keys->n_texts; i++)
                if (group.text[i].length > 0)
                        put_line(output, prefix, group.keys->texts[i].name, group.text[i]);
}

static bool words_are_known(const struct mg_message *message) {
        for (size_t i = 0; i < _MG_NUMBER_MAX; i++) {
                const struct mg_key *key = &proto_message_keys.numbers[i];
                if (key->words && message->number[i] != MG_UNKNOWN &&
                    message->number[i] >= key->n_words)
                        return false;
        }
        return true;
}

int proto_encode(const struct mg_message *input, char *buffer, size_t size, size_t *ret_length) {
        struct output output = { buffer, MG_MIN(size, (size_t) MG_MESSAGE_MAX_BYTES) };
        struct mg_message message = *input;
        size_t heaps = proto_heap_count(&message);
        char prefix[] = HEAP_PREFIX "0_";

        for (size_t i = heaps; i < MG_HEAPS_MAX; i++)
                group_clear(heap_group(&message.heap[i]));
        if (message.verb <= MG_VERB_UNKNOWN || message.verb >= _MG_VERB_MAX ||
            !words_are_known(&message) || !is_whole(&message))
                return -EINVAL;
        put_line(&output, "", VERB_KEY, span_of(verb_to_string(message.verb)));
        put_group(&output, "", message_group(&message));
        for (size_t i = 0; i < heaps; i++) {
                prefix[strlen(HEAP_PREFIX)] = (char) ('0' + i);
                put_group(&output, prefix, heap_group(&message.heap[i]));
        }
        if (output.overflow)
                return -EMSGSIZE;
        *ret_length = output.length;
        return 0;
}
