/* SPDX-License-Identifier: MIT */
/*
 * What a fuzz_NAME.c defines, called by libFuzzer (option fuzz) or by replay.c (plain tests).
 * It aborts where a property does not hold; its return value is always 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
