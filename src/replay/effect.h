/* SPDX-License-Identifier: MIT */
/*
 * Whether what a variant asks for is in effect, read back from the process itself: libraries from its maps, settings from its
 * environment. Layer: replay.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum effect {
        EFFECT_YES,
        EFFECT_NO,
        EFFECT_UNKNOWN, /* not readable, or the process is gone */
};

/* PATH is mapped into PID; by its file name, for a loader may have resolved links on the way. */
enum effect effect_library(pid_t pid, const char *path);

/* SETTING, NAME=VALUE, is in the environment that PID was executed with. */
enum effect effect_setting(pid_t pid, const char *setting);
