/* SPDX-License-Identifier: MIT */
/*
 * Asking memguardd over the bus: its private socket first, else the system bus, as memguardctl does. Layer: exporter.
 */
#pragma once

#include "exporter/snapshot.h"

/*
 * Fills *ret_snapshot (which the caller has initialized, and ends in any case) within TIMEOUT_USEC, however the daemon behaves.
 * DIRECTORY NULL: the usual place, and the system bus after it. Returns 0 or -errno: -ENOENT and -ECONNREFUSED when no daemon runs,
 * -ETIMEDOUT when it hangs.
 */
int reader_read(const char *directory, uint64_t timeout_usec, struct snapshot *ret_snapshot);
