/* SPDX-License-Identifier: MIT */
/* memguard.ini: which section wins, what is refused and in which words. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/macros.h"
#include "host/config.h"
#include "host/config_keys.h"

static struct mg_config *load(const char *text, struct mg_problems *problems) {
        struct mg_config *config = NULL;
        int r = config_load_text("t.ini", text, strlen(text), &config, problems);
        assert_true(r == 0 || r == -EINVAL);
        assert_int_equal(r == 0, config != NULL);
        assert_int_equal(r<0, problems->n_errors> 0);
        return config;
}

/* For texts that must be right. */
static struct mg_config *load_good(const char *text) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        char buffer[MG_PROBLEM_MAX];
        struct mg_config *config = load(text, &problems);

        if (problems.n_items > 0)
                fail_msg("%s", problem_format(&problems.items[0], buffer));
        return config;
}

static void test_defaults(void **state) {
        MG_CLEANUP(config_freep) struct mg_config *config = load_good("");
        struct mg_unit_config unit, expected;
        struct mg_origins origins;

        unit_config_defaults(&expected);
        config_unit(config, "nginx.service", "/system.slice/nginx.service", &unit, &origins);
        assert_int_equal(unit.mode, MG_MODE_OBSERVE);
        assert_int_equal(unit.trim_above_bytes, expected.trim_above_bytes);
        assert_int_equal(unit.cooldown_max_usec, expected.cooldown_max_usec);
        assert_int_equal(unit.jemalloc_background_thread, MG_LEAVE_ALONE);
        assert_false(origins.own_section);
        for (size_t key = 0; key < _MG_UNIT_KEY_MAX; key++)
                assert_null(origins.key[key].file);

        const struct mg_daemon_config *daemon = config_daemon(config);
        assert_int_equal(daemon->interval_usec, 5 * MG_USEC_PER_SEC);
        assert_int_equal(daemon->agent_timeout_usec, 10 * MG_USEC_PER_SEC);
        assert_int_equal(daemon->pressure_high_permyriad, 1000);
        assert_int_equal(daemon->max_concurrent_trims, 2);
        assert_int_equal(daemon->log_level, LOG_INFO);
        assert_false(daemon->paused);
}

static void test_every_key(void **state) {
        MG_CLEANUP(config_freep)
        struct mg_config *config = load_good(
                        "[Daemon]\nIntervalSec=2min 30s\nPaused=yes\nMaxConcurrentTrims=7\n"
                        "PressureHigh=12.5%\nAgentTimeoutSec=500ms\nLogLevel=debug\n"
                        "[x.service]\nMode=observe\nTrimAbove=1.5G\nMinGain=8M\nMaxPause=20ms\n"
                        "CooldownSec=90\nCooldownMaxSec=1h\nWhen=idle checkpoint\nTrimPad=64M\n"
                        "ArenaTops=no\nShrinkCaches=on\nStatistics=0\nJemallocBackgroundThread=true\n"
                        "[y.service]\nTrimAbove=20%\nJemallocBackgroundThread=\nWhen=pressure\n"
                        "[z.service]\nTrimAbove=50%  1G\n");
        const struct mg_daemon_config *daemon = config_daemon(config);
        struct mg_unit_config unit;

        assert_int_equal(daemon->interval_usec, 150 * MG_USEC_PER_SEC);
        assert_true(daemon->paused);
        assert_int_equal(daemon->max_concurrent_trims, 7);
        assert_int_equal(daemon->pressure_high_permyriad, 1250);
        assert_int_equal(daemon->agent_timeout_usec, 500000);
        assert_int_equal(daemon->log_level, LOG_DEBUG);

        config_unit(config, "x.service", NULL, &unit, NULL);
        assert_int_equal(unit.mode, MG_MODE_OBSERVE);
        assert_int_equal(unit.trim_above_bytes, 1536 * MG_MIB);
        assert_int_equal(unit.trim_above_permyriad, 0);
        assert_int_equal(unit.min_gain_bytes, 8 * MG_MIB);
        assert_int_equal(unit.max_pause_usec, 20000);
        assert_int_equal(unit.cooldown_usec, 90 * MG_USEC_PER_SEC);
        assert_int_equal(unit.cooldown_max_usec, MG_USEC_PER_HOUR);
        assert_int_equal(unit.when, MG_WHEN_IDLE | MG_WHEN_CHECKPOINT);
        assert_int_equal(unit.trim_pad_bytes, 64 * MG_MIB);
        assert_false(unit.arena_tops);
        assert_true(unit.shrink_caches);
        assert_false(unit.statistics);
        assert_int_equal(unit.jemalloc_background_thread, MG_YES);

        config_unit(config, "y.service", NULL, &unit, NULL);
        assert_int_equal(unit.mode, MG_MODE_TRIM);
        assert_int_equal(unit.trim_above_bytes, 0);
        assert_int_equal(unit.trim_above_permyriad, 2000);
        assert_int_equal(unit.jemalloc_background_thread, MG_LEAVE_ALONE);
        assert_int_equal(unit.when, MG_WHEN_PRESSURE);

        config_unit(config, "z.service", NULL, &unit, NULL);
        assert_int_equal(unit.trim_above_bytes, MG_GIB);
        assert_int_equal(unit.trim_above_permyriad, 5000);
}

