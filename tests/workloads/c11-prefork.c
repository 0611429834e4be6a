/* SPDX-License-Identifier: MIT */
/*
 * C11: a master that retains --size bytes and then forks --children workers. The retained pages are shared, copy on write: each
 * process shows them as its own, together they exist once. Nothing comes back before every one of them has given them up.
 */
#include "workload.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define BLOCK (16 << 10)

static uint64_t children = 3;
static void **table;
static struct workload self = {
        .name = "c11-prefork",
        .title = "a master that retains memory, and forks",
        .size = 180 << 20,
        .operations = UINT64_MAX,
        .threads = 2,
        .hold_seconds = UINT64_MAX,
};
static const struct workload_option options[] = {
        { "children", OPTION_COUNT, &children, "workers forked" },
        {},
};

static void burst(unsigned index, void *argument) {
        uint64_t blocks = self.size / self.threads / BLOCK;
        void **mine = table + index * blocks;

        (void) argument;
        for (uint64_t i = 0; i < blocks; i++) {
                uint64_t started = workload_now_usec();
                mine[i] = workload_alloc(BLOCK);
                workload_count(started);
        }
        for (uint64_t i = 0; i + 1 < blocks; i++)
                free(mine[i]);
}

static void fork_worker(pid_t master) {
        pid_t pid = fork();

        if (pid < 0)
                perror("fork");
        if (pid != 0)
                return;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == master)
                pause();
        _exit(0);
}

int main(int argc, char **argv) {
        workload_start(&self, options, argc, argv);
        table = workload_map(self.size / BLOCK * sizeof(void *) + 1);
        workload_run(burst, NULL);
        workload_phase("freed", NULL);
        for (uint64_t i = 0; i < children; i++)
                fork_worker(getpid());
        workload_phase("forked", "children=%lu", children);
        return workload_finish(self.threads * BLOCK);
}
