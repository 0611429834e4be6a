/* SPDX-License-Identifier: MIT */
/*
 * The tick; see tick.h. Layer: daemon.
 *
 * Three passes: measure and decide each unit by itself; start those due trims that the scheduler picks; let the agents be
 * asked what is due. A unit that cannot be measured ends, or keeps its last numbers, alone.
 */
#include "daemon/tick.h"

#include <errno.h>

#include "base/hash.h"
#include "base/macros.h"
#include "core/policy.h"
#include "core/schedule.h"
#include "daemon/bus.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/notify.h"
#include "daemon/peer.h"
#include "daemon/pressure.h"
#include "daemon/process.h"
#include "daemon/provider.h"
#include "daemon/self.h"
#include "daemon/store.h"
#include "daemon/summary.h"
#include "daemon/trim.h"
#include "daemon/unit.h"
#include "host/clock.h"

#define SLOW_INTERVAL_USEC MG_USEC_PER_MIN

/*
 * A memory.stat that takes longer has thousands of dying cgroups below it, if the host is not thrashing: reading it is then kept
 * under 1 % of the time, as far as a look each minute allows.
 */
#define SLOW_READ_USEC (20 * MG_USEC_PER_MSEC)
#define SLOW_READ_REST 100
#define REST_MAX_USEC  MG_USEC_PER_MIN

/* A unit that restarts without end is worth four lines a minute at most. */
#define TELL_AGENTS_USEC (15 * MG_USEC_PER_SEC)

/* A tick comes up to a tenth of IntervalSec= late. */
#define SCATTER_DIVISOR 10

/* Long enough for an agent to come back to a daemon, or from a fork. */
#define ORPHANED_STATS_USEC (2 * MG_USEC_PER_MIN)

/* Wishes of several units are one pass; more than ten passes a second would be a load. */
#define EXTRA_TICK_USEC (100 * MG_USEC_PER_MSEC)

static bool sums_from_proc(const struct unit *unit) {
        return unit->source == MG_SOURCE_PROC;
}

static void read_swap(struct process *process) {
        struct mg_proc_status status;

        if (proc_status("/proc", process->proc.pid, &status) >= 0)
                process->sample.swap_bytes = status.swap_bytes;
}

/* Without a resident page it has been swapped out whole, or has no memory any more: it is ending, or a zombie. */
static bool has_no_memory(const struct process *process) {
        struct mg_proc_status status;

        return proc_status("/proc", process->proc.pid, &status) < 0 ||
               status.swap_bytes == MG_UNKNOWN;
}

/* An agent that went for good, by its process's wish or for a filter, said nothing of what came later. */
static void forget_orphaned_stats(struct process *process, uint64_t now_usec) {
        struct mg_process_sample *sample = &process->sample;

        if (process->had_agent && !process->peer &&
            mg_sub_floor(now_usec, sample->stats_at_usec) >= ORPHANED_STATS_USEC)
                sample->live_bytes = MG_UNKNOWN;
}

/*
 * Reads the processes' statm. Those that have ended are marked and leave later (reap()): a round may be walking the same list
 * further up the stack.
 */
static void measure_processes(struct unit *unit, bool with_swap) {
        for (struct process *p = process_first(unit); p; p = process_next(p)) {
                int r = proc_rss_anon(&p->proc, &p->sample.rss_anon_bytes);

                forget_orphaned_stats(p, manager_now(unit->manager));
                p->gone |= r == -ESRCH ||
                           (r >= 0 && p->sample.rss_anon_bytes == 0 && has_no_memory(p));
                if (r < 0)
                        p->sample.rss_anon_bytes = MG_UNKNOWN;
                else if (with_swap)
                        read_swap(p);
        }
}

static struct process *find_gone(const struct unit *unit) {
        for (struct process *p = process_first(unit); p; p = process_next(p))
                if (p->gone)
                        return p;
        return NULL;
}

/* Freeing one may end a round, which may do anything to the list: hence from the start each time. */
static void reap(struct unit *unit) {
        for (struct process *p = find_gone(unit); p; p = find_gone(unit))
                process_free(p);
}

static void sum_processes(struct unit *unit) {
        uint64_t anon = 0;
        uint64_t swap = 0;
        bool known = false;

        for (struct process *p = process_first(unit); p; p = process_next(p)) {
                if (p->sample.rss_anon_bytes == MG_UNKNOWN)
                        continue;
                known = true;
                anon = mg_add_cap(anon, p->sample.rss_anon_bytes);
                if (p->sample.swap_bytes != MG_UNKNOWN)
                        swap = mg_add_cap(swap, p->sample.swap_bytes);
        }
        unit->memory.anon_bytes = known ? anon : MG_UNKNOWN;
        unit->memory.swap_bytes = known ? swap : MG_UNKNOWN;
}