/* Consent: Mode= of units with and without sections. */
static void test_mode(void **state) {
        static const struct {
                const char *text;
                const char *unit;
                enum mg_mode mode;
                unsigned line; /* of its origin; 0: built in */
                bool own;
        } cases[] = {
                { "", "a.service", MG_MODE_OBSERVE, 0, false },
                { "[Default]\nMode=off\n", "a.service", MG_MODE_OFF, 2, false },
                { "[Default]\nMode=trim\n", "a.service", MG_MODE_TRIM, 2, false },
                { "[a.service]\n", "a.service", MG_MODE_TRIM, 1, true },
                { "[a.service]\n", "b.service", MG_MODE_OBSERVE, 0, false },
                { "[a.service]\nMinGain=1M\n", "a.service", MG_MODE_TRIM, 1, true },
                { "[a.service]\nMode=observe\n", "a.service", MG_MODE_OBSERVE, 2, true },
                /* [Default]'s Mode is never inherited by a section of its own. */
                { "[Default]\nMode=observe\n[a.service]\n", "a.service", MG_MODE_TRIM, 3, true },
                { "[Default]\nMode=off\n[a*]\nMinGain=1M\n", "a.service", MG_MODE_TRIM, 3, true },
                /* A glob is a section of its own; what it says of Mode holds for the exact one too. */
                { "[*.service]\nMode=observe\n[a.service]\nMinGain=1M\n", "a.service",
                  MG_MODE_OBSERVE, 2, true },
                { "[*.service]\n[a.service]\nMode=off\n", "a.service", MG_MODE_OFF, 3, true },
                { "[a.service]\n[*.service]\n", "a.service", MG_MODE_TRIM, 1, true },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                MG_CLEANUP(config_freep) struct mg_config *config = load_good(cases[i].text);
                struct mg_unit_config unit;
                struct mg_origins origins;

                config_unit(config, cases[i].unit, NULL, &unit, &origins);
                if (unit.mode != cases[i].mode || origins.key[MG_KEY_MODE].line != cases[i].line ||
                    origins.own_section != cases[i].own)
                        fail_msg("case %zu: %s", i, cases[i].text);
        }
}

