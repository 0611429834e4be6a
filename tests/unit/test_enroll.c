/* SPDX-License-Identifier: MIT */
/* enroll without systemd: names, facts from properties, findings, texts, and files that are only ever ours. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "ctl/enroll.h"
#include "host/config.h"

#define AGENT "/usr/$LIB/libmemguard-preload.so"

static void test_names(void **state) {
        static const struct {
                const char *name, *unit;
                bool accepted;
        } cases[] = {
                { "nginx", "nginx.service", true },
                { "nginx.service", "nginx.service", true },
                { "worker@1", "worker@1.service", true },
                { "worker@a-b.service", "worker@a-b.service", true },
                { "redis.conf", "redis.conf.service", true },
                { "a\\x2db.service", "a\\x2db.service", true },
                { "worker@.service", "worker@.service", false },
                { "worker@", "worker@.service", false },
                { "system.slice", "system.slice", false },
                { "session-1.scope", "session-1.scope", false },
                { "ssh.socket", "ssh.socket", false },
                { "redis.process", "redis.process", false },
                { "memguard", "memguard.service", false },
                /* hostile */
                { "", "", false },
                { ".service", "", false },
                { "../../etc/passwd", "", false },
                { "a/b.service", "", false },
                { "a b.service", "", false },
                { "a]\nMode=trim.service", "", false },
                { "*.service", "", false },
                { "\xff.service", "", false },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                char unit[MG_UNIT_NAME_MAX];
                const char *why = enroll_check_name(cases[i].name, unit);
                if ((why == NULL) != cases[i].accepted || !mg_streq(unit, cases[i].unit))
                        fail_msg("\"%s\": \"%s\", %s", cases[i].name, unit, why ?: "accepted");
        }
        char longest[400], unit[MG_UNIT_NAME_MAX];
        memset(longest, 'a', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        assert_non_null(enroll_check_name(longest, unit));
        longest[255 - strlen(".service")] = '\0';
        assert_null(enroll_check_name(longest, unit));
        assert_int_equal(strlen(unit), 255);
}

static void test_join(void **state) {
        static const struct {
                const char *existing, *joined;
        } cases[] = {
                { NULL, AGENT },
                { "", AGENT },
                { " : ", AGENT },
                { "/a.so", "/a.so:" AGENT },
                { "/a.so /b.so", "/a.so:/b.so:" AGENT },
                { "/a.so::/b.so:", "/a.so:/b.so:" AGENT },
                { AGENT, AGENT },
                { "/old/libmemguard-preload.so:/a.so", "/a.so:" AGENT },
                { "libmemguard-preload.so.bak", "libmemguard-preload.so.bak:" AGENT },
                { "x", "x:" AGENT },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                char buffer[256];
                struct mg_text text;
                text_init(&text, buffer, sizeof(buffer));
                enroll_join_preload(&text, cases[i].existing, AGENT);
                assert_string_equal(buffer, cases[i].joined);
        }
}

