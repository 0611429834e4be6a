/* SPDX-License-Identifier: MIT */
/*
 * Reading memory of this process that may vanish at any moment: the kernel copies it, and says so where a plain load would kill the
 * program. By way of a pipe in the agent's own table. Layer: agent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of one peek at most: what a pipe takes at once. */
#define MG_PEEK_MAX 512

/* 0 or a negative errno: then every peek fails, and what needs it is left undone. */
int peek_open(void);
void peek_close(void);

/* In a forked child, whose table never had the pipe. */
void peek_forget(void);

bool peek_read(uintptr_t address, void *buffer, size_t size);
