/* SPDX-License-Identifier: MIT */
/* --since=: every form, and what is none. In UTC and in a zone that changes its clocks. */
#include "ctl/since.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/macros.h"
#include "check.h"

/* 2026-11-30 15:37:25 UTC */
#define NOW_SEC  UINT64_C(1796053045)
#define NOW      (NOW_SEC * MG_USEC_PER_SEC)
#define HOUR     UINT64_C(3600)
#define MIDNIGHT (NOW_SEC - 15 * HOUR - 37 * 60 - 25)

static void set_zone(const char *zone) {
        setenv("TZ", zone, 1);
        tzset();
}

static uint64_t seconds_of(const char *text) {
        uint64_t usec;

        if (since_parse(text, NOW, &usec) < 0)
                fail_msg("\"%s\" is not understood", text);
        return usec / MG_USEC_PER_SEC;
}

static void test_forms(void **state) {
        static const struct {
                const char *text;
                uint64_t seconds;
        } forms[] = {
                { "now", NOW_SEC },
                { "today", MIDNIGHT },
                { "yesterday", MIDNIGHT - 24 * HOUR },
                { "1h", NOW_SEC - HOUR },
                { "90", NOW_SEC - 90 },
                { "-1h", NOW_SEC - HOUR },
                { "-2h 30min", NOW_SEC - 2 * HOUR - 1800 },
                { "2min 30s ago", NOW_SEC - 150 },
                { "10min ago", NOW_SEC - 600 },
                { "@1796050000", 1796050000 },
                { "@0", 0 },
                { "15:00", MIDNIGHT + 15 * HOUR },
                { "00:00:01", MIDNIGHT + 1 },
                { "2026-11-30", MIDNIGHT },
                { "2026-11-30 15:37", NOW_SEC - 25 },
                { "2026-11-30 15:37:25", NOW_SEC },
                { "2026-11-29 23:59:59", MIDNIGHT - 1 },
                { "2026-11-30 15:37:25 UTC", NOW_SEC },
                { "1000000d", 0 },
        };

        set_zone("UTC");
        for (size_t i = 0; i < MG_ELEMENTS(forms); i++) {
                if (seconds_of(forms[i].text) != forms[i].seconds)
                        fail_msg("%s: %llu", forms[i].text,
                                 (unsigned long long) seconds_of(forms[i].text));
        }
}

/* What a date means follows from where the reader is, and from the day asked for, not from today. */
static void test_zone(void **state) {
        set_zone("CET-1CEST,M3.5.0,M10.5.0/3");
        assert_int_equal(seconds_of("2026-11-30 16:00"), NOW_SEC - 37 * 60 - 25);
        assert_int_equal(seconds_of("2026-11-30 15:00 UTC"), NOW_SEC - 37 * 60 - 25);
        assert_int_equal(seconds_of("2026-07-01"), 1782856800); /* summer: 22:00 UTC */
        assert_int_equal(seconds_of("today"), MIDNIGHT - HOUR);
        set_zone("UTC");
}

static void test_hostile(void **state) {
        static const char *const texts[] = {
                "",
                " ",
                "-",
                "ago",
                " ago",
                "soon",
                "1x",
                "1h ago ago",
                "@",
                "@-1",
                "@x",
                "@99999999999999999999",
                "2026-11-31",
                "2026-02-29",
                "2026-13-01",
                "2026-00-10",
                "26:00",
                "15:60",
                "15",
                "2026-11-30x",
                "2026-11-30 15:37:25 CET",
                " 15:00",
                "15:00 ",
                "2026-11-30T15:00",
                "--1h",
                "+1h",
                "1969-12-31",
                "UTC",
                "yesterday 1",
                "18446744073709551615y",
                "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
        };
        uint64_t usec = 7;

        set_zone("UTC");
        for (size_t i = 0; i < MG_ELEMENTS(texts); i++) {
                int r = since_parse(texts[i], NOW, &usec);
                if (mg_streq(texts[i], "15")) {
                        assert_int_equal(r, 0); /* seconds, as everywhere */
                        usec = 7;
                } else if (r != -EINVAL)
                        fail_msg("\"%s\": %d", texts[i], r);
        }
        assert_int_equal(usec, 7);
}

static void test_future(void **state) {
        uint64_t usec = 7;

        set_zone("UTC");
        assert_int_equal(since_parse("15:38", NOW, &usec), -ERANGE);
        assert_int_equal(since_parse("2027-01-01", NOW, &usec), -ERANGE);
        assert_int_equal(since_parse("@1796053046", NOW, &usec), -ERANGE);
        assert_int_equal(usec, 7);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_forms),
                cmocka_unit_test(test_zone),
                cmocka_unit_test(test_hostile),
                cmocka_unit_test(test_future),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
