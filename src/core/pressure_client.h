/* SPDX-License-Identifier: MIT */
/*
 * Programs that follow systemd's memory-pressure protocol, as far as it is a matter of rules: the token a client begins with, how many
 * may come, who is told of which pressure and when. Layer: core; pure.
 *
 * A token is "memguard 1 UNIT" and a line end (or NUL), all that a client ever says. It is no secret: it names the unit whose drop-in
 * gave it to the program, and counts only where the kernel says that the client is in that unit. So what a child in another
 * unit has inherited from its parent's environment is worth nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy.h"

/* "memguard 1 ", the longest name of a unit, the end. */
#define MG_PRESSURE_TOKEN_MAX (11 + 255 + 1)

/* The name in a token: not ended by a NUL. */
struct mg_pressure_token {
        const char *unit;
        size_t length;
};

/*
 * The first LENGTH bytes a client has sent, however they were cut on the way. Returns 1 and the token, which points into BYTES; 0: so far
 * it may become one; -EINVAL: it never will. A token is nothing but a token: what follows its end spoils it.
 */
int pressure_token_parse(const char *bytes, size_t length, struct mg_pressure_token *ret_token);

/* Whether it is UNIT's: its name, or the template that UNIT ("worker@7.service") is an instance of ("worker@.service"). */
bool pressure_token_is_of(const struct mg_pressure_token *token, const char *unit);

/* Connections there are when one more wants in. */
struct mg_pressure_crowd {
        size_t all;
        size_t of_user;
        size_t of_process;
        bool trusted; /* root, or the daemon's own user: no share of all is kept from it */
};

enum mg_pressure_admission {
        MG_PRESSURE_ADMIT,
        MG_PRESSURE_FULL, /* waits in the kernel's queue until another one leaves: quiet, while a hang-up would make it spin */
        MG_PRESSURE_TOO_MANY, /* of its process or its user: it is hung up on */
        _MG_PRESSURE_ADMISSION_MAX,
};
enum mg_pressure_admission pressure_client_admit(const struct mg_pressure_crowd *crowd, size_t max);

/* What a client is to be told of. */
enum mg_pressure_cause {
        MG_PRESSURE_OWN,   /* its unit is under pressure: what it would have watched itself */
        MG_PRESSURE_ABOVE, /* a slice above it is, or the host */
        MG_PRESSURE_BY_HAND,
        _MG_PRESSURE_CAUSE_MAX,
};
const char *pressure_cause_to_string(enum mg_pressure_cause cause); /* "own", "above", "by-hand" */

/*
 * Whether the clients of a unit are to hear of it. Its own pressure always: to follow memguard they have given up their own watch, and
 * what the kernel would have told them is no trim of ours. Pressure above only where the configuration lets the unit be trimmed
 * and is not PAUSED, and once in CooldownSec=: LAST_ABOVE_USEC is when it was last (0: never).
 */
bool pressure_unit_is_told(
                enum mg_pressure_cause cause,
                const struct mg_unit_config *config,
                bool paused,
                uint64_t last_above_usec,
                uint64_t now_usec);

/* Whether an operator's trim that is held for REASON goes to the unit's clients instead: there is no agent that could be asked. */
bool pressure_stands_in(enum mg_reason reason);

/* What the rule below needs of a client. */
struct mg_pressure_client {
        bool accepted;      /* its token was the right one */
        uint64_t told_usec; /* 0: never */
};

/*
 * Whether this client gets a byte now: UNREAD_BYTES are those it has not read yet, and one of them says all that another could. Events of
 * several places that come together are one, but an operator's hand is not held back.
 */
bool pressure_client_is_told(
                const struct mg_pressure_client *client,
                enum mg_pressure_cause cause,
                size_t unread_bytes,
                uint64_t now_usec);