/* Nobody else's reads are put off for it. */
static void rest_if_slow(struct unit *unit, uint64_t began_usec, uint64_t now_usec) {
        uint64_t took_usec = now_usec - began_usec;

        if (took_usec > SLOW_READ_USEC)
                unit->rest_until_usec =
                                now_usec + MG_MIN(took_usec * SLOW_READ_REST, REST_MAX_USEC);
}

int tick_measure(struct unit *unit, bool with_swap) {
        measure_processes(unit, with_swap && sums_from_proc(unit));
        if (sums_from_proc(unit)) {
                sum_processes(unit);
                unit->sampled = true;
                return 0;
        }
        uint64_t began_usec = clock_now_usec();
        if (cgroup_sample(&unit->cgroup, &unit->memory) < 0)
                return -ENODEV;
        rest_if_slow(unit, began_usec, clock_now_usec());
        unit->sampled = true;
        return 0;
}

/* The same path may be a new cgroup by now: a restart. A path that is gone, or a pseudo-unit without processes, has ended. */
static bool has_ended(struct unit *unit) {
        if (!unit->path || (sums_from_proc(unit) && !unit->manager->use_cgroups))
                return unit->n_processes == 0;
        if (sums_from_proc(unit))
                return false; /* its cgroup is found, or missed, by discovery */
        return true;
}

bool tick_refresh(struct unit *unit, bool with_swap) {
        int r = tick_measure(unit, with_swap);

        reap(unit);
        if (r >= 0)
                return !sums_from_proc(unit) || !has_ended(unit);
        if (unit_open_cgroup(unit) < 0)
                return false;
        unit_start_afresh(unit);
        return tick_measure(unit, with_swap) >= 0;
}

static void read_cpu(struct unit *unit) {
        uint64_t sum = 0;
        uint64_t usec;

        if (!sums_from_proc(unit)) {
                if (cgroup_cpu_usage(&unit->cgroup, &unit->cpu_usage_usec) < 0)
                        unit->cpu_usage_usec = MG_UNKNOWN;
                return;
        }
        for (struct process *p = process_first(unit); p; p = process_next(p))
                if (proc_cpu_usage("/proc", p->proc.pid, &usec) >= 0)
                        sum = mg_add_cap(sum, usec);
        unit->cpu_usage_usec = sum;
}

/* Once a minute, each unit at its own moment, so that no tick has to read all of them. */
static void measure_slowly(struct unit *unit, uint64_t now_usec) {
        int n;

        if (!sums_from_proc(unit))
                (void) cgroup_limits(&unit->cgroup, &unit->memory);
        n = unit_pids(unit, NULL, 0);
        unit->n_pids = n >= 0 ? (uint32_t) n : unit->n_processes;
        summary_tick(unit, now_usec);
        store_save_old(unit, now_usec);
        unit->slow_due_usec = now_usec + SLOW_INTERVAL_USEC -
                              (unit->slow_due_usec == unit->created_usec
                                               ? (uintptr_t) unit / 64 % 60 * MG_USEC_PER_SEC
                                               : 0);
}

void tick_fill_sample(struct unit *unit, struct mg_unit_sample *ret_sample) {
        struct manager *manager = unit->manager;
        size_t n = 0;

        for (struct process *p = process_first(unit); p; p = process_next(p)) {
                struct mg_process_sample *sample;

                if (p->gone)
                        continue;
                sample = &manager->samples[n++];
                *sample = p->sample;
                if (!p->peer)
                        continue;
                /* A busy process holds up its unit: a trim does; statistics are over in no time, and a hung agent is none. */
                sample->busy = p->peer->request.verb == MG_VERB_TRIM;
                sample->has_agent = !p->peer->unresponsive;
        }
        *ret_sample = (struct mg_unit_sample){
                .source = unit->source,
                .activity = unit->activity,
                .memory = unit->memory,
                .processes = manager->samples,
                .n_processes = n,
                .cpu_usage_usec = unit->cpu_usage_usec,
                .watchdog_usec = unit->watchdog_usec,
                .checkpoint_at_usec = unit->checkpoint_at_usec,
                .under_pressure = pressure_is_on(unit, manager_now(manager)),
                .paused = manager->paused || unit->paused,
        };
}

static void tell_verdict(const struct unit *unit, enum mg_verdict before) {
        const struct mg_verdict_state *verdict = &unit->policy.verdict;

        if (before == verdict->verdict ||
            (verdict_says_nothing(before) && verdict_says_nothing(verdict->verdict)))
                return;
        journal_verdict(&(struct mg_journal_verdict){
                        .unit = unit_for_journal(unit),
                        .before = before,
                        .after = verdict->verdict,
                        .account = &unit->decision.account,
                        .slope = verdict->slope_known ? &verdict->slope : NULL,
        });
}

