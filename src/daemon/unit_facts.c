/* SPDX-License-Identifier: MIT */
/* A unit as clients see it; see unit_facts.h. Layer: daemon. */
#include "daemon/unit_facts.h"

#include "core/account.h"
#include "core/verdict.h"
#include "daemon/manager.h"
#include "daemon/tick.h"

/* Memory that is only known once an agent has reported stays unknown before. */
static void take_account(const struct mg_account *account, struct unit_facts *facts) {
        if (!account->known)
                return;
        facts->live_bytes = account->live_bytes;
        facts->retained_bytes = account->retained_bytes;
        facts->freeable_bytes = account->freeable_bytes;
        facts->pinned_bytes = account->pinned_bytes;
        facts->other_bytes = account->other_bytes;
}

/*
 * Made anew from the last readings, since a round measures the unit between two decisions. Anon and swap come from the same account
 * as what they are divided into, or the parts would not add up.
 */
static void take_memory(struct unit *unit, struct unit_facts *facts) {
        struct mg_unit_sample sample;
        struct mg_account account;

        tick_fill_sample(unit, &sample);
        account_unit(&sample,
                     policy_stuck(&unit->policy, &unit->config, manager_now(unit->manager)),
                     &account);
        if (account.anon_known)
                facts->anon_bytes = account.anon_bytes;
        facts->swap_bytes = unit->memory.swap_bytes;
        facts->shmem_bytes = unit->memory.shmem_bytes;
        facts->file_bytes = unit->memory.file_bytes;
        take_account(&account, facts);
}

static void take_decision(const struct unit *unit, struct unit_facts *facts) {
        const struct mg_decision *decision = &unit->decision;

        if (decision->account.known)
                facts->trim_above_bytes = decision->trim_above_bytes;
        facts->reason = reason_to_string(decision->reason);
}

void unit_facts_take(struct unit *unit, struct unit_facts *ret_facts) {
        const struct mg_policy_state *policy = &unit->policy;

        *ret_facts = (struct unit_facts){
                .unit = unit,
                .name = unit->name,
                .source = source_to_string(unit->source),
                .cgroup = unit->path,
                .mode = mode_to_string(unit->config.mode),
                .activity = activity_to_string(unit->activity),
                .verdict = verdict_to_string(policy->verdict.verdict),
                .paused = unit->paused || unit->manager->paused,
                .breaker = policy->breaker_open,
                .anon_bytes = MG_UNKNOWN,
                .swap_bytes = MG_UNKNOWN,
                .live_bytes = MG_UNKNOWN,
                .retained_bytes = MG_UNKNOWN,
                .freeable_bytes = MG_UNKNOWN,
                .pinned_bytes = MG_UNKNOWN,
                .other_bytes = MG_UNKNOWN,
                .shmem_bytes = MG_UNKNOWN,
                .file_bytes = MG_UNKNOWN,
                .trim_above_bytes = MG_UNKNOWN,
                .slope_bytes_per_hour = policy->verdict.slope_known
                                                        ? policy->verdict.slope.bytes_per_hour
                                                        : SLOPE_UNKNOWN,
                .processes = MG_MAX(unit->n_pids, unit->n_agents),
                .agents = unit->n_agents,
                .trims = policy->trims,
                .trimmed_bytes = policy->trimmed_bytes,
                .would_trim = policy->would_trim,
        };
        if (unit->sampled)
                take_memory(unit, ret_facts);
        if (unit->decided)
                take_decision(unit, ret_facts);
}
