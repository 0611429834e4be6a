/* SPDX-License-Identifier: MIT */
/*
 * Writing a{sv} into a message: what is unknown is left out, what is not UTF-8 is made so, and the first error sticks,
 * so that callers check once, at the end. Layer: daemon.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

struct dict {
        sd_bus_message *message;
        int error; /* 0, or the first negative errno */
};

void dict_begin(struct dict *dict);
void dict_end(struct dict *dict);

void dict_string(struct dict *dict, const char *key, const char *value); /* NULL: left out */
void dict_u64(struct dict *dict, const char *key, uint64_t value);       /* MG_UNKNOWN: left out */
void dict_i64(struct dict *dict, const char *key, int64_t value);
void dict_bool(struct dict *dict, const char *key, bool value);

/* KEY's value is a dictionary: dict_*() calls, then dict_nested_end(). */
void dict_nested_begin(struct dict *dict, const char *key);
void dict_nested_end(struct dict *dict);

/* KEY's value is a list of dictionaries: each within dict_begin() and dict_end(), then dict_list_end(). */
void dict_list_begin(struct dict *dict, const char *key);
void dict_list_end(struct dict *dict);

/* KEY's value is a list of strings: dict_item() each. */
void dict_strings_begin(struct dict *dict, const char *key);
void dict_item(struct dict *dict, const char *value);
void dict_strings_end(struct dict *dict);

/* Pure. */
bool utf8_is_clean(const char *text);
