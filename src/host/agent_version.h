/* SPDX-License-Identifier: MIT */
/* Versions as an agent states its own in hello: a service runs the one it was started with for weeks. Layer: host; pure. */
#pragma once

/* Under 0, 0, above 0, as strcmp(): numbers by their value ("0.10.0" is later than "0.9.1"), the rest by its bytes. */
int agent_version_compare(const char *a, const char *b);
