/* SPDX-License-Identifier: MIT */
/* The tables of metrics. Layer: exporter; pure. */
#include "exporter/metrics.h"

#include "base/macros.h"

#define BYTES(name, key, help) \
        { name, "bytes", help, METRIC_GAUGE, 0, key }
#define COUNT(name, key, help) \
        { name, NULL, help, METRIC_GAUGE, 0, key }
#define COUNTER(name, key, help) \
        { name, NULL, help, METRIC_COUNTER, 0, key }

const struct metric host_metrics[HOST_METRICS] = {
        COUNT("memguard_units", "units", "Units known to memguardd."),
        COUNT("memguard_units_trimming", "trimming", "Units in Mode=trim that have an agent."),
        COUNT("memguard_units_observing", "observing", "Units that are observed."),
        COUNT("memguard_units_without_agent", "no_agent", "Units without any agent."),
        COUNT("memguard_agents", "agents", "Connected agents."),
        COUNT("memguard_paused", "paused", "1 while all trimming is paused."),
        COUNT("memguard_pressure_watched", "psi", "1 where memory pressure is watched."),
        COUNTER("memguard_late_replies",
                "late_replies",
                "Replies of agents that came after their request had been given up."),
        BYTES("memguard_history_bytes", "history_bytes", "Memory of all histories."),
        { "memguard_daemon_uptime_seconds", "seconds", "Time since memguardd was started.",
          METRIC_GAUGE, 6, "uptime_usec" },
        BYTES("memguard_daemon_anon_bytes",
              "self_anon_bytes",
              "Anonymous memory of memguardd itself."),
        { "memguard_daemon_cpu_seconds", "seconds", "CPU time of memguardd itself.", METRIC_COUNTER,
          6, "self_cpu_usec" },
        { "memguard_daemon_cpu_ratio", "ratio",
          "CPU of memguardd itself over the last minute; 1 is one CPU.", METRIC_GAUGE, 4,
          "self_cpu_permyriad" },
        BYTES("memguard_daemon_heap_allocated_bytes",
              "self_allocated_bytes",
              "memguardd's own heap: in use."),
        BYTES("memguard_daemon_heap_active_bytes",
              "self_active_bytes",
              "memguardd's own heap: pages that hold something live."),
        BYTES("memguard_daemon_heap_metadata_bytes",
              "self_metadata_bytes",
              "memguardd's own heap: the allocator's own needs."),
        BYTES("memguard_daemon_heap_resident_bytes",
              "self_resident_bytes",
              "memguardd's own heap: resident, by the allocator's account."),
        BYTES("memguard_daemon_heap_mapped_bytes",
              "self_mapped_bytes",
              "memguardd's own heap: mapped."),
        BYTES("memguard_daemon_heap_address_space_bytes",
              "self_address_space_bytes",
              "memguardd's own heap: what jemalloc calls retained: address space, not memory."),
        COUNTER("memguard_trims", "trims", "Rounds of trims since memguardd was started."),
        { "memguard_trimmed_bytes", "bytes", "What they brought.", METRIC_COUNTER, 0,
          "trimmed_bytes" },
};

const struct metric unit_metrics[UNIT_METRICS] = {
        BYTES("memguard_unit_anon_bytes",
              "anon_bytes",
              "Anonymous memory as the kernel counts it."),
        BYTES("memguard_unit_swap_bytes", "swap_bytes", "Swapped out."),
        BYTES("memguard_unit_live_bytes", "live_bytes", "In use by the programs."),
        BYTES("memguard_unit_retained_bytes",
              "retained_bytes",
              "Resident but not in use: freeable and pinned together."),
        BYTES("memguard_unit_freeable_bytes", "freeable_bytes", "What a trim should bring."),
        BYTES("memguard_unit_pinned_bytes",
              "pinned_bytes",
              "Free, but held by live neighbours: cannot be given back."),
        BYTES("memguard_unit_other_bytes", "other_bytes", "Outside of all known heaps."),
        BYTES("memguard_unit_shmem_bytes", "shmem_bytes", "Shared memory."),
        BYTES("memguard_unit_file_bytes", "file_bytes", "File cache."),
        BYTES("memguard_unit_threshold_bytes", "trim_above_bytes", "What TrimAbove= comes to now."),
        COUNT("memguard_unit_processes", "processes", "Processes in the unit."),
        COUNT("memguard_unit_agents", "agents", "Processes of the unit that have an agent."),
        COUNT("memguard_unit_agents_lost",
              "agents_lost",
              "Processes that had an agent, still run, and have none now."),
        COUNT("memguard_unit_paused", "paused", "1 while trimming is paused."),
        COUNT("memguard_unit_breaker_open",
              "breaker",
              "1 since a pause overran MaxPause=, until somebody resumes the unit."),
        COUNTER("memguard_unit_would_trim",
                "would_trim",
                "Trims that Mode=observe alone has prevented."),
        { "memguard_unit_trimmed_bytes", "bytes", "What trims brought.", METRIC_COUNTER, 0,
          "trimmed_bytes" },
};

const struct metric heap_metrics[HEAP_METRICS] = {
        BYTES("memguard_heap_allocated_bytes",
              "live_bytes",
              "In use by the program (jemalloc: stats.allocated)."),
        BYTES("memguard_heap_active_bytes",
              "active_bytes",
              "Pages that hold something live (jemalloc: stats.active)."),
        BYTES("memguard_heap_metadata_bytes",
              "metadata_bytes",
              "The allocator's own needs (jemalloc: stats.metadata)."),
        BYTES("memguard_heap_resident_bytes",
              "resident_bytes",
              "Resident, by the allocator's own account (jemalloc: stats.resident)."),
        BYTES("memguard_heap_mapped_bytes",
              "system_bytes",
              "Taken from the system, resident or not (jemalloc: stats.mapped)."),
        BYTES("memguard_heap_address_space_bytes",
              "address_space_bytes",
              "Reserved, not mapped: no memory (jemalloc: stats.retained)."),
        BYTES("memguard_heap_freeable_bytes",
              "freeable_bytes",
              "What the allocator itself believes it can give back, at most."),
        COUNT("memguard_heap_free_chunks",
              "free_chunks",
              "Pieces of free memory that a walk over the heap visits."),
        COUNT("memguard_heap_arenas", "arenas", "Independent parts of the heap."),
};

int metric_find(const struct metric *table, size_t n, const char *key) {
        for (size_t i = 0; i < n; i++)
                if (table[i].key && mg_streq(table[i].key, key))
                        return (int) i;
        return -1;
}