static void test_library_directory(void **state) {
        static const struct {
                const char *libdir, *shown;
        } cases[] = {
                { "/usr/lib/x86_64-linux-gnu", "/usr/$LIB" },
                { "/usr/local/lib/aarch64-linux-gnu", "/usr/local/$LIB" },
                { "/usr/lib64", "/usr/$LIB" },
                { "/opt/memguard/lib64", "/opt/memguard/$LIB" },
                { "/usr/lib", "/usr/lib" },
                { "/usr/lib/memguard", "/usr/lib/memguard" },
                { "/usr/lib/x86_64-linux-gnu/memguard", "/usr/lib/x86_64-linux-gnu/memguard" },
                { "lib64", "lib64" },
                { "", "" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                char buffer[256];
                struct mg_text text;
                text_init(&text, buffer, sizeof(buffer));
                enroll_library_directory(&text, cases[i].libdir);
                assert_string_equal(buffer, cases[i].shown);
        }
}

static void test_environment(void **state) {
        char buffer[256];
        struct mg_text text;

        text_init(&text, buffer, sizeof(buffer));
        enroll_environment(&text, "X", "/a%b \"c\"\\d$LIB\ne");
        assert_string_equal(buffer, "Environment=\"X=/a%%b \\\"c\\\"\\\\d$LIB\\ne\"\n");
}

static void test_environment_files(void **state) {
        assert_true(enroll_file_sets("LD_PRELOAD=/a.so\n", "LD_PRELOAD"));
        assert_true(enroll_file_sets("A=1\n  LD_PRELOAD = x", "LD_PRELOAD"));
        assert_true(enroll_file_sets("\n\nLD_PRELOAD=", "LD_PRELOAD"));
        assert_false(enroll_file_sets("", "LD_PRELOAD"));
        assert_false(enroll_file_sets("#LD_PRELOAD=/a.so\n", "LD_PRELOAD"));
        assert_false(enroll_file_sets("LD_PRELOAD", "LD_PRELOAD"));
        assert_false(enroll_file_sets(
                        "LD_PRELOADED=1\nXLD_PRELOAD=2\nA=LD_PRELOAD=3\n", "LD_PRELOAD"));
}

static void test_launchers(void **state) {
        static const struct {
                const char *argv[8];
                const char *launcher;
        } cases[] = {
                { { "/usr/bin/pg_ctlcluster", "--skip-systemctl-redirect", "15-main", "start" },
                  "pg_ctlcluster" },
                { { "/usr/bin/sudo", "-u", "app", "/opt/app" }, "sudo" },
                { { "/bin/su", "-", "app", "-c", "run" }, "su" },
                { { "/bin/su", "-l", "app" }, "su" },
                { { "/bin/su", "app", "-c", "run - now" }, NULL },
                { { "/sbin/runuser", "-l", "app" }, "runuser -l" },
                { { "/sbin/runuser", "-u", "app", "--", "/opt/app" }, NULL },
                { { "/usr/bin/env", "-i", "A=1", "/opt/app" }, "env -i" },
                { { "/usr/bin/env", "A=1", "/opt/app", "-i" }, NULL },
                { { "/usr/bin/env", "cat", "-" }, NULL },
                { { "/usr/bin/setpriv", "--reset-env", "app" }, "setpriv --reset-env" },
                { { "/usr/bin/docker", "run", "redis" }, "docker" },
                { { "/bin/sh", "-c", "cd /x && exec su - app -c run" }, "su" },
                { { "/bin/sh", "-c", "exec /usr/bin/sudo -u app run" }, "sudo" },
                { { "/bin/bash", "-ec", "sumo; pseudo; result" }, NULL },
                { { "/opt/sudo-server" }, NULL },
                { { "sudo" }, "sudo" },
                { { "/opt/app", "sudo" }, NULL },
                { { "" }, NULL },
                { { NULL }, NULL },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                const char *launcher = enroll_launcher(cases[i].argv);
                if (!mg_streq(launcher ?: "-", cases[i].launcher ?: "-"))
                        fail_msg("case %zu: %s", i, launcher ?: "-");
        }
        assert_null(enroll_launcher(NULL));
}

/* Facts and findings from properties as systemd has them */

static const char ordinary_service[] =
                "{\"Type\": \"simple\", \"User\": \"\", \"MainPID\": 0, \"Environment\": [],"
                " \"ExecStart\": [[\"/usr/sbin/app\", [\"app\", \"-x\"], false, 0, 0, 0, 0, 0, 0, 0]],"
                " \"RestrictAddressFamilies\": [false, []], \"SystemCallFilter\": [false, []],"
                " \"RootDirectory\": \"\", \"RootImage\": \"\", \"PrivateUsers\": false,"
                " \"AppArmorProfile\": [false, \"\"], \"SELinuxContext\": [false, \"\"]}";

/* The ordinary service with the members of CHANGES; the findings of a glibc program. */
static void judge(const char *changes, struct enroll_findings *ret_findings) {
        MG_CLEANUP(json_decrefp) json_t *service = json_loads(ordinary_service, 0, NULL);
        MG_CLEANUP(json_decrefp) json_t *changed = json_loads(changes, 0, NULL);
        MG_CLEANUP(json_decrefp) json_t *unit = json_loads("{\"Id\": \"app.service\"}", 0, NULL);
        MG_CLEANUP(enroll_facts_done) struct enroll_facts facts = {};

        assert_non_null(service);
        assert_non_null(changed);
        json_object_update(service, changed);
        assert_int_equal(enroll_facts_take(&facts, unit, service, "/run/memguard/agent.sock"), 0);
        facts.started.elf = (struct mg_elf_facts){
                .is_program = true,
                .is_native = true,
                .libc = MG_LIBC_GLIBC,
        };
        enroll_judge(&facts, AGENT, ret_findings);
}

static void test_findings(void **state) {
        static const struct {
                const char *changes;
                enum enroll_weight weight;
                const char *words; /* of the only finding; NULL: none */
        } cases[] = {
                { "{}", ENROLL_NOTE, NULL },
                { "{\"Environment\": [\"LD_PRELOAD=/a.so\"]}", ENROLL_NOTE, "/a.so already" },
                { "{\"Environment\": [\"LD_PRELOAD=/usr/$LIB/libmemguard-preload.so\"]}",
                  ENROLL_NOTE, NULL },
                { "{\"Environment\": [\"LD_PRELOAD=/a.so\", \"LD_PRELOAD=\"]}", ENROLL_NOTE, NULL },
                { "{\"PassEnvironment\": [\"HOME\", \"LD_PRELOAD\"]}", ENROLL_WARNING,
                  "PassEnvironment=" },
                { "{\"UnsetEnvironment\": [\"LD_PRELOAD\"]}", ENROLL_BLOCKER, "UnsetEnvironment=" },
                { "{\"UnsetEnvironment\": [\"LD_PRELOAD=/a.so\"]}", ENROLL_BLOCKER,
                  "UnsetEnvironment=" },
                { "{\"UnsetEnvironment\": [\"LD_PRELOADED\"]}", ENROLL_NOTE, NULL },
                { "{\"RestrictAddressFamilies\": [true, [\"AF_INET\"]]}", ENROLL_BLOCKER,
                  "AF_UNIX" },
                { "{\"RestrictAddressFamilies\": [true, []]}", ENROLL_BLOCKER, "AF_UNIX" },
                { "{\"RestrictAddressFamilies\": [false, [\"AF_UNIX\"]]}", ENROLL_BLOCKER,
                  "AF_UNIX" },
                { "{\"RestrictAddressFamilies\": [true, [\"AF_INET\", \"AF_UNIX\"]]}", ENROLL_NOTE,
                  NULL },
                { "{\"RestrictAddressFamilies\": [false, [\"AF_INET\"]]}", ENROLL_NOTE, NULL },
                { "{\"SystemCallFilter\": [true, [\"read\", \"socket\"]]}", ENROLL_BLOCKER,
                  "connect(2)" },
                { "{\"SystemCallFilter\": [true, [\"connect\", \"socket\"]]}", ENROLL_BLOCKER,
                  "close_range(2)" },
                { "{\"SystemCallFilter\": [true, [\"clone\", \"close_range\", \"connect\", \"signalfd4\", \"socket\"]]}",
                  ENROLL_NOTE, NULL },
                { "{\"SystemCallFilter\": [false, [\"signalfd4\"]]}", ENROLL_BLOCKER,
                  "signalfd4(2)" },
                { "{\"SystemCallFilter\": [false, [\"clone\"]]}", ENROLL_BLOCKER, "clone(2)" },
                { "{\"SystemCallFilter\": [false, [\"socket\"]]}", ENROLL_BLOCKER, "socket(2)" },
                { "{\"RootDirectory\": \"/srv/jail\"}", ENROLL_BLOCKER, "/srv/jail" },
                { "{\"RootImage\": \"/srv/jail.raw\"}", ENROLL_BLOCKER, "/srv/jail.raw" },
                { "{\"TemporaryFileSystem\": [[\"/run\", \"ro\"]]}", ENROLL_BLOCKER,
                  "/run is hidden" },
                { "{\"TemporaryFileSystem\": [[\"/ru\", \"\"], [\"/run/memguardian\", \"\"]]}",
                  ENROLL_NOTE, NULL },
                { "{\"InaccessiblePaths\": [\"-/run/memguard/\"]}", ENROLL_BLOCKER, "hidden" },
                { "{\"InaccessiblePaths\": [\"/\"]}", ENROLL_BLOCKER, "hidden" },
                { "{\"PrivateUsers\": true}", ENROLL_NOTE, "PrivateUsers=" },
                { "{\"AppArmorProfile\": [false, \"app\"]}", ENROLL_WARNING, "\"app\"" },
                { "{\"Type\": \"oneshot\"}", ENROLL_WARNING, "oneshot" },
                { "{\"ExecStart\": [[\"/usr/bin/sudo\", [\"sudo\", \"x\"]]]}", ENROLL_BLOCKER,
                  "LD_PRELOAD='" },
                { "{\"ExecStart\": [[\"/usr/bin/pg_ctlcluster\", [\"x\"]]]}", ENROLL_BLOCKER,
                  "/etc/postgresql/" },
                /* hostile: a manager of another version, or another one altogether */
                { "{\"ExecStart\": []}", ENROLL_WARNING, "no ExecStart=" },
                { "{\"ExecStart\": 5, \"Environment\": {}, \"RestrictAddressFamilies\": [], \"SystemCallFilter\": null}",
                  ENROLL_WARNING, "no ExecStart=" },
                { "{\"RestrictAddressFamilies\": [1, \"AF_UNIX\"], \"Environment\": [1, null, \"\", \"LD_PRELOAD\"]}",
                  ENROLL_NOTE, NULL },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct enroll_findings findings;
                judge(cases[i].changes, &findings);
                if (findings.n != (cases[i].words != NULL))
                        fail_msg("%s: %zu findings, the first: %s", cases[i].changes, findings.n,
                                 findings.n ? findings.list[0].text : "-");
                if (!cases[i].words)
                        continue;
                if (findings.list[0].weight != cases[i].weight ||
                    !strstr(findings.list[0].text, cases[i].words))
                        fail_msg("%s: %s", cases[i].changes, findings.list[0].text);
                assert_int_equal(findings.n_blockers, cases[i].weight == ENROLL_BLOCKER);
        }
}

/* By name, by pattern, and not there. */
static void test_environment_file_property(void **state) {
        char path[] = "/tmp/memguard-test-XXXXXX", changes[256];
        struct enroll_findings findings;
        int fd = mkstemp(path);
        static const char *const suffixes[] = { "", "*", "?" };

        assert_true(fd >= 0 && write(fd, "A=1\nLD_PRELOAD=/x.so\n", 21) == 21);
        close(fd);
        for (size_t i = 0; i < MG_ELEMENTS(suffixes); i++) {
                snprintf(changes, sizeof(changes),
                         "{\"EnvironmentFiles\": [[\"/nonexistent\", true], [\"%s%s\", false], [5]]}",
                         path, suffixes[i]);
                judge(changes, &findings);
                assert_int_equal(findings.n_blockers, i < 2);
                if (i < 2)
                        assert_non_null(strstr(findings.list[0].text, path));
        }
        unlink(path);
}

static void test_programs(void **state) {
        static const struct {
                struct mg_elf_facts elf;
                bool gains_rights;
                const char *words;
        } cases[] = {
                { { .is_native = true, .libc = MG_LIBC_GLIBC }, false, NULL },
                { { .is_native = true, .is_static = true }, false, "statically" },
                { { .libc = MG_LIBC_GLIBC }, false, "architecture" },
                { { .is_native = true, .libc = MG_LIBC_MUSL, .interpreter = "/lib/ld-musl.so" },
                  false,
                  "/lib/ld-musl.so" },
                { { .is_native = true, .libc = MG_LIBC_GLIBC }, true, "file capabilities" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct enroll_findings findings;
                struct enroll_facts facts = {
                        .unit = "a.service",
                        .service_type = "simple",
                        .anon_bytes = MG_UNKNOWN,
                        .started = { .path = "/bin/a",
                                     .elf = cases[i].elf,
                                     .gains_rights = cases[i].gains_rights },
                };
                enroll_judge(&facts, AGENT, &findings);
                assert_int_equal(findings.n_blockers, cases[i].words != NULL);
                if (cases[i].words)
                        assert_non_null(strstr(findings.list[0].text, cases[i].words));
                /* What is running counts, not what started it. */
                facts.running = (struct enroll_program){
                        .path = "/bin/b",
                        .elf = { .is_native = true, .libc = MG_LIBC_GLIBC },
                };
                enroll_judge(&facts, AGENT, &findings);
                assert_int_equal(findings.n_blockers, 0);
        }
}

/* This program is as ordinary as they come, and a script is its interpreter. */
static void test_real_programs(void **state) {
        struct enroll_facts facts = { .service_user = "",
                                      .main_pid = (uint64_t) getpid(),
                                      .anon_bytes = MG_UNKNOWN };
        char script[] = "/tmp/memguard-test-XXXXXX";
        int fd = mkstemp(script);

        assert_true(fd >= 0 && write(fd, "#! /bin/sh -e\n", 14) == 14);
        close(fd);
        strcpy(facts.started.path, script);
        enroll_programs(&facts, true);
        assert_string_equal(facts.started.script, script);
        assert_string_equal(facts.started.path, "/bin/sh");
        assert_int_equal(facts.started.error, 0);
        assert_int_equal(facts.running.error, 0);
        assert_int_equal(facts.running.elf.libc, MG_LIBC_GLIBC);
        assert_false(facts.running.gains_rights);
        assert_true(facts.threads >= 1 && facts.anon_bytes != MG_UNKNOWN);
        unlink(script);
        facts = (struct enroll_facts){ .service_user = "nobody",
                                       .started = { .path = "/nonexistent" } };
        enroll_programs(&facts, false);
        assert_int_equal(facts.started.error, -ENOENT);
}

/* The section is one that memguard itself takes, and means what it says. */
static void test_texts(void **state) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        struct enroll_facts facts = { .unit = "app.service",
                                      .preload = "/a.so",
                                      .anon_bytes = 5 * MG_GIB };
        char buffer[ENROLL_TEXT_MAX];
        struct mg_unit_config unit;
        struct mg_origins origins;
        struct mg_text text;

        text_init(&text, buffer, sizeof(buffer));
        enroll_dropin(&text, &facts, AGENT);
        assert_non_null(strstr(buffer, "[Service]\n"));
        assert_non_null(strstr(buffer, "\nEnvironment=\"LD_PRELOAD=/a.so:" AGENT "\"\n"));
        assert_null(strstr(buffer, "\nEnvironment=MEMGUARD"));

        text_init(&text, buffer, sizeof(buffer));
        enroll_section(&text, &facts, "2026-11-30");
        assert_non_null(strstr(buffer, "5G"));
        assert_non_null(strstr(buffer, "#TrimAbove=1280M"));
        assert_int_equal(config_load_text("x.conf", buffer, text.length, &config, &problems), 0);
        assert_int_equal(problems.n_items, 0);
        config_unit(config, "app.service", NULL, &unit, &origins);
        assert_int_equal(unit.mode, MG_MODE_OBSERVE);
        assert_true(origins.own_section);
}

static void test_seal(void **state) {
        char buffer[1024], edited[1100];
        struct mg_text text;

        text_init(&text, buffer, sizeof(buffer));
        enroll_seal(&text, "a.service", "[Service]\nX=1\n");
        assert_int_equal(enroll_check_seal(buffer), ENROLL_UNTOUCHED);
        snprintf(edited, sizeof(edited), "%sY=2\n", buffer);
        assert_int_equal(enroll_check_seal(edited), ENROLL_EDITED);
        /* Every cut is an edit, or no longer ours. */
        for (size_t length = 0; length < text.length; length++) {
                memcpy(edited, buffer, length);
                edited[length] = '\0';
                assert_int_not_equal(enroll_check_seal(edited), ENROLL_UNTOUCHED);
        }
        assert_int_equal(enroll_check_seal(""), ENROLL_FOREIGN);
        assert_int_equal(enroll_check_seal("[Service]\n"), ENROLL_FOREIGN);
        assert_int_equal(enroll_check_seal("# checksum=0000000000000000\n"), ENROLL_FOREIGN);
}

static void append(const char *path, const char *line) {
        FILE *file = fopen(path, "a");

        assert_non_null(file);
        fputs(line, file);
        fclose(file);
}

static void test_files(void **state) {
        char root[] = "/tmp/memguard-test-XXXXXX", aside[PATH_MAX + 16], directory[PATH_MAX];
        struct enroll_paths paths;

        assert_non_null(mkdtemp(root));
        assert_int_equal(enroll_paths(root, "app@1.service", false, &paths), 0);
        snprintf(directory, sizeof(directory), "%s/etc/systemd/system/app@1.service.d", root);
        assert_memory_equal(paths.dropin, directory, strlen(directory));
        assert_string_equal(paths.dropin + strlen(directory), "/50-memguard.conf");
        assert_non_null(strstr(paths.section, "/memguard.ini.d/50-app@1.service.conf"));

        /* Written, written again, taken away with its directory. */
        assert_int_equal(enroll_remove(paths.dropin), -ENOENT);
        assert_int_equal(enroll_write(paths.dropin, "app@1.service", "[Service]\n"), 0);
        assert_int_equal(enroll_write(paths.dropin, "app@1.service", "[Service]\nA=1\n"), 0);
        assert_int_equal(enroll_remove(paths.dropin), 0);
        assert_int_equal(access(directory, F_OK), -1);

        /* An operator's own drop-in beside it, and its directory, stay. */
        assert_int_equal(enroll_write(paths.dropin, "app@1.service", "[Service]\n"), 0);
        snprintf(aside, sizeof(aside), "%s/override.conf", directory);
        append(aside, "[Service]\n");
        assert_int_equal(enroll_remove(paths.dropin), 0);
        assert_int_equal(access(aside, F_OK), 0);
        unlink(aside);

        /* Edited: never overwritten, never lost. */
        assert_int_equal(
                        enroll_write(paths.section, "app@1.service",
                                     "[app@1.service]\nMode=observe\n"),
                        0);
        append(paths.section, "TrimAbove=1G\n");
        assert_int_equal(enroll_write(paths.section, "app@1.service", "x"), -ESTALE);
        assert_int_equal(enroll_remove(paths.section), 1);
        snprintf(aside, sizeof(aside), "%s.withdrawn", paths.section);
        assert_int_equal(access(aside, F_OK), 0);
        assert_int_equal(access(paths.section, F_OK), -1);
        unlink(aside);

        /* Somebody else's: left alone by both. */
        append(paths.section, "[app@1.service]\n");
        assert_int_equal(enroll_write(paths.section, "app@1.service", "x"), -EEXIST);
        assert_int_equal(enroll_remove(paths.section), -EEXIST);
        assert_int_equal(access(paths.section, F_OK), 0);

        snprintf(aside, sizeof(aside), "rm -r %s", root);
        assert_int_equal(system(aside), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_join),
                cmocka_unit_test(test_library_directory),
                cmocka_unit_test(test_environment),
                cmocka_unit_test(test_environment_files),
                cmocka_unit_test(test_launchers),
                cmocka_unit_test(test_findings),
                cmocka_unit_test(test_programs),
                cmocka_unit_test(test_environment_file_property),
                cmocka_unit_test(test_real_programs),
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_seal),
                cmocka_unit_test(test_files),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
