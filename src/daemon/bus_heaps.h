/* SPDX-License-Identifier: MIT */
/* A process's allocators as dictionaries. Layer: daemon. */
#pragma once

#include "daemon/bus_dict.h"
#include "daemon/process.h"

/* One a{sv} for each allocator: name version prefix pid live_bytes freeable_bytes ... */
void bus_heaps(struct dict *dict, const struct process *process);
