/* SPDX-License-Identifier: MIT */
/* Small files that are replaced whole. Layer: daemon; never logs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Writes NAME.new and renames it, so that a reader finds the old file or the new one. Returns 0 or -errno (-ENOSPC: the old
 * one is still there). DURABLE: it waits for the disk, and what it says to be there outlasts a crash of the host; if not, the
 * file may then be the old one, the new one or empty.
 */
int store_file_replace(
                int dir_fd,
                const char *name,
                const char *bytes,
                size_t length,
                bool durable);

/* The whole file, NUL-ended, owned by the caller. -EFBIG beyond MAX bytes; -ENOENT. */
int store_file_read(int dir_fd, const char *name, size_t max, char **ret_text, size_t *ret_length);