/* Which section decides MinGain=: its number says so. */
static void test_precedence(void **state) {
        static const struct {
                const char *text;
                uint64_t mib;
                unsigned line;
        } cases[] = {
                { "[Default]\nMinGain=1M\n", 1, 2 },
                { "[Default]\nMinGain=1M\n[*]\nMinGain=2M\n", 2, 4 },
                { "[*]\nMinGain=2M\n[Default]\nMinGain=1M\n", 2, 2 },
                { "[w@*.service]\nMinGain=3M\n[*]\nMinGain=2M\n", 3, 2 },
                { "[*]\nMinGain=2M\n[w@*.service]\nMinGain=3M\n", 3, 4 },
                /* more literal characters first, whatever the order */
                { "[w@1.*]\nMinGain=4M\n[*.service]\nMinGain=3M\n", 3, 4 },
                { "[w@[0-9].service]\nMinGain=4M\n[w@?.servic[a-z]]\nMinGain=3M\n", 4, 2 },
                { "[w@?.service]\nMinGain=4M\n[w@[!a-z].service]\nMinGain=3M\n", 3, 4 },
                /* later among equals */
                { "[w@?.service]\nMinGain=4M\n[?@1.service]\nMinGain=3M\n", 3, 4 },
                { "[?@1.service]\nMinGain=3M\n[w@?.service]\nMinGain=4M\n", 4, 4 },
                /* the exact name before all, the exact path before globs */
                { "[w@1.service]\nMinGain=5M\n[w@1.servic?]\nMinGain=3M\n", 5, 2 },
                { "[/s.slice/w@1.service]\nMinGain=6M\n[w@1.servic?]\nMinGain=3M\n", 6, 2 },
                { "[w@1.service]\nMinGain=5M\n[/s.slice/w@1.service]\nMinGain=6M\n", 5, 2 },
                { "[/s.slice/*]\nMinGain=7M\n[*]\nMinGain=3M\n", 7, 2 },
                { "[/*]\nMinGain=7M\n", 7, 2 },
                { "[/t.slice/*]\nMinGain=7M\n[Default]\nMinGain=1M\n", 1, 4 },
                /* the same section twice is one */
                { "[w@1.service]\nMinGain=5M\n[*]\n[w@1.service]\nTrimPad=1M\n", 5, 2 },
                /* a section that does not set the key does not hide it */
                { "[w@1.service]\nTrimPad=1M\n[w@*]\nMinGain=3M\n", 3, 4 },
                { "[w@1.service]\nTrimPad=1M\n[Default]\nMinGain=1M\n", 1, 4 },
                { "[other.service]\nMinGain=9M\n", 32, 0 },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                MG_CLEANUP(config_freep) struct mg_config *config = load_good(cases[i].text);
                struct mg_unit_config unit;
                struct mg_origins origins;

                config_unit(config, "w@1.service", "/s.slice/w@1.service", &unit, &origins);
                if (unit.min_gain_bytes != cases[i].mib * MG_MIB ||
                    origins.key[MG_KEY_MIN_GAIN].line != cases[i].line)
                        fail_msg("case %zu: %s", i, cases[i].text);
                if (cases[i].line > 0)
                        assert_string_equal(origins.key[MG_KEY_MIN_GAIN].file, "t.ini");
        }
}

static void test_patterns(void **state) {
        static const struct {
                const char *pattern, *unit, *path;
                bool matches;
        } cases[] = {
                { "nginx.service", "nginx.service", NULL, true },
                { "nginx.service", "nginx.services", NULL, false },
                { "nginx.service", "NGINX.service", NULL, false },
                { "*.service", "nginx.service", NULL, true },
                { "*.service", "x.scope", NULL, false },
                { "worker@*.service", "worker@a-b.service", NULL, true },
                { "worker@*.service", "worker.service", NULL, false },
                { "dev-disk\\x2d*.service", "dev-disk\\x2dby.service", NULL, true },
                { "dev-disk\\x2dby.service", "dev-disk\\x2dby.service", NULL, true },
                { "dev-disk\\x2d*.service", "dev-disk-by.service", NULL, false },
                { "a b (*).scope", "a b (c).scope", NULL, true },
                { "/kubepods.slice/*", "x.scope", "/kubepods.slice/burstable.slice/x.scope", true },
                { "/kubepods.slice/*", "x.scope", "/kubepods.slice", false },
                { "/kubepods.slice/*", "/kubepods.slice/x", NULL, false },
                { "/a.slice", "a.slice", "/a.slice", true },
                { "*", "/a", "/b", true },
                { "*", "a", NULL, true },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++)
                if (config_pattern_matches(cases[i].pattern, cases[i].unit, cases[i].path) !=
                    cases[i].matches)
                        fail_msg("case %zu: %s", i, cases[i].pattern);
}

