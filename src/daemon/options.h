/* SPDX-License-Identifier: MIT */
/*
 * What memguardd's command line says. The strings are argv's or literals; nothing is owned but the two paths that are
 * built. Layer: daemon.
 */
#pragma once

#include <stdbool.h>

#include "host/command_line.h"

enum source_choice {
        SOURCE_AUTO, /* the cgroup where it has memory.stat, else /proc */
        SOURCE_CGROUP,
        SOURCE_PROC,
        _SOURCE_CHOICE_MAX,
};

struct options {
        const char *config_file;       /* NULL: /etc/memguard.ini and its drop-ins */
        const char *runtime_directory; /* absolute or relative, as given */
        char *state_directory;         /* owned */
        const char *cgroup_root;       /* NULL: found by libcgroup */
        enum source_choice source;
        int log_level; /* syslog's; -1: the configuration's */
        bool by_hand;  /* --runtime-directory was given */
};

enum options_verdict options_parse(struct options *options, int argc, char **argv);
void options_done(struct options *options);
