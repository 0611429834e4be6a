/* SPDX-License-Identifier: MIT */
/* See pressure_client.h. Layer: core; pure. */
#include "core/pressure_client.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"

#define TOKEN_PREFIX    "memguard 1 "
#define PREFIX_LENGTH   (sizeof(TOKEN_PREFIX) - 1)
#define NAME_MAX_LENGTH 255
_Static_assert(MG_PRESSURE_TOKEN_MAX == PREFIX_LENGTH + NAME_MAX_LENGTH + 1,
               "a token has another length");

/* An event loop or two in one program; more is no program that follows the protocol. */
#define CLIENTS_PER_PROCESS 4

/* What a user may always have, however few are admitted in all. */
#define CLIENTS_PER_USER_LEAST 16

/* A trigger fires once in two seconds; the unit's, its slice's and the host's within less than that are one event. */
#define TELL_INTERVAL_USEC MG_USEC_PER_SEC

static const char *const cause_names[] = {
        [MG_PRESSURE_OWN] = "own",
        [MG_PRESSURE_ABOVE] = "above",
        [MG_PRESSURE_BY_HAND] = "by-hand",
};
_Static_assert(MG_ELEMENTS(cause_names) == _MG_PRESSURE_CAUSE_MAX, "a cause has no name");

const char *pressure_cause_to_string(enum mg_pressure_cause cause) {
        return cause_names[cause];
}

/* What names of units are made of. */
static bool is_of_a_name(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               (c != '\0' && strchr(":-_.\\@", c));
}

int pressure_token_parse(const char *bytes, size_t length, struct mg_pressure_token *ret_token) {
        size_t end = PREFIX_LENGTH;

        if (memcmp(bytes, TOKEN_PREFIX, MG_MIN(length, PREFIX_LENGTH)) != 0)
                return -EINVAL;
        while (end < length && is_of_a_name(bytes[end]))
                end++;
        if (end > PREFIX_LENGTH + NAME_MAX_LENGTH)
                return -EINVAL;
        if (end >= length)
                return 0;
        if (end == PREFIX_LENGTH || (bytes[end] != '\n' && bytes[end] != '\0') || end + 1 != length)
                return -EINVAL;
        *ret_token = (struct mg_pressure_token){ bytes + PREFIX_LENGTH, end - PREFIX_LENGTH };
        return 1;
}

bool pressure_token_is_of(const struct mg_pressure_token *token, const char *unit) {
        const char *instance = strchr(unit, '@');
        const char *type = strrchr(unit, '.');
        size_t length;

        if (strlen(unit) == token->length && memcmp(unit, token->unit, token->length) == 0)
                return true;
        if (!instance || !type || type <= instance + 1)
                return false;
        /* As long as the template: up to the "@", and from the "." on. */
        length = (size_t) (instance + 1 - unit);
        return token->length == length + strlen(type) && memcmp(token->unit, unit, length) == 0 &&
               memcmp(token->unit + length, type, strlen(type)) == 0;
}

enum mg_pressure_admission pressure_client_admit(
                const struct mg_pressure_crowd *crowd,
                size_t max) {
        size_t of_user = MG_MAX(max / 4, (size_t) CLIENTS_PER_USER_LEAST);

        if (crowd->of_process >= CLIENTS_PER_PROCESS)
                return MG_PRESSURE_TOO_MANY;
        if (!crowd->trusted && crowd->of_user >= of_user)
                return MG_PRESSURE_TOO_MANY;
        return crowd->all >= max ? MG_PRESSURE_FULL : MG_PRESSURE_ADMIT;
}

bool pressure_unit_is_told(
                enum mg_pressure_cause cause,
                const struct mg_unit_config *config,
                bool paused,
                uint64_t last_above_usec,
                uint64_t now_usec) {
        if (cause != MG_PRESSURE_ABOVE)
                return true;
        if (paused || config->mode != MG_MODE_TRIM ||
            !(config->when & (MG_WHEN_ANY | MG_WHEN_PRESSURE)))
                return false;
        return last_above_usec == 0 ||
               mg_sub_floor(now_usec, last_above_usec) >= config->cooldown_usec;
}

bool pressure_stands_in(enum mg_reason reason) {
        return reason == MG_REASON_NO_AGENT || reason == MG_REASON_NO_STATISTICS ||
               reason == MG_REASON_CANNOT_TRIM;
}

bool pressure_client_is_told(
                const struct mg_pressure_client *client,
                enum mg_pressure_cause cause,
                size_t unread_bytes,
                uint64_t now_usec) {
        if (!client->accepted || unread_bytes > 0)
                return false;
        return cause == MG_PRESSURE_BY_HAND || client->told_usec == 0 ||
               mg_sub_floor(now_usec, client->told_usec) >= TELL_INTERVAL_USEC;
}
