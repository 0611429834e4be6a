/* SPDX-License-Identifier: MIT */
/*
 * What the system bus is told of units by itself: that they have come, gone or changed. Layer: daemon.
 *
 * Compared once a tick, so a unit has at most one signal a tick, and a tick in which nothing changed sends and allocates nothing.
 * Clients of the private socket get none: nobody there could say that he wants them. A bus that does not take what it
 * is sent is left and come back to, when its clients begin anew: no signal is ever left out in silence.
 */
#include <stdlib.h>

#include "base/macros.h"
#include "daemon/bus_server.h"
#include "daemon/journal.h"
#include "host/bus_api.h"

/* Some kilobytes each. A thousand units that change at once are less than what the bus daemon takes in at a time. */
#define UNSENT_MAX 4096

_Static_assert(_MG_REASON_MAX <= UINT8_MAX, "struct unit_shown keeps enums in bytes");

static struct unit_shown look(const struct unit *unit) {
        return (struct unit_shown){
                .announced = true,
                .paused = unit->paused || unit->manager->paused,
                .breaker = unit->policy.breaker_open,
                .mode = (uint8_t) unit->config.mode,
                .verdict = (uint8_t) unit->policy.verdict.verdict,
                .reason = (uint8_t) (unit->decided ? unit->decision.reason : _MG_REASON_MAX),
                .trims = (uint32_t) unit->policy.trims,
                .last_trim_usec = unit->last_round_wall_usec,
        };
}

#define PROPERTIES_MAX 9

static void list_changes(
                const struct unit_shown *before,
                const struct unit_shown *now,
                const char *ret_names[static PROPERTIES_MAX]) {
        const struct {
                const char *name;
                bool changed;
        } properties[] = {
                { "Mode", before->mode != now->mode },
                { "Paused", before->paused != now->paused },
                { "Breaker", before->breaker != now->breaker },
                { "Verdict", before->verdict != now->verdict },
                { "Reason", before->reason != now->reason },
                { "Trims", before->trims != now->trims },
                { "TrimmedBytes", before->trims != now->trims },
                { "LastTrim", before->last_trim_usec != now->last_trim_usec },
        };
        size_t n = 0;

        _Static_assert(MG_ELEMENTS(properties) < PROPERTIES_MAX, "room for the NULL");
        for (size_t i = 0; i < MG_ELEMENTS(properties); i++)
                if (properties[i].changed)
                        ret_names[n++] = properties[i].name;
        ret_names[n] = NULL;
}

/* Before anything is put on its queue. Returns whether the bus can be told. */
static bool takes_signals(struct bus_server *server) {
        uint64_t unsent = 0;

        if (!server->system_ready)
                return false;
        (void) sd_bus_get_n_queued_write(server->system, &unsent);
        if (unsent <= UNSENT_MAX)
                return true;
        journal_log(LOG_DEBUG, NULL, "the system bus does not take what it is sent: left");
        bus_system_leave(server);
        return false;
}

static void free_text(char **text) {
        free(*text);
}

/* For want of memory nothing is sent, and the next tick tries again. */
static void tell_unit(struct bus_server *server, struct unit *unit) {
        MG_CLEANUP(free_text) char *path = NULL;
        const char *names[PROPERTIES_MAX];
        struct unit_shown now = look(unit);
        int r;

        list_changes(&unit->shown, &now, names);
        if (unit->shown.announced && !names[0])
                return;
        if (!takes_signals(server) || bus_unit_path(unit, &path) < 0)
                return;
        if (unit->shown.announced)
                r = sd_bus_emit_properties_changed_strv(
                                server->system, path, MG_BUS_UNIT_INTERFACE, (char **) names);
        else
                r = sd_bus_emit_object_added(server->system, path);
        if (r >= 0)
                unit->shown = now;
}

void bus_tick(struct bus_server *server) {
        if (!server->system_ready)
                return;
        for (struct unit *u = unit_first(server->manager); u; u = unit_next(u))
                tell_unit(server, u);
}

/* Whoever waits for the name to come asks for everything then. */
void bus_signals_begin(struct bus_server *server) {
        server->system_ready = true;
        for (struct unit *u = unit_first(server->manager); u; u = unit_next(u))
                u->shown = look(u);
}

void bus_unit_gone(struct bus_server *server, struct unit *unit) {
        MG_CLEANUP(free_text) char *path = NULL;
        int r;

        if (!server || !unit->shown.announced || !takes_signals(server))
                return;
        r = bus_unit_path(unit, &path);
        if (r >= 0)
                r = sd_bus_emit_object_removed(server->system, path);
        if (r < 0)
                bus_system_leave(server);
}
