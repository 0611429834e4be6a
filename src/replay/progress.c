/* SPDX-License-Identifier: MIT */
/* One line on a terminal while a run goes on. Layer: replay. */
#include "replay/progress.h"

#include <stdio.h>
#include <time.h>

#include "base/macros.h"
#include "base/text.h"

#define CLEAR_LINE "\r\033[K"

static void note_floor(struct progress *progress, const struct replay_sample *sample) {
        uint64_t floor = sample->at_usec / progress->floor_usec;
        uint64_t bytes = sample_footprint(sample);

        if (floor != progress->floor)
                progress->floor_bytes = MG_UNKNOWN;
        progress->floor = floor;
        progress->floor_bytes = MG_MIN(progress->floor_bytes, bytes);
}

static uint64_t whole_seconds(uint64_t usec) {
        return usec / MG_USEC_PER_SEC * MG_USEC_PER_SEC;
}

void progress_show(
                struct progress *progress,
                const char *name,
                const struct replay_sample *sample) {
        char elapsed[MG_SHORT_TEXT_MAX];
        char whole[MG_SHORT_TEXT_MAX];
        char now[MG_SHORT_TEXT_MAX];
        char floor[MG_SHORT_TEXT_MAX];
        char end[16] = "";
        uint64_t left = mg_sub_floor(progress->run_usec, sample->at_usec) + progress->later_usec;
        time_t ends = time(NULL) + (time_t) (left / MG_USEC_PER_SEC);
        struct tm local;

        note_floor(progress, sample);
        if (!progress->shown)
                return;
        if (localtime_r(&ends, &local))
                strftime(end, sizeof(end), "%H:%M:%S", &local);
        fprintf(stderr, CLEAR_LINE "%s: %s, %s of %s, RSS %s, floor %s, all ends about %s", name,
                phase_to_string(sample->phase),
                format_duration(whole_seconds(sample->at_usec), elapsed),
                format_duration(whole_seconds(progress->run_usec), whole),
                format_size(sample->rss_bytes, now), format_size(progress->floor_bytes, floor),
                end);
}

void progress_clear(const struct progress *progress) {
        if (progress->shown)
                fputs(CLEAR_LINE, stderr);
}
