/* SPDX-License-Identifier: MIT */
/* A skip says why, and where everything has to work (MEMGUARD_MUST_WORK=1, as CI sets it) it is a failure. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline void skip_because(const char *reason) {
        const char *must_work = getenv("MEMGUARD_MUST_WORK");

        print_message("%s\n", reason);
        if (must_work && strcmp(must_work, "1") == 0)
                fail();
        skip();
}
