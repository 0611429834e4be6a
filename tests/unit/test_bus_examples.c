/* SPDX-License-Identifier: MIT */
/*
 * The examples of org.memguard1(5) are run as they stand there, by busctl on a private bus: each must succeed and say something
 * where it should. What needs a whole systemd (systemctl) or does not end by itself (monitor) is tried in the guest instead.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "bus_fixture.h"

static FILE *open_page(void) {
        char path[512];

        snprintf(path, sizeof(path), "%s/../../../man/org.memguard1.5.scd", getenv("TEST_DATA"));
        return fopen(path, "re");
}

/* Runs COMMAND; ANSWER gets the beginning of what it says. */
static int run_example(const char *command, char *answer, size_t size) {
        char output[] = "/tmp/memguard-busctl-XXXXXX";
        int fd = mkstemp(output), status;
        char line[1024];

        assert_true(fd >= 0);
        snprintf(line, sizeof(line), "%s >%s 2>&1", command, output);
        status = run_command(line);
        ssize_t n = read(fd, answer, size - 1);
        answer[n > 0 ? n : 0] = '\0';
        close(fd);
        unlink(output);
        return status;
}

static void expect_said(const char *command, const char *answer) {
        static const struct {
                const char *in_command, *in_answer;
        } wanted[] = {
                { "busctl tree", "/org/memguard1/unit/nginx_2eservice" },
                { "busctl introspect", ".TrimmedBytes" },
                { "GetManagedObjects", "\"/org/memguard1/unit/nginx_2eservice\"" },
                { "FreeableBytes Verdict", "t 18446744073709551615\ns \"learning\"" },
                { "ListUnits", "\"nginx.service\"" },
                { "GetHost", "\"hostname\"" },
                { "TrimUnit", "\"no-agent\"" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(wanted); i++)
                if (strstr(command, wanted[i].in_command) && !strstr(answer, wanted[i].in_answer))
                        fail_msg("%s: no %s in %s", command, wanted[i].in_answer, answer);
}

static void test_examples(void **state) {
        static char answer[65536];
        char command[512];
        unsigned n = 0;
        FILE *page = open_page();
        sd_bus *bus;

        assert_non_null(page);
        if (getuid() != 0 || run_example("busctl --version", answer, sizeof(answer)) != 0) {
                print_message("needs root, to have the name, and busctl\n");
                fclose(page);
                skip();
        }
        make_unit("nginx.service");
        bus = connect_system(NULL);
        wait_for_name(bus);
        sd_bus_close_unref(bus);
        while (fgets(command, sizeof(command), page)) {
                command[strcspn(command, "\n")] = '\0';
                if (strncmp(command, "busctl ", 7) != 0 || strstr(command, " monitor "))
                        continue;
                if (run_example(command, answer, sizeof(answer)) != 0)
                        fail_msg("%s: %s", command, answer);
                expect_said(command, answer);
                n++;
        }
        fclose(page);
        assert_true(n >= 8);
        assert_int_equal(manager->log_level, 7);
        assert_false(unit_find(manager, "nginx.service")->paused);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_examples, setup_system, teardown_system),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
