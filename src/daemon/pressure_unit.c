/* SPDX-License-Identifier: MIT */
/* One unit under pressure: its limit's events, and the alert; see pressure.h. Layer: daemon. */
#include "daemon/pressure.h"

#include "base/file.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/unit.h"
#include "host/psi.h"

/* How long the journal is silent about the same unit. */
#define TELL_UNIT_USEC MG_USEC_PER_HOUR

/* memory.pressure has two lines of under 80 bytes. */
#define PRESSURE_TEXT_MAX 512

bool pressure_is_on(const struct unit *unit, uint64_t now_usec) {
        return now_usec < unit->pressure.until_usec;
}

static uint64_t read_full_avg10(const struct unit *unit) {
        char text[PRESSURE_TEXT_MAX];

        if (file_read_at(unit->cgroup.dir_fd, "memory.pressure", text, sizeof(text)) < 0)
                return MG_UNKNOWN;
        return psi_full_avg10_parse(text);
}

/* Far below the limit there is nothing to see, and each look costs five more files. */
static bool is_near_limit(const struct unit *unit) {
        const struct mg_memory *memory = &unit->memory;

        return unit->source == MG_SOURCE_CGROUP && memory->anon_bytes != MG_UNKNOWN &&
               pressure_is_short(memory->anon_bytes, memory->high_bytes);
}

void pressure_look(struct unit *unit, uint64_t now_usec) {
        struct unit_pressure *own = &unit->pressure;
        struct mg_pressure_reading reading;
        bool was_on = pressure_is_on(unit, now_usec);

        if (!pressure_concerns(unit) || !is_near_limit(unit) ||
            cgroup_limits(&unit->cgroup, &unit->memory) < 0) {
                own->has_reading = false;
                return;
        }
        reading = (struct mg_pressure_reading){
                .high_events = unit->memory.high_events,
                .pgscan = unit->memory.pgscan,
                .pgsteal = unit->memory.pgsteal,
                .full_permyriad = read_full_avg10(unit),
        };
        if (own->has_reading && pressure_is_poor_reclaim(&own->reading, &reading)) {
                own->until_usec = now_usec + PRESSURE_LASTS_USEC;
                if (!was_on)
                        journal_log(LOG_DEBUG, &(struct mg_journal_unit){ unit->name, unit->user },
                                    "memory.high is reached and reclaim gets nowhere");
        }
        own->reading = reading;
        own->has_reading = true;
}

void pressure_tell(struct unit *unit, uint64_t now_usec) {
        struct unit_pressure *own = &unit->pressure;
        const struct mg_account *account = &unit->decision.account;

        if (!pressure_is_live_over_limit(&unit->decision, &unit->memory) ||
            (own->told_usec > 0 && now_usec - own->told_usec < TELL_UNIT_USEC))
                return;
        own->told_usec = now_usec;
        journal_live_over_limit(&(struct mg_journal_live_over_limit){
                        .unit = unit_for_journal(unit),
                        .live_bytes = account->live_bytes,
                        .anon_bytes = account->anon_bytes,
                        .high_bytes = unit->memory.high_bytes,
        });
}
