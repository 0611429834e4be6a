/* SPDX-License-Identifier: MIT */
/* Processes with an agent; see process.h. */
#include "daemon/process.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/manager.h"
#include "daemon/peer.h"
#include "daemon/unit.h"

/* The tick fills the manager's scratch for the largest unit; growing it here keeps the tick free of allocations. */
static int reserve_samples(struct manager *manager, size_t needed) {
        struct mg_process_sample *samples;
        size_t room = MG_MAX(needed, manager->samples_room * 2);

        if (needed <= manager->samples_room)
                return 0;
        samples = reallocarray(manager->samples, room, sizeof(*samples));
        if (!samples)
                return -ENOMEM;
        manager->samples = samples;
        manager->samples_room = room;
        return 0;
}

void process_renew(struct process *process) {
        (void) proc_comm("/proc", process->proc.pid, process->comm, sizeof(process->comm));
        process->sample = process_sample_unknown(process->proc.pid, process->proc.start_time);
}

int process_new(struct unit *unit,
                const struct mg_proc *proc,
                uid_t uid,
                struct process **ret_process) {
        struct process *process;

        if (reserve_samples(unit->manager, unit->n_processes + 1) < 0)
                return -ENOMEM;
        process = calloc(1, sizeof(*process));
        if (!process)
                return -ENOMEM;
        process->unit = unit;
        process->proc = *proc;
        process->uid = uid;
        process->round_before_bytes = MG_UNKNOWN;
        process_renew(process);
        list_append(&unit->processes, &process->by_unit);
        unit->n_processes++;
        *ret_process = process;
        return 0;
}

struct process *process_free(struct process *process) {
        if (!process)
                return NULL;
        if (process->peer)
                peer_close(process->peer, "its process is gone");
        if (process->unit->round && process->round_before_bytes != MG_UNKNOWN)
                process->unit->round_lost_bytes = mg_add_cap(
                                process->unit->round_lost_bytes, process->round_before_bytes);
        list_remove(&process->by_unit);
        process->unit->n_processes--;
        proc_close(&process->proc);
        free(process);
        return NULL;
}

uint64_t process_footprint(const struct process *process) {
        const struct mg_process_sample *sample = &process->sample;

        if (sample->rss_anon_bytes == MG_UNKNOWN)
                return MG_UNKNOWN;
        return mg_add_cap(
                        sample->rss_anon_bytes,
                        sample->swap_bytes == MG_UNKNOWN ? 0 : sample->swap_bytes);
}

struct process *process_find(const struct unit *unit, pid_t pid, uint64_t start_time) {
        for (struct process *p = process_first(unit); p; p = process_next(p))
                if (p->proc.pid == pid && p->proc.start_time == start_time)
                        return p;
        return NULL;
}

struct process *process_first(const struct unit *unit) {
        return list_is_empty(&unit->processes) ? NULL : process_of(unit->processes.next);
}

struct process *process_next(const struct process *process) {
        struct mg_list *next = process->by_unit.next;

        return next == &process->unit->processes ? NULL : process_of(next);
}
