/* SPDX-License-Identifier: MIT */
/* Names of phases and ends. Layer: replay; pure. */
#include "replay/sample.h"

#include <errno.h>

#include "base/macros.h"

static const char *const phase_names[] = {
        [PHASE_START] = "start",
        [PHASE_WARMUP] = "warmup",
        [PHASE_LOAD] = "load",
        [PHASE_IDLE] = "idle",
};
_Static_assert(MG_ELEMENTS(phase_names) == _PHASE_MAX, "a phase has no name");

static const char *const end_names[] = {
        [END_CUT] = "cut",
        [END_FINISHED] = "finished",
        [END_PROGRAM_ENDED] = "program-ended",
        [END_PROGRAM_FAILED] = "program-failed",
        [END_LOAD_FAILED] = "load-failed",
        [END_OOM] = "oom",
        [END_INTERRUPTED] = "interrupted",
        [END_NOT_IN_EFFECT] = "not-in-effect",
        [END_NOT_STARTED] = "not-started",
        [END_NOT_WRITTEN] = "not-written",
};
_Static_assert(MG_ELEMENTS(end_names) == _END_MAX, "an end has no name");

static int find_name(const char *const *names, int n, const char *name) {
        for (int i = 0; i < n; i++)
                if (mg_streq(names[i], name))
                        return i;
        return -EINVAL;
}

const char *phase_to_string(enum replay_phase phase) {
        return phase_names[phase];
}

int phase_from_string(const char *name) {
        return find_name(phase_names, _PHASE_MAX, name);
}

const char *end_to_string(enum replay_end end) {
        return end_names[end];
}

int end_from_string(const char *name) {
        return find_name(end_names, _END_MAX, name);
}

uint64_t sample_footprint(const struct replay_sample *sample) {
        if (sample->anon_bytes == MG_UNKNOWN)
                return sample->rss_bytes;
        return sample->swap_bytes == MG_UNKNOWN
                               ? sample->anon_bytes
                               : mg_add_cap(sample->anon_bytes, sample->swap_bytes);
}
