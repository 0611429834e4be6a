/* SPDX-License-Identifier: MIT */
/*
 * org.memguard1 on the system bus: who may do what by the policy file, and by a polkit that the test plays itself. The bus
 * daemon is a private one. Clients are processes of another user.
 */
#include <errno.h>
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
#include "daemon/bus_server.h"

static int call_system(
                sd_bus *bus,
                sd_bus_error *error,
                const char *method,
                const char *types,
                ...) {
        va_list arguments;
        int r;

        va_start(arguments, types);
        r = sd_bus_call_methodv(bus, MG_BUS_NAME, MANAGER, method, error, NULL, types, arguments);
        va_end(arguments);
        return r;
}

/* What the policy file lets another user do: read, and ask what a trim would bring. */
static int system_stranger(void) {
        static const char *const forbidden[] = { "Pause", "Resume", "SetLogLevel" };
        MG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus *bus = connect_system(NULL);

        if (!bus || call_system(bus, NULL, "GetHost", NULL) < 0 ||
            call_system(bus, NULL, "ListUnits", "as", 0) < 0 ||
            call_system(bus, NULL, "Explain", "s", "hog.service") < 0 ||
            call_system(bus, NULL, "GetHistory", "st", "hog.service", UINT64_C(0)) < 0 ||
            call_system(bus, NULL, "ListProcesses", "s", "") < 0 ||
            call_system(bus, NULL, "GetLogLevel", NULL) < 0 ||
            call_system(bus, NULL, "TrimUnit", "sb", "hog.service", 1) < 0)
                return 1;
        /* Not before the first tick; but not forbidden. */
        if (call_system(bus, &error, "Advise", "s", "hog.service") >= 0 ||
            !sd_bus_error_has_name(&error, MG_BUS_ERROR_NOT_NOW))
                return 4;
        sd_bus_error_free(&error);
        for (size_t i = 0; i < MG_ELEMENTS(forbidden); i++) {
                if (call_system(bus, &error, forbidden[i], "s", "") >= 0 ||
                    !sd_bus_error_has_name(&error, SD_BUS_ERROR_ACCESS_DENIED))
                        return 2;
                sd_bus_error_free(&error);
        }
        if (call_system(bus, &error, "TrimUnit", "sb", "hog.service", 0) >= 0 ||
            !sd_bus_error_has_name(&error, SD_BUS_ERROR_ACCESS_DENIED))
                return 3;
        return sd_bus_request_name(bus, "org.memguard1.other", 0) >= 0 ||
               sd_bus_request_name(bus, MG_BUS_NAME, SD_BUS_NAME_REPLACE_EXISTING) >= 0;
}

static void test_system_bus(void **state) {
        sd_bus *bus;

        if (getuid() != 0) {
                print_message("needs root, to have the name and to be another user\n");
                skip();
        }
        make_unit("hog.service");
        bus = connect_system(NULL);
        wait_for_name(bus);
        assert_int_equal(run_as_nobody(system_stranger), 0);
        assert_false(manager->paused);

        /* The bus goes away and comes back; so does the name. */
        sd_bus_close_unref(bus);
        bus_daemon_stop(&bus_daemon);
        turn(20);
        bus_daemon_start(&bus_daemon);
        bus = connect_system(NULL);
        wait_for_name(bus);
        sd_bus_close_unref(bus);
        bus = connect_bus(NULL);
        assert_true(sd_bus_is_open(bus) > 0);
        sd_bus_close_unref(bus);
}

/* ---- polkit ---- */

/* What it says depends on the unit. */
static sd_bus *polkit_bus;
static unsigned questions;
static char last_action[64];
static char last_subject[64];

static int on_question(sd_bus_message *question, void *userdata, sd_bus_error *error) {
        const char *kind, *key, *name, *action, *unit = "", *cancellation;
        uint32_t flags;

        questions++;
        assert_true(sd_bus_message_enter_container(question, 'r', "sa{sv}") > 0);
        assert_true(sd_bus_message_read(question, "sa{sv}", &kind, 1, &key, "s", &name) > 0);
        assert_true(sd_bus_message_exit_container(question) > 0);
        assert_string_equal(kind, "system-bus-name");
        assert_string_equal(key, "name");
        snprintf(last_subject, sizeof(last_subject), "%s", name);
        assert_true(sd_bus_message_read(question, "s", &action) > 0);
        snprintf(last_action, sizeof(last_action), "%s", action);
        assert_true(sd_bus_message_enter_container(question, 'a', "{ss}") > 0);
        if (sd_bus_message_read(question, "{ss}", &key, &unit) > 0)
                assert_string_equal(key, "unit");
        assert_true(sd_bus_message_exit_container(question) > 0);
        assert_true(sd_bus_message_read(question, "us", &flags, &cancellation) > 0);

        if (mg_streq(unit, "hang.service"))
                return 1;
        if (mg_streq(unit, "broken.service"))
                return sd_bus_reply_method_errorf(question, SD_BUS_ERROR_FAILED, "cannot think");
        if (mg_streq(unit, "gone.service"))
                unit_end(unit_find(manager, unit));
        bool ask = mg_streq(unit, "ask.service");
        bool yes = mg_streq(unit, "yes.service") || mg_streq(unit, "gone.service") ||
                   mg_streq(action, MG_BUS_ACTION_RELOAD) || (ask && flags == 1);
        return sd_bus_reply_method_return(question, "(bba{ss})", yes, ask && !yes, 0);
}

