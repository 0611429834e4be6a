/* SPDX-License-Identifier: MIT */
/* Small files that are replaced whole. Layer: daemon; never logs. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * Writes NAME.new and renames it, so that a reader finds the old file or the new one. Returns 0 or -errno (-ENOSPC: the old
 * one is still there).
 */
int store_file_replace(int dir_fd, const char *name, const char *bytes, size_t length);

/* The whole file, NUL-ended, owned by the caller. -EFBIG beyond MAX bytes; -ENOENT. */
int store_file_read(int dir_fd, const char *name, size_t max, char **ret_text, size_t *ret_length);
