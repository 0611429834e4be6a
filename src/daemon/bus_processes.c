/* SPDX-License-Identifier: MIT */
/* Processes and their allocators as dictionaries. Layer: daemon. */
#include <errno.h>
#include <stdlib.h>

#include "core/account.h"
#include "daemon/bus_heaps.h"
#include "daemon/bus_units.h"
#include "daemon/bus_why.h"
#include "daemon/peer.h"
#include "daemon/process.h"
#include "host/proc.h"

static void put_heap(
                struct dict *dict,
                const struct process *process,
                const struct peer_heap *heap) {
        uint64_t serves = heap->number[MG_HEAP_SERVES_MALLOC];

        dict_begin(dict);
        dict_string(dict, "name", heap->allocator);
        dict_string(dict, "version", heap->version);
        dict_string(dict, "prefix", heap->prefix);
        dict_u64(dict, "pid", (uint64_t) process->proc.pid);
        dict_u64(dict, "live_bytes", heap->number[MG_HEAP_LIVE_BYTES]);
        dict_u64(dict, "system_bytes", heap->number[MG_HEAP_SYSTEM_BYTES]);
        dict_u64(dict, "resident_bytes", heap->number[MG_HEAP_RESIDENT_BYTES]);
        dict_u64(dict, "freeable_bytes", heap->number[MG_HEAP_FREEABLE_BYTES]);
        dict_u64(dict, "metadata_bytes", heap->number[MG_HEAP_METADATA_BYTES]);
        dict_u64(dict, "active_bytes", heap->number[MG_HEAP_ACTIVE_BYTES]);
        dict_u64(dict, "address_space_bytes", heap->number[MG_HEAP_ADDRESS_SPACE_BYTES]);
        dict_u64(dict, "free_chunks", heap->number[MG_HEAP_FREE_CHUNKS]);
        dict_u64(dict, "arenas", heap->number[MG_HEAP_ARENAS]);
        dict_u64(dict, "arena_handles", heap->number[MG_HEAP_HANDLES]);
        if (serves != MG_UNKNOWN)
                dict_bool(dict, "serves_malloc", serves > 0);
        dict_bool(dict, "can_trim", heap->can_trim);
        dict_string(dict, "options", heap->options);
        dict_string(dict, "notice", heap->notice);
        dict_end(dict);
}

void bus_heaps(struct dict *dict, const struct process *process) {
        const struct peer *peer = process->peer;

        for (uint32_t i = 0; peer && i < peer->n_heaps; i++)
                put_heap(dict, process, &peer->heaps[i]);
}

static void put_peer(struct dict *dict, const struct peer *peer) {
        dict_string(dict, "agent_version", peer->version);
        dict_string(dict, "mode", peer->mode);
        dict_string(dict, "thread", peer->thread);
        dict_u64(dict, "stats_cost_usec", peer->stats_cost_usec);
        dict_bool(dict, "suspended", peer->suspended > 0);
        dict_string(dict, "suspend_reason", peer->suspended > 0 ? peer->suspend_reason : NULL);
        dict_u64(dict, "late_replies", peer->late_replies);
}

static void put_process(struct dict *dict, const struct process *process, uint64_t until_usec) {
        const struct mg_process_sample *sample = &process->sample;
        uint64_t now_usec = manager_now(process->unit->manager);

        dict_begin(dict);
        dict_string(dict, "unit", process->unit->name);
        dict_u64(dict, "pid", (uint64_t) process->proc.pid);
        dict_string(dict, "command", process->comm);
        dict_u64(dict, "rss_anon_bytes", sample->rss_anon_bytes);
        dict_u64(dict, "swap_bytes", sample->swap_bytes);
        if (sample->stats_at_usec != MG_UNKNOWN) {
                dict_u64(dict, "live_bytes", sample->live_bytes);
                dict_u64(dict, "retained_bytes", account_process_retained(sample));
                dict_u64(dict, "freeable_bytes", account_process_reach(sample));
                dict_u64(dict, "cache_bytes", sample->cache_bytes);
                dict_u64(dict, "stats_age_usec", mg_sub_floor(now_usec, sample->stats_at_usec));
        }
        bus_why(dict, process->unit, process->proc.pid, process, until_usec);
        if (process->peer)
                put_peer(dict, process->peer);
        dict_list_begin(dict, "allocators");
        bus_heaps(dict, process);
        dict_list_end(dict);
        dict_end(dict);
}

/* A process of the unit that never had an agent. Gone ones are left out. */
static void put_stranger(
                struct dict *dict,
                const struct unit *unit,
                pid_t pid,
                uint64_t until_usec) {
        uint64_t rss_anon_bytes = MG_UNKNOWN;
        struct mg_proc proc;
        char comm[16];

        if (proc_comm("/proc", pid, comm, sizeof(comm)) < 0 || proc_open("/proc", pid, &proc) < 0)
                return;
        if (proc_rss_anon(&proc, &rss_anon_bytes) < 0)
                rss_anon_bytes = MG_UNKNOWN;
        proc_close(&proc);
        dict_begin(dict);
        dict_string(dict, "unit", unit->name);
        dict_u64(dict, "pid", (uint64_t) pid);
        dict_string(dict, "command", comm);
        dict_u64(dict, "rss_anon_bytes", rss_anon_bytes);
        bus_why(dict, unit, pid, NULL, until_usec);
        dict_end(dict);
}

static void put_unit(
                struct dict *dict,
                const struct unit *unit,
                const struct strangers *strangers) {
        for (const struct process *p = process_first(unit); p; p = process_next(p))
                put_process(dict, p, strangers->until_usec);
        for (size_t i = 0; i < strangers->n; i++)
                if (strangers->list[i].unit == unit)
                        put_stranger(dict, unit, strangers->list[i].pid, strangers->until_usec);
}

void bus_processes(struct dict *dict, struct manager *manager, const struct unit *unit) {
        struct strangers *strangers = strangers_find(manager, unit);

        if (!strangers) {
                dict->error = dict->error < 0 ? dict->error : -ENOMEM;
                return;
        }
        for (const struct unit *u = unit_first(manager); u; u = unit_next(u))
                if (!unit || u == unit)
                        put_unit(dict, u, strangers);
        free(strangers);
}