static void tell_hold(const struct unit *unit, enum mg_reason before, uint64_t now_usec) {
        if (unit->decision.action != MG_ACTION_HOLD || unit->decision.reason == before)
                return;
        journal_hold(&(struct mg_journal_hold){
                        .unit = unit_for_journal(unit),
                        .decision = &unit->decision,
                        .now_usec = now_usec,
        });
}

/* Before an agent has reported, the parts of anon are no numbers. */
static uint64_t if_known(const struct mg_account *account, uint64_t bytes) {
        return account->known ? bytes : MG_UNKNOWN;
}

static void remember(struct unit *unit, uint64_t now_usec) {
        const struct mg_account *account = &unit->decision.account;
        struct mg_history_sample sample = {
                .anon_bytes = account->anon_bytes,
                .live_bytes = if_known(account, account->live_bytes),
                .retained_bytes = if_known(account, account->retained_bytes),
                .trim_above_bytes = if_known(account, unit->decision.trim_above_bytes),
        };

        if (account->anon_known)
                history_add(&unit->history, &sample, now_usec);
}

static void decide(struct unit *unit, uint64_t now_usec) {
        enum mg_verdict verdict_before = unit->policy.verdict.verdict;
        enum mg_reason reason_before = unit->decided ? unit->decision.reason : _MG_REASON_MAX;
        struct mg_unit_sample sample;

        tick_fill_sample(unit, &sample);
        if (policy_step(&unit->policy, &unit->config, &sample, now_usec, &unit->decision))
                tell_verdict(unit, verdict_before);
        tell_hold(unit, reason_before, now_usec);
        tally_decision(&unit->tally, &unit->decision, now_usec);
        unit->decided = true;
        remember(unit, now_usec);
}

/* Returns false when the unit has ended. */
static bool tick_unit(struct unit *unit, uint64_t now_usec) {
        bool is_slow = now_usec >= unit->slow_due_usec;

        if (!tick_refresh(unit, is_slow))
                return false;
        if (policy_wants_cpu(&unit->policy, &unit->config))
                read_cpu(unit);
        if (is_slow)
                measure_slowly(unit, now_usec);
        pressure_look(unit, now_usec);
        decide(unit, now_usec);
        pressure_tell(unit, now_usec);
        return true;
}

static bool is_candidate(struct unit *unit, uint64_t now_usec) {
        if (unit->decision.action != MG_ACTION_TRIM || unit->round) {
                unit->due_since_usec = MG_UNKNOWN;
                return false;
        }
        if (unit->due_since_usec == MG_UNKNOWN)
                unit->due_since_usec = now_usec;
        return true;
}

static void start_trims(struct manager *manager, size_t n_candidates, uint64_t now_usec) {
        size_t n =
                        schedule_pick(manager->candidates, n_candidates, trim_running(manager),
                                      manager->settings.max_concurrent_trims, now_usec);

        for (size_t i = 0; i < n_candidates; i++) {
                struct unit *unit = manager->candidates[i].unit;

                if (i < n) {
                        (void) trim_start(unit, &unit->decision);
                        continue;
                }
                unit->decision.reason = MG_REASON_CONCURRENCY;
                unit->tick_wished = manager->candidates[i].urgent; /* see tick_trim_ended() */
        }
}

void tick_trim_ended(struct manager *manager) {
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                if (u->tick_wished) {
                        tick_between(manager, EXTRA_TICK_USEC);
                        return;
                }
}

/* A unit that is ticked needs no tick of its own any more. */
static bool take_wish(struct unit *unit) {
        bool wished = unit->tick_wished;

        unit->tick_wished = false;
        return wished;
}

static bool is_turn(struct unit *unit, bool all, uint64_t now_usec) {
        return take_wish(unit) || (all && now_usec >= unit->rest_until_usec) ||
               pressure_is_on(unit, now_usec);
}

/* One pass over all units, or those under pressure or with a wish for it. Returns how many trims are due. */
static size_t tick_units(struct manager *manager, bool all, uint64_t now_usec) {
        size_t n = 0;

        MG_LIST_FOREACH_SAFE(entry, &manager->units) {
                struct unit *unit = unit_of(entry);

                if (!is_turn(unit, all, now_usec))
                        continue;
                if (!tick_unit(unit, now_usec)) {
                        unit_end(unit);
                        continue;
                }
                if (is_candidate(unit, now_usec))
                        manager->candidates[n++] = (struct mg_candidate){
                                .unit = unit,
                                .expected_bytes = unit->decision.expected_bytes,
                                .predicted_pause_usec = unit->decision.predicted_pause_usec,
                                .due_since_usec = unit->due_since_usec,
                                .urgent = unit->decision.reason == MG_REASON_PRESSURE,
                        };
        }
        return n;
}

