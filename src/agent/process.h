/* SPDX-License-Identifier: MIT */
/*
 * What the agent reads about its own process: resident memory, faults, time, and the status files that tell the
 * rights of two threads apart. Layer: agent; no allocation.
 *
 * With a descriptor table of its own the agent keeps the files open, so that a later chroot or filter of system
 * calls meets no new kind of call. In the program's table nothing is kept: each read opens and closes, and closes only what
 * it can still recognise as its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A status file has 1.6 KiB and the supplementary groups: room for about 2,000 of those. Untouched pages cost nothing. */
#define MG_PROCESS_FILE_BYTES 16384

/* Two of them to compare; for the agent's one thread, whose stack is too small, and before there is one. */
extern char process_text[2][MG_PROCESS_FILE_BYTES];

enum mg_process_file {
        MG_PROCESS_STATM,
        MG_PROCESS_MAIN_STATUS, /* of the program's main thread */
        MG_PROCESS_OWN_STATUS,  /* of the thread that opened it */
        _MG_PROCESS_FILE_MAX,
};

/*
 * Chooses the way: OWN_TABLE keeps the files open from here on, in the calling thread's table. Returns 0, or a
 * negative errno where one could not be opened: then nothing can be compared, and the agent does not run.
 */
int process_files_open(bool own_table);
void process_files_close(void);

/* In a forked child, whose table never had them: the numbers are not ours. */
void process_files_forget(void);

/* As file_read_at(). */
ssize_t process_file_read(enum mg_process_file file, char *buffer, size_t size);

/* RssAnon as statm has it: resident less shared pages. 0 or a negative errno. */
int process_rss_anon(uint64_t *ret_bytes);

uint64_t process_now_usec(void); /* CLOCK_MONOTONIC */

/*
 * How long the calling thread may have held up others since a moment. Wall time, where it has been preempted since, for
 * that may have been while it held a lock. Else its CPU time: what it waited, it waited for others.
 */
struct mg_stopwatch {
        uint64_t wall_usec;
        uint64_t cpu_usec;
        uint64_t preemptions;
};
void stopwatch_start(struct mg_stopwatch *watch);
uint64_t stopwatch_pause_usec(const struct mg_stopwatch *watch);
uint64_t process_thread_cpu_usec(void); /* of the calling thread */
uint64_t process_minor_faults(void);    /* of the whole process */

/* For an own descriptor in the program's table: moves FD to a number of at least MINIMUM; owns both. Returns the new one. */
int process_lift_fd(int fd, int minimum);
