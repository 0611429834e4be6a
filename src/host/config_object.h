/* SPDX-License-Identifier: MIT */
/*
 * What a configuration is made of, for those who build it and those who ask it. Layer: host.
 */
#pragma once

#include "host/config.h"
#include "host/config_files.h"
#include "host/config_section.h"

struct mg_config {
        struct mg_daemon_config daemon;
        struct mg_section *defaults;  /* [Default]; there even when no file has it */
        struct mg_section **sections; /* of units, each pattern once */
        size_t n_sections;
        struct mg_config_files files;
};
