/* SPDX-License-Identifier: MIT */
/*
 * The policy's own half that changes its state: what each sample teaches between two rounds. policy.c decides
 * and never writes; learn.c and predict.c write and never decide. Private to the core. Layer: core; pure.
 */
#pragma once

#include "core/policy.h"

/* A checkpoint makes trims cheap for about so long: after that the program works again. */
#define MG_CHECKPOINT_FRESH_USEC MG_USEC_PER_MIN

/* Idle: under 5 % of one CPU for 30 s at least. */
#define MG_IDLE_PERMYRIAD 500
#define MG_IDLE_USEC      (30 * MG_USEC_PER_SEC)

/*
 * Takes in one sample: what the last round left, regrowth, refilled huge pages, mass frees, idleness. ACCOUNT is of
 * the sample; its stuck share is set anew. A step back of the clock is survived.
 */
void learn_sample(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_unit_sample *sample,
                struct mg_account *account,
                uint64_t now_usec);

/* The learned rates after a round; needs outcome->predicted_pause_usec. */
void learn_rates(struct mg_policy_state *state, const struct mg_outcome *outcome);

/* Each CooldownMaxSec= without a round, half of what the learned rates have above the generic ones is forgotten. */
void learn_relax_rates(
                struct mg_policy_state *state,
                const struct mg_unit_config *config,
                uint64_t now_usec);

/* For FOR_USEC, and never less than it takes to be idle. */
bool learn_is_idle(const struct mg_policy_state *state, uint64_t for_usec, uint64_t now_usec);

/* The unit's pinned memory is still there: more than half of what the last rounds left. */
bool learn_is_pinned(
                const struct mg_policy_state *state,
                const struct mg_unit_config *config,
                const struct mg_account *account);