static void work_peers(struct manager *manager, uint64_t now_usec) {
        MG_LIST_FOREACH_SAFE(entry, &manager->peers) {
                struct peer *peer = MG_CONTAINER_OF(entry, struct peer, all);

                if (peer->process && !peer->process->unit->round)
                        peer_work(peer, now_usec);
        }
}

static void tell_agents(struct manager *manager, uint64_t now_usec) {
        struct manager_counts counts;

        manager_count(manager, &counts);
        notify_status(&(struct notify_status){
                        .units = counts.units,
                        .trimming = counts.trimming,
                        .observing = counts.observing,
                        .no_agent = counts.no_agent,
                        .trimmed_bytes = manager->trimmed_bytes,
                        .paused = manager->paused,
        });
        if (manager->agents_connected == 0 && manager->agents_lost == 0)
                return;
        if (manager->agents_told_usec > 0 &&
            now_usec - manager->agents_told_usec < TELL_AGENTS_USEC)
                return;
        manager->agents_told_usec = now_usec;
        journal_agents(&(struct mg_journal_agents){
                        .connected = manager->agents_connected,
                        .lost = manager->agents_lost,
                        .agents = counts.agents,
                        .units = counts.units - counts.no_agent,
        });
        manager->agents_connected = 0;
        manager->agents_lost = 0;
}

/* A program that works at round intervals would be met in the same state each time: trimmed just before it needs all again. */
static uint64_t scatter(const struct manager *manager) {
        uint64_t hash = hash_add(
                        MG_HASH_INIT, (const char *) &manager->ticks, sizeof(manager->ticks));

        return hash % (manager->settings.interval_usec / SCATTER_DIVISOR + 1);
}

void tick_rearm(struct manager *manager) {
        manager->tick_due_usec = mg_add_cap(
                        manager_now(manager), manager->settings.interval_usec + scatter(manager));
}

static void look_after_self(struct manager *manager, uint64_t now_usec) {
        self_tick(manager->self, now_usec);
        if (now_usec - manager->released_usec < SLOW_INTERVAL_USEC)
                return;
        manager->released_usec = now_usec;
        self_release();
}

static void tick(struct manager *manager) {
        uint64_t now_usec = manager_now(manager);
        size_t n_due;

        manager->ticks++;
        pressure_follow(manager->pressure, now_usec);
        n_due = tick_units(manager, true, now_usec);
        start_trims(manager, n_due, now_usec);
        work_peers(manager, now_usec);
        provider_tick(manager->provider, now_usec);
        look_after_self(manager, now_usec);
        store_tick(manager, now_usec);
        bus_tick(manager->bus);
        tell_agents(manager, now_usec);
        tick_rearm(manager);
}

int tick_run(struct manager *manager, uint64_t wait_usec) {
        uint64_t left_usec = mg_sub_floor(manager->tick_due_usec, clock_now_usec());
        int r = sd_event_run(manager->event, MG_MIN(left_usec, wait_usec));

        if (r >= 0 && sd_event_get_state(manager->event) != SD_EVENT_FINISHED &&
            manager_now(manager) >= manager->tick_due_usec)
                tick(manager);
        return r;
}

static int on_extra_tick(sd_event_source *source, uint64_t usec, void *userdata) {
        struct manager *manager = userdata;
        uint64_t now_usec = manager_now(manager);

        manager->extra_tick_usec = now_usec;
        start_trims(manager, tick_units(manager, false, now_usec), now_usec);
        return 0;
}

void tick_between(struct manager *manager, uint64_t gap_usec) {
        uint64_t at_usec = MG_MAX(
                        manager_now(manager), mg_add_cap(manager->extra_tick_usec, gap_usec));
        uint64_t armed_usec;
        int enabled;

        if (sd_event_source_get_enabled(manager->extra_source, &enabled) > 0 &&
            sd_event_source_get_time(manager->extra_source, &armed_usec) >= 0)
                at_usec = MG_MIN(at_usec, armed_usec);
        (void) sd_event_source_set_time(manager->extra_source, at_usec);
        (void) sd_event_source_set_enabled(manager->extra_source, SD_EVENT_ONESHOT);
}

void tick_soon(struct unit *unit) {
        unit->tick_wished = true;
        tick_between(unit->manager, EXTRA_TICK_USEC);
}

int tick_start(struct manager *manager) {
        int r = sd_event_add_time(
                        manager->event, &manager->extra_source, CLOCK_MONOTONIC, 0, 1,
                        on_extra_tick, manager);

        if (r < 0)
                return r;
        tick_rearm(manager);
        return sd_event_source_set_enabled(manager->extra_source, SD_EVENT_OFF);
}
