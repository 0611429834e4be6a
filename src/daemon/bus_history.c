/* SPDX-License-Identifier: MIT */
/* GetHistory(): the rings of a unit as one series, and its last trims. Layer: daemon. */
#include "core/history.h"
#include "daemon/bus_server.h"
#include "host/clock.h"

/* The rings count monotonic time, a client reads a clock on the wall; one difference, so that steps stay steps. */
struct span_shown {
        uint64_t since_usec;
        uint64_t ago_usec; /* monotonic now */
        uint64_t wall_usec;
};

static uint64_t to_wall(const struct span_shown *shown, uint64_t monotonic_usec) {
        return mg_sub_floor(shown->wall_usec, mg_sub_floor(shown->ago_usec, monotonic_usec));
}

static void put_sample(
                struct dict *dict,
                const struct mg_history_sample *sample,
                uint64_t at_usec,
                uint64_t step_usec) {
        dict_begin(dict);
        dict_u64(dict, "at_usec", at_usec);
        dict_u64(dict, "step_usec", step_usec);
        dict_u64(dict, "anon_bytes", sample->anon_bytes);
        dict_u64(dict, "live_bytes", sample->live_bytes);
        dict_u64(dict, "retained_bytes", sample->retained_bytes);
        dict_u64(dict, "trim_above_bytes", sample->trim_above_bytes);
        dict_end(dict);
}

static void put_samples(
                struct dict *dict,
                const struct mg_history *history,
                const struct span_shown *shown) {
        struct mg_history_walk walk;
        struct mg_history_sample sample;
        enum mg_history_span span;
        uint64_t start_usec;

        history_walk_init(&walk);
        while (history_walk_next(history, &walk, &sample, &span, &start_usec)) {
                uint64_t at_usec = to_wall(shown, start_usec);

                if (at_usec + history_step_usec(span) > shown->since_usec)
                        put_sample(dict, &sample, at_usec, history_step_usec(span));
        }
}

static void put_trim(struct dict *dict, const struct mg_history_trim *trim, uint64_t at_usec) {
        dict_begin(dict);
        dict_u64(dict, "at_usec", at_usec);
        dict_string(dict, "result", outcome_result_to_string(trim->result));
        dict_string(dict, "reason", reason_to_string(trim->reason));
        dict_u64(dict, "before_bytes", trim->before_bytes);
        dict_u64(dict, "after_bytes", trim->after_bytes);
        dict_u64(dict, "gain_bytes", trim->gain_bytes);
        dict_u64(dict, "expected_bytes", trim->expected_bytes);
        dict_u64(dict, "duration_usec", trim->duration_usec);
        dict_u64(dict, "pause_usec", trim->pause_usec);
        dict_end(dict);
}

static void put_trims(
                struct dict *dict,
                const struct mg_history *history,
                const struct span_shown *shown) {
        struct mg_history_trim trim;

        for (size_t age = MG_HISTORY_TRIMS; age-- > 0;) {
                if (!history_get_trim(history, age, &trim))
                        continue;
                uint64_t at_usec = to_wall(shown, trim.ended_usec);
                if (at_usec >= shown->since_usec)
                        put_trim(dict, &trim, at_usec);
        }
}

static void put_history(struct dict *dict, const struct unit *unit, uint64_t since_usec) {
        const struct manager *manager = unit->manager;
        const struct mg_history *history = &unit->history;
        struct span_shown shown = {
                .since_usec = since_usec,
                .ago_usec = manager_now(manager),
                .wall_usec = clock_wall_usec(),
        };

        dict_begin(dict);
        dict_string(dict, "unit", unit->name);
        dict_u64(dict, "interval_usec", manager->settings.interval_usec);
        dict_u64(dict, "history_bytes", sizeof(*history));
        dict_u64(dict, "trims_forgotten", mg_sub_floor(history->n_rounds, MG_HISTORY_TRIMS));
        dict_list_begin(dict, "samples");
        put_samples(dict, history, &shown);
        dict_list_end(dict);
        dict_list_begin(dict, "trims");
        put_trims(dict, history, &shown);
        dict_list_end(dict);
        dict_end(dict);
}

int bus_get_history(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        MG_CLEANUP(bus_drop_reply) struct dict dict = bus_begin_reply(call);
        struct unit *unit = NULL;
        uint64_t since_usec;
        const char *name;
        int r = sd_bus_message_read(call, "st", &name, &since_usec);

        if (r >= 0)
                r = bus_find_unit(userdata, name, error, &unit);
        if (r < 0)
                return r;
        put_history(&dict, unit, since_usec);
        return bus_send_reply(&dict);
}
