/* SPDX-License-Identifier: MIT */
/*
 * A trace: what was measured of one or more units, as JSON lines, for memguardctl simulate. Each line is one sample of one
 * unit: an object with at_usec and unit, and any of
 *
 *   anon_bytes swap_bytes file_bytes shmem_bytes anon_thp_bytes inactive_anon_bytes active_anon_bytes unevictable_bytes
 *   cpu_usage_usec watchdog_usec activity pressure paused checkpoint
 *   processes: [{ pid rss_anon_bytes swap_bytes base_bytes live_bytes system_bytes freeable_bytes free_chunks arenas
 *                 agent can_trim sliced suspended }]
 *
 * as status --json and the protocol name them; without processes, those members of the line itself make one process. What is left out
 * or null is unknown. Three more say how the unit would answer a trim, since no recording can know: pinned_bytes (what no trim gets),
 * reused_bytes (of what trims gave back, so much was needed again since the last line) and pause_usec. Layer: ctl.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/sample.h"

#define TRACE_PROCESSES_MAX 256

struct trace_line {
        uint64_t at_usec;
        char unit[256];
        struct mg_unit_sample sample; /* its processes are the line's */
        struct mg_process_sample processes[TRACE_PROCESSES_MAX];
        uint64_t pinned_bytes;
        uint64_t reused_bytes;
        uint64_t pause_usec; /* MG_UNKNOWN: as predicted */
        bool checkpoint;
};

/* Room for any complaint. */
#define TRACE_COMPLAINT_MAX 200

/* Reads one line. Returns 0, or -EBADMSG with a COMPLAINT of TRACE_COMPLAINT_MAX bytes. */
int trace_parse(const char *text, size_t length, struct trace_line *ret_line, char *complaint);
