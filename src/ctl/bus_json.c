/* SPDX-License-Identifier: MIT */
/* From sd-bus to jansson, whatever the types. Layer: ctl. */
#include "ctl/bus_json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

/* Deeper than any reply of ours: a unit holds dictionaries in lists in dictionaries. */
#define NESTING_MAX 8

static int read_value(sd_bus_message *message, unsigned depth, json_t **ret_json);

static json_t *json_from_u64(uint64_t value) {
        return value > INT64_MAX ? json_null() : json_integer((json_int_t) value);
}

static int read_basic(sd_bus_message *message, char type, json_t **ret_json) {
        union {
                const char *string;
                int boolean;
                uint8_t byte;
                int16_t i16;
                uint16_t u16;
                int32_t i32;
                uint32_t u32;
                int64_t i64;
                uint64_t u64;
                double number;
        } value;

        int r = sd_bus_message_read_basic(message, type, &value);
        if (r < 0)
                return r;
        switch (type) {
        case SD_BUS_TYPE_STRING:
        case SD_BUS_TYPE_OBJECT_PATH:
        case SD_BUS_TYPE_SIGNATURE:
                *ret_json = json_string(value.string);
                break;
        case SD_BUS_TYPE_BOOLEAN:
                *ret_json = json_boolean(value.boolean);
                break;
        case SD_BUS_TYPE_BYTE:
                *ret_json = json_integer(value.byte);
                break;
        case SD_BUS_TYPE_INT16:
                *ret_json = json_integer(value.i16);
                break;
        case SD_BUS_TYPE_UINT16:
                *ret_json = json_integer(value.u16);
                break;
        case SD_BUS_TYPE_INT32:
                *ret_json = json_integer(value.i32);
                break;
        case SD_BUS_TYPE_UINT32:
                *ret_json = json_integer(value.u32);
                break;
        case SD_BUS_TYPE_INT64:
                *ret_json = json_integer(value.i64);
                break;
        case SD_BUS_TYPE_UINT64:
                *ret_json = json_from_u64(value.u64);
                break;
        case SD_BUS_TYPE_DOUBLE:
                *ret_json = json_real(value.number);
                break;
        default:
                return -EOPNOTSUPP;
        }
        return *ret_json ? 0 : -ENOMEM;
}

static int read_dictionary_entry(sd_bus_message *message, unsigned depth, json_t *object) {
        const char *key;
        json_t *value = NULL;

        int r = sd_bus_message_read_basic(message, SD_BUS_TYPE_STRING, &key);
        if (r < 0)
                return r;
        r = read_value(message, depth, &value);
        if (r < 0)
                return r;
        return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

static int read_dictionary(sd_bus_message *message, unsigned depth, json_t **ret_json) {
        MG_CLEANUP(json_decrefp) json_t *object = json_object();
        const char *contents;
        char type;
        int r;

        if (!object)
                return -ENOMEM;
        while ((r = sd_bus_message_peek_type(message, &type, &contents)) > 0) {
                r = sd_bus_message_enter_container(message, type, contents);
                if (r < 0)
                        return r;
                r = read_dictionary_entry(message, depth, object);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        *ret_json = MG_TAKE(object);
        return 0;
}

static int read_list(sd_bus_message *message, unsigned depth, json_t **ret_json) {
        MG_CLEANUP(json_decrefp) json_t *list = json_array();
        int r;

        if (!list)
                return -ENOMEM;
        while ((r = sd_bus_message_at_end(message, false)) == 0) {
                json_t *value = NULL;
                r = read_value(message, depth, &value);
                if (r < 0)
                        return r;
                if (json_array_append_new(list, value) < 0)
                        return -ENOMEM;
        }
        if (r < 0)
                return r;
        *ret_json = MG_TAKE(list);
        return 0;
}

static int read_container(
                sd_bus_message *message,
                char type,
                const char *contents,
                unsigned depth,
                json_t **ret_json) {
        int r = sd_bus_message_enter_container(message, type, contents);
        if (r < 0)
                return r;
        if (type == SD_BUS_TYPE_VARIANT)
                r = read_value(message, depth, ret_json);
        else if (type == SD_BUS_TYPE_ARRAY && contents[0] == SD_BUS_TYPE_DICT_ENTRY_BEGIN)
                r = read_dictionary(message, depth, ret_json);
        else
                r = read_list(message, depth, ret_json);
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(message);
        if (r < 0) {
                json_decref(*ret_json);
                return r;
        }
        return 0;
}

static int read_value(sd_bus_message *message, unsigned depth, json_t **ret_json) {
        const char *contents;
        char type;

        if (depth == 0)
                return -ELOOP;
        int r = sd_bus_message_peek_type(message, &type, &contents);
        if (r < 0)
                return r;
        if (r == 0)
                return -EBADMSG;
        if (type == SD_BUS_TYPE_ARRAY || type == SD_BUS_TYPE_VARIANT || type == SD_BUS_TYPE_STRUCT)
                return read_container(message, type, contents, depth - 1, ret_json);
        return read_basic(message, type, ret_json);
}

int bus_to_json(sd_bus_message *message, json_t **ret_json) {
        int r = sd_bus_message_at_end(message, true);
        if (r < 0)
                return r;
        if (r > 0) {
                *ret_json = NULL;
                return 0;
        }
        /* Variants take a level of their own. */
        return read_value(message, 2 * NESTING_MAX, ret_json);
}
