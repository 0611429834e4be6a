/* SPDX-License-Identifier: MIT */
/*
 * A unit that exists on paper: one program with live bytes, free ones that a trim can get (soft) and cannot (hard), and
 * memory that is no heap; sampled, decided on and trimmed by the real policy in simulated time. For tests alone.
 */
#pragma once

#include <string.h>

#include "check.h"
#include "core/policy.h"
#include "core/round.h"

#define MIB(n)  ((uint64_t) (n) *MG_MIB)
#define SEC(n)  ((uint64_t) (n) *MG_USEC_PER_SEC)
#define MIN(n)  ((uint64_t) (n) *MG_USEC_PER_MIN)
#define HOUR(n) ((uint64_t) (n) *MG_USEC_PER_HOUR)

#define SIM_TRIMS_MAX 256

struct sim_trim {
        uint64_t at_usec;
        enum mg_reason reason;
        uint64_t gain_bytes;
        uint64_t expected_bytes;
};

struct sim_unit {
        struct mg_unit_config config;
        struct mg_policy_state state;
        struct mg_process_sample process;
        struct mg_process_sample pair[2]; /* the same and another one, see sim_add_sibling() */
        struct mg_unit_sample sample;
        struct mg_decision decision;
        uint64_t now_usec;
        uint64_t interval_usec;
        uint64_t stats_interval_usec; /* 0: at each tick */

        /* The program. */
        uint64_t live, soft, hard, other;
        uint64_t pause_usec; /* what a trim really costs */
        bool mute;           /* its agent answers nothing */

        struct sim_trim trims[SIM_TRIMS_MAX];
        size_t n_trims;
        unsigned verdict_changes;
};

static inline void sim_init(struct sim_unit *u) {
        memset(u, 0, sizeof(*u));
        unit_config_defaults(&u->config);
        u->config.mode = MG_MODE_TRIM;
        policy_init(&u->state);
        memset(&u->sample.memory, 0xff, sizeof(u->sample.memory));
        u->sample.watchdog_usec = u->sample.checkpoint_at_usec = MG_UNKNOWN;
        u->sample.cpu_usage_usec = MG_UNKNOWN;
        u->sample.processes = &u->process;
        u->sample.n_processes = 1;
        u->process = (struct mg_process_sample){
                .pid = 100,
                .start_time = 1,
                .system_bytes = MG_UNKNOWN,
                .estimate_bytes = MG_UNKNOWN,
                .free_chunks = 8,
                .arenas = 8,
                .stats_at_usec = MG_UNKNOWN,
                .live_bytes = MG_UNKNOWN,
                .has_agent = true,
                .can_trim = true,
        };
        u->now_usec = HOUR(1);
        u->interval_usec = SEC(5);
        u->pause_usec = 2000;
        u->live = MIB(20);
}

/* The sample as of now; statistics are as old as the program's interval for them allows. */
static inline void sim_measure(struct sim_unit *u) {
        struct mg_process_sample *p = &u->process;

        p->rss_anon_bytes = u->live + u->soft + u->hard + u->other;
        p->base_bytes = u->other;
        u->sample.memory.anon_bytes = p->rss_anon_bytes + u->pair[1].rss_anon_bytes;
        if (p->stats_at_usec != MG_UNKNOWN &&
            u->now_usec < p->stats_at_usec + u->stats_interval_usec)
                return;
        p->live_bytes = u->live;
        p->stats_rss_bytes = p->rss_anon_bytes;
        p->stats_at_usec = u->now_usec;
}

/* Another process, which stays as it is. */
static inline struct mg_process_sample *sim_add_sibling(
                struct sim_unit *u,
                uint64_t live,
                uint64_t retained) {
        struct mg_process_sample *sibling = &u->pair[1];

        *sibling = u->process;
        sibling->pid = 200;
        sibling->rss_anon_bytes = sibling->stats_rss_bytes = live + retained;
        sibling->live_bytes = live;
        sibling->stats_at_usec = u->now_usec;
        u->sample.processes = u->pair;
        u->sample.n_processes = 2;
        return sibling;
}

static inline void sim_round(struct sim_unit *u) {
        struct mg_outcome outcome = {
                .started_usec = u->now_usec,
                .ended_usec = u->now_usec,
                .expected_bytes = u->decision.expected_bytes,
                .pause_usec = u->pause_usec,
                .predicted_pause_usec = u->decision.predicted_pause_usec,
                .reason = u->decision.reason,
                .by_hand = u->decision.reason == MG_REASON_BY_HAND,
        };
        struct mg_round_step steps[4];
        size_t skipped;

        outcome.n_asked = (uint32_t) round_plan(
                        &u->state, &u->config, &u->sample, steps, 4, &skipped);
        for (uint32_t i = 0; i < outcome.n_asked; i++)
                outcome.asked_bytes += steps[i].retained_bytes;
        outcome.before_bytes = account_footprint(&u->sample.memory);
        outcome.anon_thp_before_bytes = u->sample.memory.anon_thp_bytes;
        if (!u->mute) {
                if (u->sample.memory.anon_thp_bytes != MG_UNKNOWN)
                        u->sample.memory.anon_thp_bytes =
                                        mg_sub_floor(u->sample.memory.anon_thp_bytes, u->soft);
                outcome.n_answered = outcome.n_asked;
                u->soft = 0;
        }
        u->sample.memory.anon_bytes =
                        u->live + u->soft + u->hard + u->other + u->pair[1].rss_anon_bytes;
        outcome.anon_thp_after_bytes = u->sample.memory.anon_thp_bytes;
        outcome.after_bytes = account_footprint(&u->sample.memory);
        policy_learn(&u->state, &u->config, &outcome, u->now_usec);
        if (u->n_trims < SIM_TRIMS_MAX)
                u->trims[u->n_trims++] = (struct sim_trim){
                        .at_usec = u->now_usec,
                        .reason = outcome.reason,
                        .gain_bytes = outcome_gain(&outcome),
                        .expected_bytes = outcome.expected_bytes,
                };
}

/* One interval of the daemon. Returns true when it trimmed. */
static inline bool sim_tick(struct sim_unit *u) {
        u->now_usec += u->interval_usec;
        sim_measure(u);
        u->pair[0] = u->process;
        u->verdict_changes +=
                        policy_step(&u->state, &u->config, &u->sample, u->now_usec, &u->decision);
        if (u->decision.action != MG_ACTION_TRIM)
                return false;
        sim_round(u);
        return true;
}

static inline void sim_run(struct sim_unit *u, uint64_t usec) {
        uint64_t end = u->now_usec + usec;

        while (u->now_usec < end)
                sim_tick(u);
}
