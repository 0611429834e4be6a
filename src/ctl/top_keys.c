/* SPDX-License-Identifier: MIT */
/* Escape sequences of ECMA-48 terminals, as far as top has a use for them. Layer: ctl. */
#include "ctl/top_keys.h"

#define ESCAPE 0x1b

static int begin(struct key_reader *reader, unsigned char byte) {
        if (byte != ESCAPE)
                return byte ? byte : KEY_OTHER;
        *reader = (struct key_reader){ .state = KEYS_ESCAPE };
        return 0;
}

static int after_escape(struct key_reader *reader, unsigned char byte) {
        if (byte == ESCAPE)
                return KEY_ESCAPE; /* and the second one is waited on */
        reader->state = byte == '[' || byte == 'O' ? KEYS_SEQUENCE : KEYS_PLAIN;
        return reader->state == KEYS_PLAIN ? KEY_OTHER : 0; /* with Alt */
}

static int numbered(unsigned number) {
        switch (number) {
        case 1:
        case 7:
                return KEY_HOME;
        case 4:
        case 8:
                return KEY_END;
        case 5:
                return KEY_PAGE_UP;
        case 6:
                return KEY_PAGE_DOWN;
        default:
                return KEY_OTHER;
        }
}

static int final_byte(unsigned char byte, unsigned number) {
        switch (byte) {
        case 'A':
                return KEY_UP;
        case 'B':
                return KEY_DOWN;
        case 'D':
                return KEY_LEFT;
        case 'H':
                return KEY_HOME;
        case 'F':
                return KEY_END;
        case '~':
                return numbered(number);
        default:
                return KEY_OTHER;
        }
}

static void take_parameter(struct key_reader *reader, unsigned char byte) {
        reader->number_done |= byte < '0' || byte > '9';
        if (!reader->number_done && reader->number < 1000)
                reader->number = reader->number * 10 + (byte - '0');
}

static int in_sequence(struct key_reader *reader, unsigned char byte) {
        if (byte == ESCAPE) {
                *reader = (struct key_reader){ .state = KEYS_ESCAPE };
                return KEY_OTHER;
        }
        if (byte >= 0x20 && byte < 0x40) {
                take_parameter(reader, byte);
                return 0;
        }
        if (byte == '[') {
                reader->state = KEYS_CONSOLE;
                return 0;
        }
        reader->state = KEYS_PLAIN;
        return final_byte(byte, reader->number);
}

int keys_feed(struct key_reader *reader, unsigned char byte) {
        switch (reader->state) {
        case KEYS_PLAIN:
                return begin(reader, byte);
        case KEYS_ESCAPE:
                return after_escape(reader, byte);
        case KEYS_SEQUENCE:
                return in_sequence(reader, byte);
        case KEYS_CONSOLE:
                break;
        }
        reader->state = KEYS_PLAIN;
        return KEY_OTHER;
}

bool keys_pending(const struct key_reader *reader) {
        return reader->state != KEYS_PLAIN;
}

int keys_flush(struct key_reader *reader) {
        int key = reader->state == KEYS_PLAIN    ? 0
                  : reader->state == KEYS_ESCAPE ? KEY_ESCAPE
                                                 : KEY_OTHER;

        reader->state = KEYS_PLAIN;
        return key;
}
