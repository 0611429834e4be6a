/* SPDX-License-Identifier: MIT */
/*
 * Where memguard's own parts are: as an option or the environment says, else beside this program (a build directory), else where
 * they are installed. Layer: replay.
 */
#pragma once

enum place {
        PLACE_MEMGUARDD,  /* $MEMGUARDD */
        PLACE_AGENT,      /* $MEMGUARD_PRELOAD */
        PLACE_TRIM_EVERY, /* $MEMGUARD_TRIM_EVERY_LIBRARY */
        _PLACE_MAX,
};

/* GIVEN (may be NULL) comes first. -ENOENT: nowhere. The caller frees *RET_PATH. */
int place_find(enum place place, const char *given, char **ret_path);

const char *place_name(enum place place); /* of the file, for messages */
