/* SPDX-License-Identifier: MIT */
/*
 * Memory pressure: PSI triggers on the host, on units with an agent and on every cgroup above these, and memory.events of units that
 * have a limit. Who is found under pressure stays so for some seconds, and those are looked at at once. Nothing is ever
 * written but the triggers themselves: no limit is set or changed. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"
#include "core/pressure.h"

struct manager;
struct pressure;
struct unit;

/* A trigger fires once in two seconds at most: one left out between two firings is no end of the pressure. */
#define PRESSURE_LASTS_USEC (5 * MG_USEC_PER_SEC)

/* What each unit carries of it; all zero is a fresh one. */
struct unit_pressure {
        uint64_t until_usec; /* it counts as under pressure; 0: never was */
        uint64_t told_usec;  /* of the last alert; 0: none */
        bool has_reading;
        struct mg_pressure_reading reading; /* of the last look at its counters */
};

/* Arms the host's trigger at once, so that an absent PSI is known, and said, at the start. */
int pressure_new(struct manager *manager, struct pressure **ret_pressure);
struct pressure *pressure_free(struct pressure *pressure);

/* Whether any trigger is armed. NULL is no. */
bool pressure_is_armed(const struct pressure *pressure);

/* Before a tick's units: follows units that came and went, PressureHigh=, cgroups that were gone or not there yet. */
void pressure_follow(struct pressure *pressure, uint64_t now_usec);

/* After the unit was measured: looks at its limit's events where it is near the limit. */
void pressure_look(struct unit *unit, uint64_t now_usec);

/* Whether pressure on the unit is of any interest: it has an agent, and is not off. */
bool pressure_concerns(const struct unit *unit);

bool pressure_is_on(const struct unit *unit, uint64_t now_usec);

/* After it was decided: says so where the excess is live and no trim can help. */
void pressure_tell(struct unit *unit, uint64_t now_usec);
