/* SPDX-License-Identifier: MIT */
/*
 * From a scrape to its answer: the daemon is asked at most once a second, however many scrape, and never longer than the time limit.
 * In that time, and while it waits, all clients wait. Layer: exporter.
 */
#pragma once

#include "exporter/http.h"
#include "exporter/options.h"

struct scrape {
        const struct options *options;
        struct MHD_Response *responses
                        [_EXPOSITION_FORMAT_MAX]; /* as of made_usec; NULL: out of memory */
        uint64_t made_usec;                       /* 0: never */
        int error;                                /* of the last read: a change is worth a line */
};

void scrape_init(struct scrape *scrape, const struct options *options);
void scrape_done(struct scrape *scrape);

/* USERDATA is the struct scrape. */
struct MHD_Response *scrape_answer(enum exposition_format format, void *userdata);
