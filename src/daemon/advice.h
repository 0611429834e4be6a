/* SPDX-License-Identifier: MIT */
/*
 * What core/advise.h has to be told of a unit's programs: gathered from the process that retains most. Layer: daemon.
 */
#pragma once

#include "core/advise.h"

struct unit;

void advice_facts(const struct unit *unit, struct mg_advice_facts *ret_facts);

/*
 * Pure. Whether OPTIONS, as an agent tells those of ALLOCATOR, has something an operator set for malloc: GLIBC_TUNABLES of other
 * parts of glibc are none of its settings. NULL: no options.
 */
bool advice_is_tuned(enum mg_advice_allocator allocator, const char *options);

/* Pure. Whether OPTIONS of a jemalloc say that its background threads run. */
bool advice_has_background_thread(const char *options);
