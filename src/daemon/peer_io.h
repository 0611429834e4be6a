/* SPDX-License-Identifier: MIT */
/* The event handlers of a connection, for the module that makes it. Layer: daemon. */
#pragma once

#include <stdint.h>
#include <systemd/sd-event.h>

int peer_on_io(sd_event_source *source, int fd, uint32_t events, void *userdata);
int peer_on_deadline(sd_event_source *source, uint64_t usec, void *userdata);
int peer_on_graveyard(sd_event_source *source, void *userdata);