/* One problem each, in these words. */
static void test_errors(void **state) {
        static const struct {
                const char *text;
                const char *problem;
        } cases[] = {
                { "[a.service]\nTrimAbov=1G\n",
                  "t.ini:2: [a.service] TrimAbov: unknown key, did you mean TrimAbove=?" },
                { "[a.service]\ntrimabove=1G\n",
                  "t.ini:2: [a.service] trimabove: unknown key, did you mean TrimAbove=?" },
                { "[a.service]\nCooldown=1s\n",
                  "t.ini:2: [a.service] Cooldown: unknown key, did you mean CooldownSec=?" },
                { "[a.service]\nXyzzy=1s\n",
                  "t.ini:2: [a.service] Xyzzy: unknown key, expected one of memguard.ini(5)" },
                { "[a.service]\nIntervalSec=1s\n",
                  "t.ini:2: [a.service] IntervalSec: unknown key, it belongs in [Daemon]" },
                { "[Daemon]\nMode=trim\n",
                  "t.ini:2: [Daemon] Mode: unknown key, it belongs in [Default] or a unit's section" },
                { "[Daemon]\nLogLevl=info\n",
                  "t.ini:2: [Daemon] LogLevl: unknown key, did you mean LogLevel=?" },
                { "[a.service]\nMode=Trim\n",
                  "t.ini:2: [a.service] Mode: expected trim, observe or off, got \"Trim\"" },
                { "[a.service]\nMode=\n",
                  "t.ini:2: [a.service] Mode: expected trim, observe or off, got \"\"" },
                { "[a.service]\nMode=trim # always\n",
                  "t.ini:2: [a.service] Mode: expected trim, observe or off, got \"trim # always\"" },
                { "[a.service]\n\n\nMaxPause=50\n",
                  "t.ini:4: [a.service] MaxPause: expected a time with its unit, above 0 and up to "
                  "1h, like 50ms, got \"50\"" },
                { "[a.service]\nMinGain=0\n",
                  "t.ini:2: [a.service] MinGain: expected a size of at least 4K, like 32M, got "
                  "\"0\"" },
                { "[a.service]\nTrimAbove=1G 2G\n",
                  "t.ini:2: [a.service] TrimAbove: expected a size, a percentage of live memory, "
                  "or both, like 256M 20%, got \"1G 2G\"" },
                { "[a.service]\nWhen=any idle\n",
                  "t.ini:2: [a.service] When: expected any, or one or more of idle, checkpoint, "
                  "pressure, got \"any idle\"" },
                { "[a.service]\nArenaTops=\033[31mred\xff\n",
                  "t.ini:2: [a.service] ArenaTops: expected yes or no, got \"?[31mred?\"" },
                { "[Daemon]\nPressureHigh=0%\n",
                  "t.ini:2: [Daemon] PressureHigh: expected a percentage above 0% and up to 100%, "
                  "like 10%, got \"0%\"" },
                { "[a.service]\nCooldownSec=6h\n",
                  "t.ini:2: [a.service] CooldownSec: expected CooldownSec= (6h) to be at most "
                  "CooldownMaxSec= (4h)" },
                { "[Default]\nCooldownSec=1h\n[a.service]\nCooldownMaxSec=90s\n",
                  "t.ini:4: [a.service] CooldownMaxSec: expected CooldownSec= (1h) to be at most "
                  "CooldownMaxSec= (90s)" },
                { "Mode=trim\n", "t.ini:1: expected a [SECTION] before the first key" },
                { "[nginx]\nMode=trim\n",
                  "t.ini:1: [nginx]: unknown section: expected Daemon, Default, a name or glob that "
                  "ends in .service, .scope or .process, or a cgroup path" },
                { "[default]\nMode=trim\n",
                  "t.ini:1: [default]: unknown section, did you mean [Default]?" },
                { "[Deamon]\n", "t.ini:1: [Deamon]: unknown section, did you mean [Daemon]?" },
                { "[a.slice]\n",
                  "t.ini:1: [a.slice]: slices are shown, never judged: expected a unit, or a "
                  "cgroup path like [/NAME.slice/*]" },
                { "[w@[0-9.service]\n",
                  "t.ini:1: [w@[0-9.service]: expected a \"]\" for each \"[\" of a glob" },
                { "[a.service\nMode=trim\n",
                  "t.ini:1: malformed section header: expected [NAME] and nothing behind it" },
                { "[a.service] x\nMode=trim\n",
                  "t.ini:1: malformed section header: expected [NAME] and nothing behind it" },
                { "[\n",
                  "t.ini:1: malformed section header: expected [NAME] and nothing behind it" },
                { "[]\n",
                  "t.ini:1: malformed section header: expected a name without blanks around it" },
                { "[ a.service ]\n",
                  "t.ini:1: malformed section header: expected a name without blanks around it" },
                { "[a.service]\nMode\n", "t.ini:2: expected KEY=VALUE, a [SECTION] or a comment" },
                { "[a.service]\nMode: trim\n",
                  "t.ini:2: expected KEY=VALUE, a [SECTION] or a comment" },
                { "[a.service]\n=trim\n", "t.ini:2: expected a key before \"=\"" },
                { "[a.service]\nMode ; x=y\n", "t.ini:2: expected KEY=VALUE before the comment" },
                { "[a.service]\nMode=trim\n  TrimAbove=1G\n",
                  "t.ini:3: indented line: expected a key at its start (a value cannot be continued)" },
                { "[a.service]\nMode=trim\n\tcontinued\n",
                  "t.ini:3: indented line: expected a key at its start (a value cannot be continued)" },
                { " [a.service]\n",
                  "t.ini:1: indented line: expected a key at its start (a value cannot be continued)" },
                { "[a.service]\nMode=trim\rTrimPad=1\n",
                  "t.ini:2: [a.service] Mode: expected trim, observe or off, got \"trim?TrimPad=1\"" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                MG_CLEANUP(problems_done) struct mg_problems problems = {};
                char buffer[MG_PROBLEM_MAX];
                struct mg_config *config = load(cases[i].text, &problems);

                assert_null(config);
                assert_int_equal(problems.n_errors, 1);
                assert_int_equal(problems.n_items, 1);
                assert_string_equal(problem_format(&problems.items[0], buffer), cases[i].problem);
        }
}

static void test_all_problems_at_once(void **state) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        struct mg_config *config =
                        load("[a.service]\nMode=x\nMode=trim\nMode=off\n[Nope]\nWhatever=1\nFoo\n"
                             "[Daemon]\nPaused=no\nPaused=yes\nLogLevel=loud",
                             &problems);

        assert_null(config);
        assert_int_equal(problems.n_errors, 3); /* line 2, 5, 11; nothing of what is below [Nope] */
        assert_int_equal(problems.n_items, 5);
        assert_int_equal(problems.items[0].line, 2);
        assert_int_equal(problems.items[1].line, 4);
        assert_int_equal(problems.items[1].severity, MG_SEVERITY_WARNING);
        assert_string_equal(
                        problems.items[1].text,
                        "[a.service] Mode: set again, line 3 no longer counts");
        assert_int_equal(problems.items[2].line, 5);
        assert_string_equal(
                        problems.items[3].text,
                        "[Daemon] Paused: set again, line 9 no longer counts");
        assert_int_equal(problems.items[4].line, 11);
}

