/* SPDX-License-Identifier: MIT */
/*
 * What the workloads share: options, phases, threads that stay alive, seeded random numbers, latencies.
 * A workload is a plain program of libc and pthread: it knows nothing of memguard. It prints, each line flushed,
 *
 *   phase NAME rss_anon_bytes=N [KEY=N...]                    as it goes from one phase to the next
 *   summary workload=NAME operations=N operations_per_second=N p99_usec=N worst_usec=N duration_usec=N
 *           live_bytes=N rss_anon_bytes=N minor_faults=N trims=N trim_usec=N trim_worst_usec=N    (one line)
 *   phase idle ...                                            and stays so, --hold=SECONDS or until SIGTERM
 *
 * The harness itself takes nothing from malloc, so that the heap holds the workload's blocks alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
        OPTION_COUNT, /* uint64_t, decimal */
        OPTION_SIZE,  /* uint64_t, with K, M or G */
        OPTION_FLAG,  /* bool */
        OPTION_TEXT,  /* const char * */
};

struct workload_option {
        const char *name;
        enum option_kind kind;
        void *value;
        const char *help;
};

/* The options every workload has. A workload presets what it wants other than zero before workload_start(). */
struct workload {
        const char *name;
        const char *title; /* one line for --help */
        uint64_t size;     /* --size: bytes live at the peak, about */
        uint64_t seed;
        uint64_t threads;
        uint64_t operations; /* --operations: of all threads together */
        uint64_t pace; /* --pace: operations a second of all threads together; 0: as fast as they can */
        uint64_t seconds; /* --seconds: the load ends after so long instead, whatever --operations says */
        uint64_t hold_seconds;    /* --hold: idle so long at the end; UINT64_MAX: until a signal */
        uint64_t trim_every_msec; /* --trim-every: a blind malloc_trim(0) from a thread of its own */
        bool wait;                /* --wait: start the load at SIGUSR1 only */
        bool self_trim; /* --self-trim: at the end, what the allocator's own release gives back */
};

/* Reads the command line (--NAME=VALUE; exits with 2 on a bad one), prints "phase start", obeys --wait. */
void workload_start(
                struct workload *workload,
                const struct workload_option *options,
                int argc,
                char **argv);

/* One "phase" line. FORMAT adds pairs of the workload's own, or is NULL. */
void workload_phase(const char *name, const char *format, ...)
                __attribute__((format(printf, 2, 3)));

/* Prints the summary, self-trims where asked, holds. LIVE_BYTES is what the workload itself keeps. Returns main()'s value. */
int workload_finish(uint64_t live_bytes);

/*
 * Before each operation: whether the load should go on: no signal came, --seconds are not over, the DONE operations of this thread not
 * all made. With --pace it waits until the operation is due.
 */
bool workload_goes_on(uint64_t done);

/* Sleeps, at most until a signal that ends the workload. */
void workload_sleep_msec(uint64_t msec);

/* Runs BODY(index, argument) in each of --threads threads and waits. The same threads serve every call and live until the end. */
typedef void (*workload_body)(unsigned index, void *argument);
void workload_run(workload_body body, void *argument);

/* One operation's duration; from any thread. With --pace it began when it was due: who comes late has kept somebody waiting. */
void workload_count(uint64_t started_usec);

uint64_t workload_now_usec(void);
uint64_t workload_rss_anon(void);

/* Zeroed pages outside of the heap, for tables. Never fails: prints and exits. */
void *workload_map(uint64_t bytes);
void workload_unmap(void *pages, uint64_t bytes);

/* malloc() with every page written. Never fails: prints and exits. */
void *workload_alloc(size_t bytes);

/* xorshift64*, one state a thread: the same seed and index give the same sequence everywhere. */
struct random {
        uint64_t state;
};
struct random random_of(unsigned index);
uint64_t random_next(struct random *random);
uint64_t random_between(
                struct random *random,
                uint64_t low,
                uint64_t high); /* both ends included */
