/* SPDX-License-Identifier: MIT */
/* The daemon's own cost. Layer: daemon. */
#include "daemon/self.h"

#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/macros.h"

#define TEXT_OF_(x) #x
#define TEXT_OF(x)  TEXT_OF_(x)

/* The last minute, in steps of five seconds and one to measure from. */
#define CPU_STEP_USEC (5 * MG_USEC_PER_SEC)

int self_new(struct self **ret_self) {
        struct self *self = calloc(1, sizeof(*self));
        const char *version = "(unknown)";
        size_t size = sizeof(version);

        if (!self)
                return -ENOMEM;
        if (proc_open("/proc", getpid(), &self->proc) < 0)
                self->proc.statm_fd = -EBADF;
        (void) mallctl("version", &version, &size, NULL, 0);
        /* "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c": the hash helps nobody here. */
        snprintf(self->allocator, sizeof(self->allocator), "jemalloc %.*s",
                 (int) strcspn(version, "-"), version);
        *ret_self = self;
        return 0;
}

struct self *self_free(struct self *self) {
        if (!self)
                return NULL;
        if (self->proc.statm_fd >= 0)
                proc_close(&self->proc);
        free(self);
        return NULL;
}

static uint64_t timeval_usec(const struct timeval *tv) {
        return (uint64_t) tv->tv_sec * MG_USEC_PER_SEC + (uint64_t) tv->tv_usec;
}

uint64_t self_cpu_usec(void) {
        struct rusage usage;

        if (getrusage(RUSAGE_SELF, &usage) < 0)
                return MG_UNKNOWN;
        return timeval_usec(&usage.ru_utime) + timeval_usec(&usage.ru_stime);
}

static bool is_due(const struct self_cpu *cpu, uint64_t now_usec) {
        uint32_t newest = (cpu->head + SELF_CPU_SAMPLES - 1) % SELF_CPU_SAMPLES;

        return cpu->count == 0 || now_usec - cpu->at_usec[newest] >= CPU_STEP_USEC;
}

void self_tick(struct self *self, uint64_t now_usec) {
        uint64_t used_usec = is_due(&self->cpu, now_usec) ? self_cpu_usec() : MG_UNKNOWN;

        if (used_usec != MG_UNKNOWN)
                self_cpu_add(&self->cpu, now_usec, used_usec);
}

uint64_t self_rss_anon(const struct self *self) {
        uint64_t bytes;

        if (self->proc.statm_fd < 0 || proc_rss_anon(&self->proc, &bytes) < 0)
                return MG_UNKNOWN;
        return bytes;
}

uint64_t self_cpu_permyriad(const struct self *self) {
        return self_cpu_share(&self->cpu);
}

void self_cpu_add(struct self_cpu *cpu, uint64_t now_usec, uint64_t used_usec) {
        if (!is_due(cpu, now_usec))
                return;
        cpu->at_usec[cpu->head] = now_usec;
        cpu->used_usec[cpu->head] = used_usec;
        cpu->head = (cpu->head + 1) % SELF_CPU_SAMPLES;
        if (cpu->count < SELF_CPU_SAMPLES)
                cpu->count++;
}

uint64_t self_cpu_share(const struct self_cpu *cpu) {
        uint32_t newest = (cpu->head + SELF_CPU_SAMPLES - 1) % SELF_CPU_SAMPLES;
        uint32_t oldest = (cpu->head + SELF_CPU_SAMPLES - cpu->count) % SELF_CPU_SAMPLES;
        uint64_t wall_usec, used_usec;

        if (cpu->count < 2)
                return MG_UNKNOWN;
        wall_usec = cpu->at_usec[newest] - cpu->at_usec[oldest];
        used_usec = mg_sub_floor(cpu->used_usec[newest], cpu->used_usec[oldest]);
        return mg_scale(used_usec, 10000, MG_MAX(wall_usec, UINT64_C(1)));
}

static uint64_t heap_number(const char *name) {
        size_t value, size = sizeof(value);

        return mallctl(name, &value, &size, NULL, 0) == 0 ? value : MG_UNKNOWN;
}

void self_heap(struct self_heap *ret_heap) {
        uint64_t epoch = 1;

        /* jemalloc's statistics are a snapshot; writing the epoch takes a new one. */
        (void) mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
        *ret_heap = (struct self_heap){
                .allocated_bytes = heap_number("stats.allocated"),
                .active_bytes = heap_number("stats.active"),
                .metadata_bytes = heap_number("stats.metadata"),
                .resident_bytes = heap_number("stats.resident"),
                .mapped_bytes = heap_number("stats.mapped"),
                .retained_bytes = heap_number("stats.retained"),
        };
}

void self_release(void) {
        (void) mallctl("arena." TEXT_OF(MALLCTL_ARENAS_ALL) ".purge", NULL, NULL, NULL, 0);
}

int64_t self_net_allocated(void) {
        static uint64_t *allocated, *deallocated;
        static uint64_t nothing;
        size_t size = sizeof(allocated);

        if (!allocated && (mallctl("thread.allocatedp", &allocated, &size, NULL, 0) != 0 ||
                           mallctl("thread.deallocatedp", &deallocated, &size, NULL, 0) != 0))
                allocated = deallocated = &nothing;
        return (int64_t) (*allocated - *deallocated);
}
