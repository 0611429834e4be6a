/* SPDX-License-Identifier: MIT */
/* See core/history_image.h. */
#include "core/history_image.h"

#include <errno.h>

#include "base/hash.h"
#include "base/macros.h"

/* Another one as soon as a byte of struct mg_history means something else. */
#define VERSION 1

static uint64_t checksum_of(const struct mg_history_image *image) {
        return hash_add(MG_HASH_INIT, (const char *) image,
                        offsetof(struct mg_history_image, checksum));
}

void history_image_make(const struct mg_history *history, struct mg_history_image *ret_image) {
        memset(ret_image, 0, sizeof(*ret_image));
        ret_image->version = VERSION;
        ret_image->history = *history;
        ret_image->checksum = checksum_of(ret_image);
}

static bool is_of_the_past(const struct mg_history *history, uint64_t now_usec) {
        for (int span = 0; span < _MG_HISTORY_SPAN_MAX; span++)
                if (history->latest[span] > now_usec / history_step_usec(span))
                        return false;
        return true;
}

/* The words for these are looked up in tables. */
static bool has_known_rounds(const struct mg_history *history) {
        for (size_t i = 0; i < MG_HISTORY_TRIMS && i < history->n_rounds; i++)
                if (history->rounds[i].result >= _MG_OUTCOME_MAX ||
                    history->rounds[i].reason >= _MG_REASON_MAX)
                        return false;
        return true;
}

/* The new daemon is young: its finest steps hold all that it has seen. */
static void add_samples(struct mg_history *history, const struct mg_history *newer) {
        struct mg_history_sample sample;
        uint64_t start_usec;

        for (size_t age = history_slots(MG_HISTORY_RAW); age > 0; age--)
                if (history_get(newer, MG_HISTORY_RAW, age - 1, &sample, &start_usec))
                        history_add(history, &sample, start_usec);
}

static void add_rounds(struct mg_history *history, const struct mg_history *newer) {
        uint64_t n = MG_MIN(newer->n_rounds, (uint64_t) MG_HISTORY_TRIMS);

        for (uint64_t i = newer->n_rounds - n; i < newer->n_rounds; i++)
                history->rounds[history->n_rounds++ % MG_HISTORY_TRIMS] =
                                newer->rounds[i % MG_HISTORY_TRIMS];
}

int history_image_restore(
                const void *bytes,
                size_t length,
                uint64_t now_usec,
                struct mg_history *history) {
        struct mg_history_image image;

        if (length < sizeof(image.version))
                return -EBADMSG;
        memcpy(&image.version, bytes, sizeof(image.version));
        if (image.version != VERSION)
                return -EPROTONOSUPPORT;
        if (length != sizeof(image))
                return -EBADMSG;
        memcpy(&image, bytes, sizeof(image));
        if (image.checksum != checksum_of(&image) || !has_known_rounds(&image.history))
                return -EBADMSG;
        if (!is_of_the_past(&image.history, now_usec))
                return -ESTALE;
        add_samples(&image.history, history);
        add_rounds(&image.history, history);
        *history = image.history;
        return 0;
}
