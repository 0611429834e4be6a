/* SPDX-License-Identifier: MIT */
/* The verb run: all variants, round by round, so that a machine that drifts meets all alike. Layer: replay. */
#pragma once

#include "replay/options.h"

/* Makes OPTIONS's directory and runs everything. Returns 0, 1 when it was interrupted, or a negative errno, said already. */
int campaign_run(struct run_options *options);
