/* SPDX-License-Identifier: MIT */
/*
 * The host's services and scopes as systemd knows them, over D-Bus: which have a cgroup, under which InvocationID, in
 * which state, with which watchdog. Layer: daemon; knows nothing of the manager.
 *
 * Every call is asynchronous; a bus or a systemd that hangs costs nothing but the news. A bus that is not
 * there, or goes away, is tried again with growing pauses (1 s to 1 min). Units of user managers are not on this bus.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "core/sample.h"
#include "host/why_no_agent.h"

struct systemd_units;

/* A loaded .service or .scope that has a control group. Strings are valid during the call. */
struct systemd_unit {
        const char *name;
        const char *cgroup_path;   /* "/system.slice/nginx.service" */
        const char *invocation_id; /* 32 hex digits, or "" */
        enum mg_activity activity;
        uint64_t watchdog_usec;    /* MG_UNKNOWN: none */
        enum mg_fact sets_agent;   /* Environment= has the agent in LD_PRELOAD */
        enum mg_fact forbids_unix; /* RestrictAddressFamilies= leaves AF_UNIX out */
};

struct systemd_units_callbacks {
        /* New, or something about it is different. */
        void (*changed)(void *userdata, const struct systemd_unit *unit);

        /* Stopped, or unloaded. */
        void (*removed)(void *userdata, const char *name);

        /* AVAILABLE: every unit has been told. Else the bus is gone and what was told may be out of date. Only on changes. */
        void (*available)(void *userdata, bool available);
};

/*
 * ADDRESS NULL: the system bus. Returns 0 also when there is no bus now: it is waited for. A callback may call
 * systemd_units_free() on nothing.
 */
int systemd_units_new(
                sd_event *event,
                const char *address,
                const struct systemd_units_callbacks *callbacks,
                void *userdata,
                struct systemd_units **ret_units);
struct systemd_units *systemd_units_free(struct systemd_units *units);

bool systemd_units_available(const struct systemd_units *units);
size_t systemd_units_count(const struct systemd_units *units);

/* ActiveState= and what follows from it; pure. *ret_activity untouched and false where a unit in this state has no processes. */
bool activity_from_state(const char *active_state, enum mg_activity *ret_activity);