static const sd_bus_vtable polkit_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("CheckAuthorization",
                      "(sa{sv})sa{ss}us",
                      "(bba{ss})",
                      on_question,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static int on_polkit_name(sd_bus_message *answer, void *userdata, sd_bus_error *error) {
        bool *done = userdata;

        assert_false(sd_bus_message_is_method_error(answer, NULL));
        *done = true;
        return 1;
}

static void start_polkit(void) {
        bool done = false;

        polkit_bus = connect_system(manager->event);
        assert_non_null(polkit_bus);
        assert_true(sd_bus_add_object_vtable(
                                    polkit_bus, NULL, "/org/freedesktop/PolicyKit1/Authority",
                                    "org.freedesktop.PolicyKit1.Authority", polkit_vtable,
                                    NULL) >= 0);
        assert_true(sd_bus_request_name_async(
                                    polkit_bus, NULL, "org.freedesktop.PolicyKit1", 0,
                                    on_polkit_name, &done) >= 0);
        for (int i = 0; i < 5000 && !done; i++)
                turn(1);
        assert_true(done);
}

/* Calls METHOD for UNIT. Returns 0, or 1 with the error's name set. */
static int ask_for(
                sd_bus *bus,
                const char *method,
                const char *unit,
                bool interactive,
                char ret_error[128]) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        MG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        bool trim = mg_streq(method, "TrimUnit");

        if (sd_bus_message_new_method_call(bus, &call, MG_BUS_NAME, MANAGER, method) < 0 ||
            (!mg_streq(method, "Reload") &&
             sd_bus_message_append(call, trim ? "sb" : "s", unit, 0) < 0) ||
            sd_bus_message_set_allow_interactive_authorization(call, interactive) < 0)
                return -1;
        ret_error[0] = '\0';
        if (sd_bus_call(bus, call, 0, &error, NULL) >= 0)
                return 0;
        snprintf(ret_error, 128, "%s", error.name ?: "none");
        return 1;
}

struct polkit_case {
        const char *method;
        const char *unit;
        bool interactive;
        const char *error; /* NULL: it is done */
};

static const struct polkit_case *cases;
static size_t n_cases;

/* Returns the number of the first case, from one, that came out otherwise. */
static int operator_of_cases(void) {
        sd_bus *bus = connect_system(NULL);
        char error[128];

        for (size_t i = 0; i < n_cases; i++) {
                int r = ask_for(bus, cases[i].method, cases[i].unit, cases[i].interactive, error);

                if (r == 0 ? !!cases[i].error : !mg_streq(error, cases[i].error ?: "")) {
                        fprintf(stderr, "%s %s: %s\n", cases[i].method, cases[i].unit, error);
                        return (int) i + 1;
                }
        }
        return 0;
}

static void run_cases(const struct polkit_case *list, size_t n) {
        cases = list;
        n_cases = n;
        assert_int_equal(run_as_nobody(operator_of_cases), 0);
}

static void need_root(void) {
        if (getuid() == 0)
                return;
        print_message("needs root, to have the name and to be another user\n");
        skip();
}

static void wait_until_ready(void) {
        sd_bus *bus = connect_system(NULL);

        wait_for_name(bus);
        sd_bus_close_unref(bus);
}

/* Finds no private socket where it looks for one, so the system bus it is. */
static int operator_of_memguardctl(void) {
        execl(getenv("MEMGUARDCTL"), "memguardctl", cases->method, cases->unit, NULL);
        return 99;
}

static void run_memguardctl(const struct polkit_case *request, int status) {
        if (!getenv("MEMGUARDCTL") || access("/run/memguard/bus", F_OK) == 0)
                return;
        cases = request;
        assert_int_equal(run_as_nobody(operator_of_memguardctl), status);
}

static void test_memguardctl(void **state) {
        static const struct {
                struct polkit_case request;
                int status;
        } requests[] = {
                { { .method = "pause", .unit = "yes.service" }, 0 },
                { { .method = "pause", .unit = "ask.service" }, 0 }, /* it lets people be asked */
                { { .method = "pause", .unit = "no.service" }, 5 },
                { { .method = "resume", .unit = "nosuch.service" }, 4 },
                { { .method = "log-level", .unit = "debug" }, 5 },
        };

        need_root();
        make_unit("yes.service");
        make_unit("ask.service");
        make_unit("no.service");
        wait_until_ready();
        start_polkit();
        for (size_t i = 0; i < MG_ELEMENTS(requests); i++)
                run_memguardctl(&requests[i].request, requests[i].status);
        if (getenv("MEMGUARDCTL")) {
                assert_true(unit_find(manager, "yes.service")->paused);
                assert_true(unit_find(manager, "ask.service")->paused);
        }
        polkit_bus = sd_bus_close_unref(polkit_bus);
}

