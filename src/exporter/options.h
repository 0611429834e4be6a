/* SPDX-License-Identifier: MIT */
/* The command line of memguard-exporter. Layer: exporter. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/command_line.h"

struct options {
        const char *runtime_directory; /* NULL: the usual place, and the system bus after it */
        const char *listen;            /* NULL: the service manager hands the socket over */
        uint64_t timeout_usec;
        uint64_t max_units;
        uint64_t max_processes;
};

enum options_verdict options_parse(struct options *ret_options, int argc, char **argv);
