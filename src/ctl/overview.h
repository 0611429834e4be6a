/* SPDX-License-Identifier: MIT */
/* What status and top both say of the host and its units. Layer: ctl; needs no terminal. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define HOST_LINE_MAX 512

/* The daemon and its host in one line, from GetHost(). Returns BUFFER. */
const char *host_line(const json_t *host, char *buffer, size_t size);

/* Adds to each unit the two cells that are made of several members: shown_agents, shown_mode. */
void units_add_shown(json_t *units);
