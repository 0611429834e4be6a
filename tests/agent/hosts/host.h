/* SPDX-License-Identifier: MIT */
/*
 * Programs that make life hard for a library in their address space. Each case is a function that prints what it
 * saw (the same with and without the agent) and returns the exit code.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

typedef int (*host_case_fn)(void);

struct host_case {
        const char *name;
        host_case_fn run;
};

extern const struct host_case descriptor_cases[], process_cases[], rights_cases[], limit_cases[];

/* Lets MSEC pass, so that the daemon gets its requests in. */
void host_pause(unsigned msec);

/* A thread that allocates and frees until the end of the process; returns 0. */
int host_start_allocating(void);

/* Runs the whole process on for MSEC with a second thread at work. */
void host_work(unsigned msec);

/* Waits for a child; returns its exit code, or 128 + the signal. */
int host_wait(int pid);
