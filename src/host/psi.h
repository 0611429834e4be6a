/* SPDX-License-Identifier: MIT */
/*
 * The kernel's pressure files: their text, and a trigger on one. Layer: host; never logs.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A trigger of an unprivileged process wants a multiple of two seconds. */
#define MG_PSI_WINDOW_USEC UINT64_C(2000000)

#define MG_PSI_HOST_FILE "/proc/pressure/memory"

/* Pure. "avg10" of the "full" line in 1/10000; MG_UNKNOWN without one. */
uint64_t psi_full_avg10_parse(const char *text);

/*
 * Opens the pressure file NAME below DIR_FD (or AT_FDCWD) with a trigger on it: EPOLLPRI, at most once a window, while some task was stalled
 * for at least PERMYRIAD (1 to 10000) of one; EPOLLERR when the cgroup is gone. -EOPNOTSUPP: the kernel was started without PSI.
 */
int psi_arm(int dir_fd, const char *name, uint32_t permyriad, int *ret_fd);
