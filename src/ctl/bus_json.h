/* SPDX-License-Identifier: MIT */
/*
 * A D-Bus reply as JSON: dictionaries become objects, arrays and structures arrays, numbers integers. Numbers beyond what
 * JSON readers hold exactly (above INT64_MAX) become null, as unknown ones do. Layer: ctl.
 */
#pragma once

#include <jansson.h>
#include <systemd/sd-bus.h>

/* The first value of MESSAGE, or NULL when it has none. The caller owns *ret_json. Returns 0 or negative errno. */
int bus_to_json(sd_bus_message *message, json_t **ret_json);
