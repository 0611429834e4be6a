/* SPDX-License-Identifier: MIT */
/*
 * A history as bytes, for the next daemon of the same boot on the same machine. Layer: core; pure: the caller owns bytes and
 * files.
 */
#pragma once

#include "core/history.h"

struct mg_history_image {
        uint64_t version;
        struct mg_history history;
        uint64_t checksum; /* of all before it */
};

void history_image_make(const struct mg_history *history, struct mg_history_image *ret_image);

/*
 * Puts what HISTORY has seen meanwhile on top of the image, and the result into HISTORY. BYTES need no alignment. Returns 0;
 * -EPROTONOSUPPORT (another version's), -EBADMSG (damaged), or -ESTALE (written later than NOW, which is monotonic: before a reboot).
 * *HISTORY is touched on success alone.
 */
int history_image_restore(
                const void *bytes,
                size_t length,
                uint64_t now_usec,
                struct mg_history *history);
