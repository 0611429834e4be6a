/* SPDX-License-Identifier: MIT */
/* What a terminal sends, as keys. Layer: ctl; pure. */
#pragma once

#include <stdbool.h>

/* Below these a key is the byte that was sent. */
enum {
        KEY_UP = 256,
        KEY_DOWN,
        KEY_LEFT,
        KEY_PAGE_UP,
        KEY_PAGE_DOWN,
        KEY_HOME,
        KEY_END,
        KEY_ESCAPE,
        KEY_OTHER, /* one that has no meaning here */
};

/* Zeroed to begin with. */
struct key_reader {
        enum {
                KEYS_PLAIN,
                KEYS_ESCAPE,   /* the key, or the begin of a sequence */
                KEYS_SEQUENCE, /* ESC [ or ESC O was seen */
                KEYS_CONSOLE,  /* ESC [ [: the Linux console's function keys have one more byte */
        } state;
        unsigned number; /* the sequence's first parameter */
        bool number_done;
};

/* Returns the key that BYTE completes, or 0 while there is more to come. */
int keys_feed(struct key_reader *reader, unsigned char byte);

/* Whether a lone escape key would still be waited on. */
bool keys_pending(const struct key_reader *reader);

/* Nothing more came for a while: KEY_ESCAPE for the key itself, KEY_OTHER for a torso, or 0. */
int keys_flush(struct key_reader *reader);