static void test_polkit(void **state) {
        static const struct polkit_case asked[] = {
                { "Pause", "yes.service", false, NULL },
                { "Pause", "no.service", false, SD_BUS_ERROR_ACCESS_DENIED },
                { "Pause", "no.service", true, SD_BUS_ERROR_ACCESS_DENIED },
                { "Pause", "", true, SD_BUS_ERROR_ACCESS_DENIED },
                { "Pause", "ask.service", false, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED },
                { "Pause", "ask.service", true, NULL },
                { "TrimUnit", "yes.service", false, NULL },
                { "TrimUnit", "no.service", false, SD_BUS_ERROR_ACCESS_DENIED },
                { "Resume", "no.service", false, SD_BUS_ERROR_ACCESS_DENIED },
                { "Pause", "broken.service", true, SD_BUS_ERROR_ACCESS_DENIED },
                { "Pause", "gone.service", false, MG_BUS_ERROR_NO_SUCH_UNIT },
                { "Pause", "nosuch.service", false, MG_BUS_ERROR_NO_SUCH_UNIT },
                { "SetLogLevel", "debug", true, SD_BUS_ERROR_ACCESS_DENIED },
                { "Reload", "", false, NULL },
        };
        static const struct polkit_case denied[] = {
                { "Pause", "yes.service", true, SD_BUS_ERROR_ACCESS_DENIED },
                { "Reload", "", true, SD_BUS_ERROR_ACCESS_DENIED },
        };
        static const char *const names[] = { "yes", "no", "ask", "broken", "gone" };

        need_root();
        for (size_t i = 0; i < MG_ELEMENTS(names); i++) {
                char name[32];
                snprintf(name, sizeof(name), "%s.service", names[i]);
                make_unit(name);
        }
        wait_until_ready();
        start_polkit();
        questions = 0;
        run_cases(asked, MG_ELEMENTS(asked));
        /* Not for a unit that is not there, nor for what root alone may do. */
        assert_int_equal(questions, MG_ELEMENTS(asked) - 2);
        assert_string_equal(last_action, MG_BUS_ACTION_RELOAD);
        assert_int_equal(last_subject[0], ':');
        assert_true(unit_find(manager, "yes.service")->paused);
        assert_true(unit_find(manager, "ask.service")->paused);
        assert_false(unit_find(manager, "no.service")->paused);
        assert_false(manager->paused);

        /* It went away: root alone may act. */
        polkit_bus = sd_bus_close_unref(polkit_bus);
        unit_find(manager, "yes.service")->paused = false;
        run_cases(denied, MG_ELEMENTS(denied));
        assert_false(unit_find(manager, "yes.service")->paused);
}

/* Leaves calls behind that wait, and finds the daemon well; one more is too many. */
static int impatient(void) {
        sd_bus *bus = connect_system(NULL);
        char error[128];

        for (int i = 0; i < 4; i++)
                if (sd_bus_call_method_async(
                                    bus, NULL, MG_BUS_NAME, MANAGER, "Pause", NULL, NULL, "s",
                                    "hang.service") < 0)
                        return 1;
        if (ask_for(bus, "Pause", "hang.service", false, error) != 1 ||
            !mg_streq(error, SD_BUS_ERROR_LIMITS_EXCEEDED))
                return 2;
        return call_system(bus, NULL, "GetHost", NULL) < 0 ? 3 : 0;
}

static void test_hanging_polkit(void **state) {
        static const struct polkit_case others[] = { { "Pause", "yes.service", false, NULL } };

        need_root();
        make_unit("yes.service");
        make_unit("hang.service");
        wait_until_ready();
        start_polkit();
        questions = 0;
        for (int i = 0; i < 20; i++) {
                int status = run_as_nobody(impatient);

                /* Each has four; after sixteen of them there is no room for anybody, until the first have waited in vain. */
                assert_int_equal(status, 0);
                assert_true(questions >= (unsigned) MG_MIN(4 * (i + 1), 64));
                assert_true(manager->bus->n_authorizations <= 64);
        }
        assert_false(unit_find(manager, "hang.service")->paused);
        /* The bus goes, and with it all who wait on it. */
        polkit_bus = sd_bus_close_unref(polkit_bus);
        bus_daemon_stop(&bus_daemon);
        turn(20);
        bus_daemon_start(&bus_daemon);
        wait_until_ready();
        start_polkit();
        run_cases(others, MG_ELEMENTS(others));
        assert_true(unit_find(manager, "yes.service")->paused);
        polkit_bus = sd_bus_close_unref(polkit_bus);
}

int main(void) {
#define SYSTEM_TEST(f) cmocka_unit_test_setup_teardown(f, setup_system, teardown_system)
        const struct CMUnitTest tests[] = {
                SYSTEM_TEST(test_system_bus),
                SYSTEM_TEST(test_polkit),
                SYSTEM_TEST(test_hanging_polkit),
                SYSTEM_TEST(test_memguardctl),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
