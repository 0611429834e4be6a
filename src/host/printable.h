/* SPDX-License-Identifier: MIT */
/*
 * Names that the kernel or a user made of any bytes, for readers that take UTF-8 alone (JSON) and for terminals. Layer: host.
 */
#pragma once

/*
 * TEXT with each byte that is no part of a printable character as <ff>, the way less(1) shows it, so that names that differ still
 * do; NULL: no memory.
 */
char *printable_copy(const char *text);
