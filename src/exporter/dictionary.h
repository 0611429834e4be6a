/* SPDX-License-Identifier: MIT */
/*
 * Walking a{sv} and aa{sv} of the bus. Keys that nobody wants and types that nobody expects are stepped over, so that an exporter
 * and a daemon of different versions understand each other. Layer: exporter.
 */
#pragma once

#include <stdint.h>
#include <systemd/sd-bus.h>

/* A value as it comes: TYPE 't', 'b' (as a number), 'x', 's', or 'a': then MESSAGE stands before the array. */
struct value {
        const char *key;
        char type;
        uint64_t number;
        int64_t whole;
        const char *text;
        const char *contents; /* of the array: "{sv}" or "a{sv}" */
        sd_bus_message *message;
};

/*
 * Hears each value of a dictionary. Returns 1 when it has read the array that the message stands before, 0 when not, or -errno,
 * which ends the walk.
 */
typedef int (*value_handler)(const struct value *value, void *userdata);

/* The dictionary that MESSAGE stands before. Returns 0 or -errno. */
int dictionary_walk(sd_bus_message *message, value_handler handler, void *userdata);

/* Hears of each dictionary of a list: MESSAGE stands before it, and the handler walks it. Returns as a value_handler. */
typedef int (*element_handler)(sd_bus_message *message, void *userdata);

int dictionary_list_walk(sd_bus_message *message, element_handler handler, void *userdata);
