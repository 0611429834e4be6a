/* SPDX-License-Identifier: MIT */
/*
 * The few macros everything shares: cleanup attributes, array sizes, the one
 * spelling of "unknown". Layer: base; libc only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A number nobody could read. Never 0: a missing memory.stat key is not an empty one. */
#define MG_UNKNOWN UINT64_MAX

#define MG_USEC_PER_MSEC UINT64_C(1000)
#define MG_USEC_PER_SEC  UINT64_C(1000000)
#define MG_USEC_PER_MIN  (UINT64_C(60) * MG_USEC_PER_SEC)
#define MG_USEC_PER_HOUR (UINT64_C(60) * MG_USEC_PER_MIN)
#define MG_KIB           UINT64_C(1024)
#define MG_MIB           (UINT64_C(1024) * MG_KIB)
#define MG_GIB           (UINT64_C(1024) * MG_MIB)

#define MG_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))
#define MG_PUBLIC          __attribute__((visibility("default")))
#define MG_PRINTF(f, a)    __attribute__((format(printf, f, a)))
#define MG_CLEANUP(f)      __attribute__((cleanup(f)))

#define MG_MIN(a, b)                       \
        ({                                 \
                __typeof__(a) mg_a = (a);  \
                __typeof__(b) mg_b = (b);  \
                mg_a < mg_b ? mg_a : mg_b; \
        })
#define MG_MAX(a, b)                       \
        ({                                 \
                __typeof__(a) mg_a = (a);  \
                __typeof__(b) mg_b = (b);  \
                mg_a > mg_b ? mg_a : mg_b; \
        })

/* Defines FUNCTIONp, for MG_CLEANUP(FUNCTIONp) on a local TYPE that FUNCTION ends. */
#define MG_DEFINE_CLEANUP(type, function)                                     \
        static inline __attribute__((unused)) void function##p(type *owned) { \
                if (*owned)                                                   \
                        function(*owned);                                     \
        }

/* Hands ownership on: the value of VARIABLE, which then holds NOTHING. */
#define MG_TAKE_AS(variable, nothing)                       \
        ({                                                  \
                __typeof__(variable) mg_taken = (variable); \
                (variable) = (nothing);                     \
                mg_taken;                                   \
        })
#define MG_TAKE(pointer) MG_TAKE_AS(pointer, NULL)
#define MG_TAKE_FD(fd)   MG_TAKE_AS(fd, -EBADF)

/* a - b, or 0 where b is larger. */
static inline uint64_t mg_sub_floor(uint64_t a, uint64_t b) {
        return a > b ? a - b : 0;
}

/* a + b, or the largest known number where that does not fit. */
static inline uint64_t mg_add_cap(uint64_t a, uint64_t b) {
        uint64_t sum;
        return __builtin_add_overflow(a, b, &sum) || sum == MG_UNKNOWN ? MG_UNKNOWN - 1 : sum;
}

/* a * numerator / denominator without overflow on the way; caps like mg_add_cap(). */
static inline uint64_t mg_scale(uint64_t a, uint64_t numerator, uint64_t denominator) {
        unsigned __int128 product = (unsigned __int128) a * numerator / denominator;
        return product >= MG_UNKNOWN ? MG_UNKNOWN - 1 : (uint64_t) product;
}

static inline int mg_streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}