/* A file of LENGTH-byte lines: the last one that fits, and the first that does not. */
static void test_line_length(void **state) {
        for (int length = 198; length <= 201; length++) {
                for (int kind = 0; kind < 4; kind++) {
                        MG_CLEANUP(problems_done) struct mg_problems problems = {};
                        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
                        char line[256], text[1024];
                        struct mg_unit_config unit;

                        memset(line, 'x', sizeof(line));
                        line[length] = '\0';
                        if (kind == 0)
                                memcpy(line, "# ", 2);
                        else if (kind == 1)
                                memcpy(line, "TrimPad=1M ;", 12);
                        else if (kind == 2)
                                memcpy(line, "; tail Mode=off ; x=y", 21);
                        else {
                                line[0] = '[';
                                memcpy(line + length - 9, ".service]", 9);
                        }
                        /* Without a newline at the end, and with CRLF before. */
                        snprintf(text, sizeof(text), "[a.service]\r\nMinGain=1M\r\n%s", line);
                        int r = config_load_text("t.ini", text, strlen(text), &config, &problems);
                        assert_int_equal(r, length <= 199 ? 0 : -EINVAL);
                        assert_int_equal(problems.n_items, length <= 199 ? 0 : 1);
                        if (length > 199) {
                                assert_int_equal(problems.items[0].line, 3);
                                assert_string_equal(
                                                problems.items[0].text,
                                                "line too long: expected at most 199 bytes");
                                continue;
                        }
                        config_unit(config, "a.service", NULL, &unit, NULL);
                        assert_int_equal(unit.mode, MG_MODE_TRIM);
                        assert_int_equal(unit.min_gain_bytes, MG_MIB);
                        assert_int_equal(unit.trim_pad_bytes, kind == 1 ? MG_MIB : 0);
                }
        }
}

