/* SPDX-License-Identifier: MIT */
/* org.memguard1.Manager.Advise(): for everyone. Layer: daemon. */
#include "core/advise.h"
#include "daemon/advice.h"
#include "daemon/bus_server.h"
#include "daemon/tick.h"
#include "host/bus_api.h"

static void put_advice(struct dict *dict, const struct mg_advice *advice) {
        char text[MG_ADVICE_TEXT_MAX];

        dict_begin(dict);
        dict_string(dict, "kind", advice_kind_to_string(advice->kind));
        dict_string(dict, "confidence", confidence_to_string(advice->confidence));
        dict_u64(dict, "gain_bytes", advice->gain_bytes);
        dict_u64(dict, "value", advice->value > 0 ? advice->value : MG_UNKNOWN);
        dict_string(dict, "text", advise_text(advice, text));
        dict_end(dict);
}

static void put_all(struct dict *dict, struct unit *unit) {
        struct mg_advice advice[MG_ADVICE_MAX];
        struct mg_advice_facts facts;
        struct mg_unit_sample sample;

        tick_fill_sample(unit, &sample);
        advice_facts(unit, &facts);
        size_t n = advise_unit(
                        &unit->config, &sample, &unit->policy, &unit->decision, &facts, advice);
        for (size_t i = 0; i < n; i++)
                put_advice(dict, &advice[i]);
}

int bus_advise(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        MG_CLEANUP(bus_drop_reply) struct dict dict = bus_begin_list(call, "a{sv}");
        struct unit *unit = NULL;
        const char *name;
        int r = sd_bus_message_read(call, "s", &name);

        if (r >= 0)
                r = bus_find_unit(userdata, name, error, &unit);
        if (r < 0)
                return r;
        if (!unit->decided)
                return sd_bus_error_setf(
                                error, MG_BUS_ERROR_NOT_NOW,
                                "%s has not been measured yet: ask again after the next tick",
                                name);
        put_all(&dict, unit);
        dict_end(&dict);
        return bus_send_reply(&dict);
}
