/* SPDX-License-Identifier: MIT */
/*
 * The learned state as text, so that it survives the daemon: KEY=VALUE lines, a version first and a checksum last. All
 * of struct mg_policy_state: what lasts over a restart of the daemon (runtime directory, keyed by the unit's identity). Layer: core;
 * pure: the caller owns buffers and files.
 */
#pragma once

#include "core/policy.h"

/* Room for any encoded state. */
#define MG_STATE_TEXT_MAX 8192

/*
 * Writes STATE into BUFFER. *ret_length has no NUL counted (one is written). Returns 0 or -EMSGSIZE. NOW is monotonic.
 */
int state_encode(
                const struct mg_policy_state *state,
                uint64_t now_usec,
                char *buffer,
                size_t size,
                size_t *ret_length);

/*
 * Reads what state_encode() wrote. Returns 0; -EBADMSG (damaged: cut, changed, a number out of range), -EPROTONOSUPPORT
 * (another version's), or -ESTALE (written later than NOW, so before a reboot: its times mean nothing).
 * *ret_state is touched on success alone.
 */
int state_decode(
                const char *text,
                size_t length,
                uint64_t now_usec,
                struct mg_policy_state *ret_state);