/* inih keeps 49 characters of a section's name; two that differ later must not be one. */
static void test_long_section_names(void **state) {
        MG_CLEANUP(config_freep)
        struct mg_config *config = load_good(
                        "[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-1.service]\nMinGain=1M\n"
                        "[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-2.service]\nMinGain=2M\n");
        struct mg_unit_config unit;

        config_unit(config, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-1.service",
                    NULL, &unit, NULL);
        assert_int_equal(unit.min_gain_bytes, MG_MIB);
        config_unit(config, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-2.service",
                    NULL, &unit, NULL);
        assert_int_equal(unit.min_gain_bytes, 2 * MG_MIB);
}

static void test_odd_files(void **state) {
        static const struct {
                const char *text;
                size_t length;
                uint64_t mib; /* 0: refused */
        } cases[] = {
#define TEXT(string) string, sizeof(string) - 1
                { TEXT("\xef\xbb\xbf[a.service]\nMinGain=1M\n"), 1 },
                { TEXT("\xef\xbb\xbf# comment\r\n[a.service]\r\nMinGain=1M\r\n"), 1 },
                { TEXT("\n\xef\xbb\xbf[a.service]\nMinGain=1M\n"), 0 },
                { TEXT("[a.service]\nMinGain=1M"), 1 },
                { TEXT("[a.service]  ; why\nMinGain = 1M ; why\n"), 1 },
                { TEXT("[a.service]\n\n   \n\t\n ; c\n\t# d\nMinGain=1M\n   "), 1 },
                { TEXT("[a.service]\nMinGain\t=\t1M\t\n"), 1 },
                { TEXT("[a.service]\nMinGain=1M\0\n"), 0 },
                { TEXT("[a.service]\nMin\0Gain=1M\n"), 0 },
                { TEXT("[a.service\0]\nMinGain=1M\n"), 0 },
                { TEXT("[a.service]\n# \0\nMinGain=1M\n"), 0 },
                { TEXT("\0"), 0 },
                { TEXT("[a.service]\nMinGain=1M\n\x1a"), 0 },
                { TEXT("\xff\xfe[\0a\0]\0"), 0 },
                { TEXT("[a.service]\nMinGain=18446744073709551616\n"), 0 },
                { TEXT("[a.service]\nMinGain=16777216T\n"), 0 },
                { TEXT("[a.service]\nMinGain=-1M\n"), 0 },
                { TEXT("[a.service]\nMinGain=1 M\n"), 0 },
                { TEXT("[a.service]\nMinGain=\"1M\"\n"), 0 },
#undef TEXT
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                MG_CLEANUP(problems_done) struct mg_problems problems = {};
                MG_CLEANUP(config_freep) struct mg_config *config = NULL;
                struct mg_unit_config unit;
                int r = config_load_text(
                                "t.ini", cases[i].text, cases[i].length, &config, &problems);

                if (r != (cases[i].mib > 0 ? 0 : -EINVAL))
                        fail_msg("case %zu: %d", i, r);
                if (r < 0)
                        continue;
                config_unit(config, "a.service", NULL, &unit, NULL);
                assert_int_equal(unit.min_gain_bytes, cases[i].mib * MG_MIB);
        }
}

