/* SPDX-License-Identifier: MIT */
/*
 * Units, processes, decisions and trims as dictionaries: the names of src/host/bus_api.h. Layer: daemon. Each
 * writes one a{sv} (bus_processes() one for each process).
 */
#pragma once

#include "daemon/bus_dict.h"
#include "daemon/manager.h"
#include "daemon/trim.h"
#include "daemon/unit.h"

void bus_host(struct dict *dict, const struct manager *manager);
void bus_unit(struct dict *dict, struct unit *unit);

/* The members of "last_trim" and "allocators", within a dictionary or list that the caller has begun. */
void bus_last_trim(struct dict *dict, const struct unit *unit);
void bus_allocators(struct dict *dict, const struct unit *unit);

/* UNIT NULL: of all units. With those that never had an agent, as far as there is time. */
void bus_processes(struct dict *dict, struct manager *manager, const struct unit *unit);
void bus_explanation(struct dict *dict, const struct unit *unit);

/* SURVEY: what the unit's processes had to offer when the call came, for a trim that did not take place. */
void bus_trim_result(
                struct dict *dict,
                const struct trim_result *result,
                const struct mg_round_survey *survey);
