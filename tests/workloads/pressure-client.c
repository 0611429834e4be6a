/* SPDX-License-Identifier: MIT */
/*
 * A program on libsystemd's event loop that follows memory pressure, as systemd's own daemons do: when it is told, it gives back what its
 * allocator retains. It holds 64 MiB of that, made by blocks that are freed but for the last. It writes a line when it is told and for
 * each SIGUSR1: how often its loop has turned, so that one that spins is seen, and how often it was told. Needs libsystemd 254.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#define BLOCKS      4096
#define BLOCK_BYTES 16384

struct counters {
        uint64_t turns;
        uint64_t told;
};

static void *blocks[BLOCKS];

static int retain(void) {
        for (size_t i = 0; i < BLOCKS; i++) {
                blocks[i] = malloc(BLOCK_BYTES);
                if (!blocks[i])
                        return -1;
                memset(blocks[i], 1, BLOCK_BYTES);
        }
        for (size_t i = 0; i < BLOCKS - 1; i++)
                free(blocks[i]);
        return 0;
}

static void show(const struct counters *counters) {
        printf("turns %" PRIu64 " told %" PRIu64 "\n", counters->turns, counters->told);
        fflush(stdout);
}

static int on_pressure(sd_event_source *source, void *userdata) {
        struct counters *counters = userdata;

        counters->told++;
        (void) sd_event_trim_memory();
        show(counters);
        return 0;
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        show(userdata);
        return 0;
}

static int set_up(sd_event **ret_event, struct counters *counters) {
        sigset_t mask;
        int r;

        sigemptyset(&mask);
        sigaddset(&mask, SIGUSR1);
        sigaddset(&mask, SIGTERM);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        r = sd_event_default(ret_event);
        if (r >= 0)
                r = sd_event_add_signal(*ret_event, NULL, SIGTERM, NULL, NULL);
        if (r >= 0)
                r = sd_event_add_signal(*ret_event, NULL, SIGUSR1, on_signal, counters);
        if (r >= 0)
                r = sd_event_add_memory_pressure(*ret_event, NULL, on_pressure, counters);
        return r;
}

int main(void) {
        struct counters counters = {};
        sd_event *event = NULL;
        int r = retain() < 0 ? -1 : set_up(&event, &counters);

        if (r >= 0)
                show(&counters);
        while (r >= 0 && sd_event_get_state(event) != SD_EVENT_FINISHED) {
                r = sd_event_run(event, UINT64_MAX);
                counters.turns++;
        }
        if (r < 0)
                fprintf(stderr, "memory pressure: %s\n", strerror(-r));
        sd_event_unref(event);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