/* Every value that is written is read back as the same, and the table and the names agree. */
static void test_round_trip(void **state) {
        static const struct {
                enum mg_unit_key key;
                const char *written, *read;
        } cases[] = {
                { MG_KEY_MODE, "off", "off" },
                { MG_KEY_TRIM_ABOVE, "256M 20%", "20% 256M" },
                { MG_KEY_TRIM_ABOVE, "0", "0" },
                { MG_KEY_TRIM_ABOVE, "12.34%", "12.34%" },
                { MG_KEY_TRIM_ABOVE, "12.05%", "12.05%" },
                { MG_KEY_TRIM_ABOVE, "0.5%", "0.50%" },
                { MG_KEY_TRIM_ABOVE, "1536M", "1.5G" },
                { MG_KEY_TRIM_ABOVE, "4097", "4097" },
                { MG_KEY_MIN_GAIN, "2T", "2048G" },
                { MG_KEY_MAX_PAUSE, "50ms", "50ms" },
                { MG_KEY_MAX_PAUSE, "1500us", "1.5ms" },
                { MG_KEY_COOLDOWN, "90s", "1min 30s" },
                { MG_KEY_COOLDOWN, "1d", "24h" },
                { MG_KEY_WHEN, "idle pressure", "pressure idle" },
                { MG_KEY_JEMALLOC_BACKGROUND_THREAD, "", "" },
                { MG_KEY_JEMALLOC_BACKGROUND_THREAD, "no", "0" },
        };
        struct mg_unit_config unit;
        char buffer[64];

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                unit_config_defaults(&unit);
                assert_int_equal(
                                config_key_read(&unit_keys[cases[i].key], cases[i].read, &unit), 0);
                assert_string_equal(
                                unit_key_format(&unit, cases[i].key, buffer, sizeof(buffer)),
                                cases[i].written);
        }
        for (size_t key = 0; key < _MG_UNIT_KEY_MAX; key++) {
                struct mg_unit_config copy;

                assert_non_null(unit_keys[key].name);
                assert_non_null(unit_keys[key].expects);
                unit_config_defaults(&unit);
                memset(&copy, 0xa5, sizeof(copy));
                config_key_copy(&unit_keys[key], &unit, &copy);
                unit_key_format(&unit, (enum mg_unit_key) key, buffer, sizeof(buffer));
                assert_int_equal(config_key_read(&unit_keys[key], buffer, &copy), 0);
                char again[64];
                assert_string_equal(
                                unit_key_format(&copy, (enum mg_unit_key) key, again,
                                                sizeof(again)),
                                buffer);
        }
        assert_string_equal(unit_key_to_string(MG_KEY_COOLDOWN_MAX), "CooldownMaxSec");
}

