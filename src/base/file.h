/* SPDX-License-Identifier: MIT */
/*
 * Reading small kernel files whole into the caller's buffer, and closing
 * descriptors. Layer: base; no allocation.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * Reads PATH (relative to DIR_FD, or AT_FDCWD) into BUFFER of SIZE bytes and ends it with
 * a NUL. Returns the length without the NUL; -EFBIG when the file does not fit; else -errno.
 */
ssize_t file_read_at(int dir_fd, const char *path, char *buffer, size_t size);

/*
 * The tick's way: exactly one pread from offset 0 of an open descriptor whose file the kernel
 * makes in one piece (memory.stat, statm; not maps). Returns as file_read_at().
 */
ssize_t file_pread(int fd, char *buffer, size_t size);

/* For MG_CLEANUP: closes a descriptor that is >= 0 and unsets it. Leaves errno alone. */
void file_closep(int *fd);
