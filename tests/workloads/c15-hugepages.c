/* SPDX-License-Identifier: MIT *
 * Measured 2026-11-30, glibc 2.36, 2 cores, c15-hugepages --seconds=3 --hold=0: 512 MiB on huge pages, 15.6 MiB
 * after the drop.
 */
/*
 * C15: memory on huge pages: --size bytes advised MADV_HUGEPAGE and touched, of which 32 of each 33 pages are then dropped. Where khugepaged
 * runs it fills the holes again: anon rises together with AnonHugePages, though the program asked for nothing. Each --period
 * seconds a "watch" phase shows both. Needs /sys/kernel/mm/transparent_hugepage/enabled at madvise or always.
 */
#include "workload.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096UL
#define HUGE (2UL << 20)

static uint64_t keep = 33, period = 10;
static struct workload self = {
        .name = "c15-hugepages",
        .title = "huge pages, punctured, refilled by the kernel",
        .size = 512 << 20,
        .seconds = 120,
        .threads = 1,
        .hold_seconds = UINT64_MAX,
};
static const struct workload_option options[] = {
        { "keep", OPTION_COUNT, &keep, "one page of so many stays" },
        { "period", OPTION_COUNT, &period, "seconds between watch lines" },
        {},
};

static uint64_t anon_huge_bytes(void) {
        FILE *file = fopen("/proc/self/smaps_rollup", "re");
        char line[256];
        unsigned long kib = 0;

        while (file != NULL && fgets(line, sizeof(line), file) != NULL)
                if (sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
                        break;
        if (file != NULL)
                fclose(file);
        return kib << 10;
}

int main(int argc, char **argv) {
        workload_start(&self, options, argc, argv);
        char *map = workload_map(self.size + HUGE);
        map = (char *) (((uintptr_t) map + HUGE - 1) & ~(HUGE - 1));
        if (madvise(map, self.size, MADV_HUGEPAGE) < 0)
                perror("madvise(MADV_HUGEPAGE)");
        memset(map, 1, self.size);
        workload_phase("full", "anon_huge_bytes=%lu", anon_huge_bytes());
        for (uint64_t at = 0; at < self.size; at += PAGE)
                if (at / PAGE % (keep ? keep : 1) != 0)
                        madvise(map + at, PAGE, MADV_DONTNEED);
        workload_phase("dropped", "anon_huge_bytes=%lu", anon_huge_bytes());
        while (workload_goes_on(0)) {
                workload_sleep_msec(period * 1000);
                workload_phase("watch", "anon_huge_bytes=%lu", anon_huge_bytes());
        }
        return workload_finish(self.size / (keep ? keep : 1));
}
