/* SPDX-License-Identifier: MIT */
/*
 * The codec on any bytes: what decodes is encoded in one canonical form, which means the same
 * and is encoded as itself; what does not decode leaves the output alone.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "proto/proto.h"

static void require(int condition) {
        if (!condition)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char first[MG_MESSAGE_MAX_BYTES], second[MG_MESSAGE_MAX_BYTES];
        size_t first_length, second_length;
        struct mg_message message;

        message.verb = _MG_VERB_MAX;
        if (proto_decode((const char *) data, size, &message) < 0) {
                require(message.verb == _MG_VERB_MAX);
                return 0;
        }
        require(message.verb < _MG_VERB_MAX && proto_heap_count(&message) <= MG_HEAPS_MAX);
        if (message.verb == MG_VERB_UNKNOWN) {
                require(proto_encode(&message, first, sizeof(first), &first_length) < 0);
                return 0;
        }
        require(proto_encode(&message, first, sizeof(first), &first_length) == 0);
        require(first_length <= size);
        require(proto_decode(first, first_length, &message) == 0);
        require(proto_encode(&message, second, sizeof(second), &second_length) == 0);
        require(first_length == second_length && memcmp(first, second, first_length) == 0);
        return 0;
}
