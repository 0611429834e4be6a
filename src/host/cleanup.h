/* SPDX-License-Identifier: MIT */
/* For MG_CLEANUP(freep) on a local that malloc() made. Layer: host. */
#pragma once

#include <stdlib.h>

static inline void freep(void *owned) {
        free(*(void **) owned);
}