/* What two sections say together is never a maximum under its minimum. */
static void test_cooldowns_meet(void **state) {
        MG_CLEANUP(config_freep)
        struct mg_config *config =
                        load_good("[*.service]\nCooldownMaxSec=10min\n[a*]\nCooldownSec=1h\n");
        struct mg_unit_config unit;

        config_unit(config, "a.service", NULL, &unit, NULL);
        assert_int_equal(unit.cooldown_usec, MG_USEC_PER_HOUR);
        assert_int_equal(unit.cooldown_max_usec, MG_USEC_PER_HOUR);
}

/* conf/memguard.ini with its keys uncommented: all of them, each with the default it has. */
static void test_shipped_file(void **state) {
        char path[512], text[16384], live[16384] = "", name[64];
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        struct mg_unit_config unit, expected;
        struct mg_daemon_config daemon;
        size_t keys = 0;

        snprintf(path, sizeof(path), "%s/../../../conf/memguard.ini", getenv("TEST_DATA"));
        assert_true(file_read_at(AT_FDCWD, path, text, sizeof(text)) > 0);
        config = config_free(load_good(text));
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
                bool is_key = sscanf(line, "#%63[A-Za-z]=", name) == 1 &&
                              line[1 + strlen(name)] == '=';
                keys += is_key;
                strcat(strcat(live, is_key ? line + 1 : line), "\n");
        }
        assert_int_equal(keys, MG_DAEMON_KEY_COUNT + _MG_UNIT_KEY_MAX);

        config = load_good(live);
        unit_config_defaults(&expected);
        config_unit(config, "a.service", NULL, &unit, NULL);
        for (size_t key = 0; key < _MG_UNIT_KEY_MAX; key++) {
                char have[64], want[64];
                assert_string_equal(
                                unit_key_format(&unit, (enum mg_unit_key) key, have, sizeof(have)),
                                unit_key_format(&expected, (enum mg_unit_key) key, want,
                                                sizeof(want)));
        }
        daemon_config_defaults(&daemon);
        for (size_t i = 0; i < MG_DAEMON_KEY_COUNT; i++) {
                char have[64], want[64];
                assert_string_equal(
                                config_key_write(
                                                &daemon_keys[i], config_daemon(config), have,
                                                sizeof(have)),
                                config_key_write(&daemon_keys[i], &daemon, want, sizeof(want)));
        }
}

static bool is_nginx(void *userdata, const char *pattern) {
        return config_pattern_matches(pattern, "nginx.service", "/system.slice/nginx.service");
}

static void test_unmatched(void **state) {
        MG_CLEANUP(config_freep)
        struct mg_config *config = load_good(
                        "[Default]\n[Daemon]\n[nginx.service]\n[ngin.service]\n[/system.slice/*]\n"
                        "[w@*.service]\n");
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        char buffer[MG_PROBLEM_MAX];

        config_warn_unmatched(config, is_nginx, NULL, &problems);
        assert_int_equal(problems.n_errors, 0);
        assert_int_equal(problems.n_items, 2);
        assert_string_equal(
                        problem_format(&problems.items[0], buffer),
                        "t.ini:4: [ngin.service]: matches no loaded unit");
        assert_int_equal(problems.items[1].line, 6);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_every_key),
                cmocka_unit_test(test_mode),
                cmocka_unit_test(test_precedence),
                cmocka_unit_test(test_patterns),
                cmocka_unit_test(test_errors),
                cmocka_unit_test(test_all_problems_at_once),
                cmocka_unit_test(test_line_length),
                cmocka_unit_test(test_long_section_names),
                cmocka_unit_test(test_odd_files),
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_cooldowns_meet),
                cmocka_unit_test(test_shipped_file),
                cmocka_unit_test(test_unmatched),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
