/* SPDX-License-Identifier: MIT */
/*
 * From what was measured to live, freeable, pinned and other. Only resident (and swapped) pages are divided up: an
 * allocator's own free bytes still count pages that it gave back long ago, so they serve as an upper bound at most.
 * Layer: core; pure.
 */
#include "core/account.h"

static uint64_t known_or_zero(uint64_t value) {
        return value == MG_UNKNOWN ? 0 : value;
}

static bool has_statistics(const struct mg_process_sample *process) {
        return process->stats_at_usec != MG_UNKNOWN && process->live_bytes != MG_UNKNOWN &&
               process->rss_anon_bytes != MG_UNKNOWN;
}

/*
 * Live bytes are as old as the last statistics, which the duty limit may have put off for minutes. Pages are
 * touched because somebody allocates: what RssAnon grew by since then is taken for live until the next look.
 */
static uint64_t process_live(const struct mg_process_sample *process) {
        uint64_t then = process->stats_rss_bytes;
        uint64_t growth = 0;

        if (then != 0 && then != MG_UNKNOWN)
                growth = mg_sub_floor(process->rss_anon_bytes, then);
        return mg_add_cap(process->live_bytes, growth);
}

uint64_t account_process_retained(const struct mg_process_sample *process) {
        uint64_t heap;

        if (!has_statistics(process))
                return MG_UNKNOWN;
        heap = mg_add_cap(process->rss_anon_bytes, known_or_zero(process->swap_bytes));
        heap = mg_sub_floor(heap, known_or_zero(process->base_bytes));
        /* Both are unsigned, so that an unknown system_bytes is no bound. */
        heap = MG_MIN(heap, process->system_bytes);
        return mg_sub_floor(heap, process_live(process));
}

uint64_t account_process_reach(const struct mg_process_sample *process) {
        uint64_t retained = account_process_retained(process);

        if (retained == MG_UNKNOWN || !process->has_agent || !process->can_trim)
                return 0;
        return MG_MIN(retained, process->estimate_bytes);
}

uint64_t account_lazyfree(const struct mg_memory *memory) {
        uint64_t listed;

        if (memory->anon_bytes == MG_UNKNOWN || memory->shmem_bytes == MG_UNKNOWN ||
            memory->inactive_anon_bytes == MG_UNKNOWN || memory->active_anon_bytes == MG_UNKNOWN ||
            memory->unevictable_bytes == MG_UNKNOWN)
                return 0;
        listed = mg_add_cap(memory->inactive_anon_bytes, memory->active_anon_bytes);
        listed = mg_add_cap(listed, memory->unevictable_bytes);
        listed = mg_sub_floor(mg_add_cap(memory->anon_bytes, memory->shmem_bytes), listed);
        return MG_MIN(listed, memory->anon_bytes);
}

uint64_t account_footprint(const struct mg_memory *memory) {
        if (memory->anon_bytes == MG_UNKNOWN)
                return MG_UNKNOWN;
        return mg_add_cap(
                        memory->anon_bytes - account_lazyfree(memory),
                        known_or_zero(memory->swap_bytes));
}

/* The cgroup's anon, or where nobody could read it the sum over the processes that could be read. */
static bool find_anon(const struct mg_unit_sample *sample, uint64_t *ret_anon) {
        uint64_t sum = 0;
        bool known = sample->memory.anon_bytes != MG_UNKNOWN;

        if (known) {
                *ret_anon = sample->memory.anon_bytes;
                return true;
        }
        for (size_t i = 0; i < sample->n_processes; i++) {
                if (sample->processes[i].rss_anon_bytes == MG_UNKNOWN)
                        continue;
                known = true;
                sum = mg_add_cap(sum, sample->processes[i].rss_anon_bytes);
        }
        *ret_anon = sum;
        return known;
}

struct sums {
        uint64_t live;
        uint64_t largest_live;
        uint64_t retained;
        uint64_t reach;
        bool known;
};

static void sum_processes(const struct mg_unit_sample *sample, struct sums *ret_sums) {
        struct sums sums = {};

        for (size_t i = 0; i < sample->n_processes; i++) {
                const struct mg_process_sample *process = &sample->processes[i];
                uint64_t live;

                if (!has_statistics(process))
                        continue;
                live = process_live(process);
                sums.known = true;
                sums.live = mg_add_cap(sums.live, live);
                sums.largest_live = MG_MAX(sums.largest_live, live);
                sums.retained = mg_add_cap(sums.retained, account_process_retained(process));
                sums.reach = mg_add_cap(sums.reach, account_process_reach(process));
        }
        *ret_sums = sums;
}

void account_set_stuck(struct mg_account *account, uint64_t stuck_bytes) {
        account->freeable_bytes = MG_MIN(
                        mg_sub_floor(account->retained_bytes, stuck_bytes), account->reach_bytes);
        account->pinned_bytes = account->retained_bytes - account->freeable_bytes;
}

void account_unit(
                const struct mg_unit_sample *sample,
                uint64_t stuck_bytes,
                struct mg_account *ret) {
        struct mg_account account = {};
        struct sums sums;
        uint64_t total;

        account.anon_known = find_anon(sample, &account.anon_bytes);
        /* Cut where the sum would not fit, so that the parts add up for any numbers at all. */
        account.swap_bytes = MG_MIN(
                        known_or_zero(sample->memory.swap_bytes), UINT64_MAX - account.anon_bytes);
        account.lazyfree_bytes = account_lazyfree(&sample->memory);
        sum_processes(sample, &sums);
        account.known = sums.known && account.anon_known;

        total = account.anon_bytes + account.swap_bytes;
        if (account.known) {
                /* Pages that a prefork family shares are in each process's figures and once in the unit's. */
                uint64_t room = mg_sub_floor(total, sums.largest_live);

                account.retained_bytes =
                                mg_sub_floor(MG_MIN(sums.retained, room), account.lazyfree_bytes);
                account.live_bytes = MG_MIN(sums.live, total - account.retained_bytes);
        }
        account.reach_bytes = MG_MIN(sums.reach, account.retained_bytes);
        account.other_bytes = total - account.live_bytes - account.retained_bytes;
        account_set_stuck(&account, stuck_bytes);
        *ret = account;
}
