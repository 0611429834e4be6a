/* SPDX-License-Identifier: MIT */
/*
 * From the daemon's answers into a snapshot. What an older daemon does not tell stays unknown, what a newer one tells is stepped
 * over, and a value of another type than expected is nobody's. Layer: exporter.
 */
#pragma once

#include <systemd/sd-bus.h>

#include "exporter/snapshot.h"

/* Of GetHost() and ListUnits(). Return 0 or -errno; SNAPSHOT then holds a part. */
int decode_host(sd_bus_message *reply, struct snapshot *snapshot);
int decode_units(sd_bus_message *reply, struct snapshot *snapshot);
