/* SPDX-License-Identifier: MIT */
/* Walking a{sv}; see dictionary.h. Layer: exporter. */
#include "exporter/dictionary.h"

#include <errno.h>
#include <stdbool.h>

static int read_basic(sd_bus_message *message, struct value *value) {
        int truth;
        int r;

        switch (value->type) {
        case SD_BUS_TYPE_UINT64:
                return sd_bus_message_read_basic(message, value->type, &value->number);
        case SD_BUS_TYPE_INT64:
                return sd_bus_message_read_basic(message, value->type, &value->whole);
        case SD_BUS_TYPE_STRING:
                return sd_bus_message_read_basic(message, value->type, &value->text);
        case SD_BUS_TYPE_BOOLEAN:
                r = sd_bus_message_read_basic(message, value->type, &truth);
                if (r >= 0)
                        value->number = truth != 0;
                return r;
        default:
                return sd_bus_message_skip(message, NULL);
        }
}

/* The message stands within the variant. */
static int hand_out(
                sd_bus_message *message,
                struct value *value,
                value_handler handler,
                void *userdata) {
        int r = sd_bus_message_peek_type(message, &value->type, &value->contents);

        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        if (value->type != SD_BUS_TYPE_ARRAY) {
                r = read_basic(message, value);
                return r < 0 ? r : handler(value, userdata);
        }
        r = handler(value, userdata);
        return r == 0 ? sd_bus_message_skip(message, NULL) : r;
}

static int walk_entry(sd_bus_message *message, value_handler handler, void *userdata) {
        struct value value = { .message = message };
        const char *contents;
        char type;
        int r = sd_bus_message_read_basic(message, SD_BUS_TYPE_STRING, &value.key);

        if (r >= 0)
                r = sd_bus_message_peek_type(message, &type, &contents);
        if (r >= 0)
                r = sd_bus_message_enter_container(message, SD_BUS_TYPE_VARIANT, contents);
        if (r >= 0)
                r = hand_out(message, &value, handler, userdata);
        return r < 0 ? r : sd_bus_message_exit_container(message);
}

static int leave_container(sd_bus_message *message) {
        int r = sd_bus_message_exit_container(message);

        return r < 0 ? r : 0;
}

int dictionary_walk(sd_bus_message *message, value_handler handler, void *userdata) {
        int r = sd_bus_message_enter_container(message, SD_BUS_TYPE_ARRAY, "{sv}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(message, SD_BUS_TYPE_DICT_ENTRY, "sv")) > 0) {
                r = walk_entry(message, handler, userdata);
                if (r >= 0)
                        r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : leave_container(message);
}

int dictionary_list_walk(sd_bus_message *message, element_handler handler, void *userdata) {
        int r = sd_bus_message_enter_container(message, SD_BUS_TYPE_ARRAY, "a{sv}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_at_end(message, false)) == 0) {
                r = handler(message, userdata);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : leave_container(message);
}
