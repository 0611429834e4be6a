/* SPDX-License-Identifier: MIT */
/*
 * How far a name is from one that is known, for "did you mean". Layer: host; pure.
 */
#pragma once

/* From here on it is another word. */
#define MG_NAME_TOO_FAR 3

/*
 * 0: the same but for case. 1: one is the beginning of the other ("Cooldown" for "CooldownSec"). Else the slips of the keyboard
 * between the two, at most MG_NAME_TOO_FAR.
 */
unsigned name_distance(const char *name, const char *known);
