/* SPDX-License-Identifier: MIT */
/*
 * cmocka with what it needs before it, and random numbers that are the same on every machine. For tests alone.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct check_random {
        uint64_t state;
};

static inline struct check_random check_seed(uint64_t seed) {
        return (struct check_random){ .state = seed };
}

/* splitmix64. */
static inline uint64_t check_next(struct check_random *random) {
        uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static inline uint64_t check_below(struct check_random *random, uint64_t limit) {
        return check_next(random) % limit;
}
