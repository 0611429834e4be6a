/* SPDX-License-Identifier: MIT */
/*
 * State files as a disk or a stranger may have left them. The checksum would keep a fuzzer out, so it is put right first; what is
 * then taken has to come back the same, and the policy has to live with it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/state.h"
#include "fuzz.h"

static size_t sign(char *text, size_t length) {
        uint64_t hash = UINT64_C(14695981039346656037);

        for (size_t i = 0; i < length; i++)
                hash = (hash ^ (unsigned char) text[i]) * UINT64_C(1099511628211);
        return length + (size_t) sprintf(text + length, "CHECKSUM=%ju\n", (uintmax_t) hash);
}

static void live_with(struct mg_policy_state *state) {
        struct mg_process_sample process = { .rss_anon_bytes = MG_GIB,
                                             .live_bytes = MG_MIB,
                                             .system_bytes = MG_GIB,
                                             .estimate_bytes = MG_GIB,
                                             .has_agent = true,
                                             .can_trim = true };
        struct mg_unit_sample sample = { .processes = &process, .n_processes = 1 };
        struct mg_outcome outcome = { .before_bytes = MG_GIB, .n_asked = 1, .n_answered = 1 };
        struct mg_unit_config config;
        struct mg_decision decision;

        unit_config_defaults(&config);
        sample.memory.anon_bytes = MG_GIB;
        for (uint64_t minute = 0; minute < 4; minute++) {
                policy_step(state, &config, &sample, minute * MG_USEC_PER_MIN, &decision);
                policy_learn(state, &config, &outcome, minute * MG_USEC_PER_MIN);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static char again[MG_STATE_TEXT_MAX];
        struct mg_policy_state state;
        struct mg_policy_state back;
        char *text = malloc(size + 64);
        size_t length;

        if (!text)
                abort();
        memcpy(text, data, size);
        (void) state_decode(text, size, UINT64_MAX, &state);
        if (state_decode(text, sign(text, size), UINT64_MAX, &state) == 0) {
                if (state_encode(&state, 1, again, sizeof(again), &length) < 0 ||
                    state_decode(again, length, 1, &back) < 0 || back.trims != state.trims ||
                    back.verdict.anon.count != state.verdict.anon.count)
                        abort();
                live_with(&state);
        }
        free(text);
        return 0;
}
