/* SPDX-License-Identifier: MIT */
/* D-Bus values as JSON: every type that systemd's properties have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/macros.h"
#include "ctl/bus_json.h"

/* Never spoken over: messages want a bus that has been started. */
static sd_bus *bus;

static int start_bus(void **state) {
        int fds[2];

        return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0 &&
                                               sd_bus_new(&bus) >= 0 &&
                                               sd_bus_set_fd(bus, fds[0], fds[0]) >= 0 &&
                                               sd_bus_start(bus) >= 0
                               ? 0
                               : -1;
}

static int stop_bus(void **state) {
        bus = sd_bus_close_unref(bus);
        return 0;
}

static char *convert(const char *types, ...) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        MG_CLEANUP(json_decrefp) json_t *value = NULL;
        va_list values;

        assert_true(sd_bus_message_new_signal(bus, &message, "/x", "x.y", "z") >= 0);
        va_start(values, types);
        assert_true(sd_bus_message_appendv(message, types, values) >= 0);
        va_end(values);
        assert_true(sd_bus_message_seal(message, 1, 0) >= 0);
        assert_true(sd_bus_message_rewind(message, true) >= 0);
        assert_int_equal(bus_to_json(message, &value), 0);
        return json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
}

#define CONVERTS(text, ...)                         \
        do {                                        \
                char *shown = convert(__VA_ARGS__); \
                assert_string_equal(shown, (text)); \
                free(shown);                        \
        } while (0)

static void test_types(void **state) {
        CONVERTS("\"a\"", "s", "a");
        CONVERTS("[true,[\"AF_INET\",\"AF_UNIX\"]]", "(bas)", 1, 2, "AF_INET", "AF_UNIX");
        CONVERTS("[false,[]]", "(bas)", 0, 0);
        CONVERTS("[]", "a(sb)", 0);
        CONVERTS("[[\"/a\",true],[\"/b\",false]]", "a(sb)", 2, "/a", 1, "/b", 0);
        CONVERTS("[[2,6,80,1]]", "a(iiqq)", 1, 2, 6, 80, 1);
        CONVERTS("[-7,65535,\"/o\",\"as\",1.5]", "(nqogd)", -7, 65535, "/o", "as", 1.5);
        CONVERTS("[[\"/x\",[\"x\",\"-y\"],false,1,2,3,4,5,6,7]]", "a(sasbttttuii)", 1, "/x", 2, "x",
                 "-y", 0, UINT64_C(1), UINT64_C(2), UINT64_C(3), UINT64_C(4), 5, 6, 7);
        CONVERTS("[[\"/x\",[[\"/y\",\"\"]]]]", "a(sa(ss))", 1, "/x", 1, "/y", "");
        CONVERTS("[1,2]", "ay", 2, 1, 2);
        CONVERTS("null", "t", UINT64_MAX);
}

/* As GetAll answers. */
static void test_properties(void **state) {
        CONVERTS("{\"ExecStart\":[[\"/x\",[\"x\"]]],\"Id\":\"a.service\",\"MainPID\":7,\"Profile\":[false,\"\"]}",
                 "a{sv}", 4, "Id", "s", "a.service", "MainPID", "u", 7, "Profile", "(bs)", 0, "",
                 "ExecStart", "a(sas)", 1, "/x", 1, "x");
        CONVERTS("{}", "a{sv}", 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_types),
                cmocka_unit_test(test_properties),
        };

        return cmocka_run_group_tests(tests, start_bus, stop_bus);
}
