/* SPDX-License-Identifier: MIT */
/*
 * Units as objects on a private system bus: their paths, their properties, and the signals that a listener gets. The listener
 * lives in the manager's own event loop.
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
#include "daemon/bus.h"
#include "daemon/bus_server.h"
#include "daemon/self.h"

#define PROPERTIES     "org.freedesktop.DBus.Properties"
#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"
#define HOG            MG_BUS_UNIT_PATH "/hog_2eservice"
#define ANSWER_MAX     (256 * 1024)

static sd_bus *listener;

/* What came, as one text: "added PATH", "removed PATH", "changed PATH Name=value ...". */
static char heard[4096];

static void hear(const char *what) {
        size_t n = strlen(heard);

        snprintf(heard + n, sizeof(heard) - n, "%s%s", n > 0 && what[0] != ' ' ? ", " : "", what);
}

static void hear_value(sd_bus_message *message) {
        const char *contents, *text;
        char type, line[128];
        uint64_t number;
        int truth;

        assert_true(sd_bus_message_peek_type(message, &type, &contents) > 0);
        assert_true(sd_bus_message_enter_container(message, 'v', contents) > 0);
        switch (contents[0]) {
        case 's':
                assert_true(sd_bus_message_read(message, "s", &text) > 0);
                snprintf(line, sizeof(line), "=%s", text);
                break;
        case 't':
                assert_true(sd_bus_message_read(message, "t", &number) > 0);
                snprintf(line, sizeof(line), "=%llu", (unsigned long long) number);
                break;
        case 'b':
                assert_true(sd_bus_message_read(message, "b", &truth) > 0);
                snprintf(line, sizeof(line), "=%s", truth ? "yes" : "no");
                break;
        default:
                assert_true(sd_bus_message_skip(message, contents) > 0);
                snprintf(line, sizeof(line), "=%s", contents);
        }
        assert_true(sd_bus_message_exit_container(message) > 0);
        size_t n = strlen(heard);
        snprintf(heard + n, sizeof(heard) - n, "%s", line);
}

static int on_changed(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        const char *interface, *name;
        char line[256];

        assert_true(sd_bus_message_read(message, "s", &interface) > 0);
        assert_string_equal(interface, MG_BUS_UNIT_INTERFACE);
        snprintf(line, sizeof(line), "changed %s", sd_bus_message_get_path(message));
        hear(line);
        assert_true(sd_bus_message_enter_container(message, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(message, 'e', "sv") > 0) {
                assert_true(sd_bus_message_read(message, "s", &name) > 0);
                snprintf(line, sizeof(line), " %s", name);
                hear(line);
                hear_value(message);
                assert_true(sd_bus_message_exit_container(message) > 0);
        }
        return 1;
}

static int on_come_or_gone(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        bool added = mg_streq(sd_bus_message_get_member(message), "InterfacesAdded");
        const char *path;
        char line[256];

        assert_true(sd_bus_message_read(message, "o", &path) > 0);
        snprintf(line, sizeof(line), "%s %s", added ? "added" : "removed", path);
        hear(line);
        return 1;
}

static bool answered;
static char answer[ANSWER_MAX];
static size_t answer_length;

/* Everything in the answer that is text, and numbers in decimal, each in brackets. */
static void write_down(sd_bus_message *message) {
        union {
                const char *s;
                uint64_t t;
                int64_t x;
                int b;
        } value;
        const char *contents;
        char type;

        while (sd_bus_message_peek_type(message, &type, &contents) > 0) {
                char *at = answer + answer_length;
                size_t room = sizeof(answer) - answer_length;

                if (strchr("aevr", type)) {
                        assert_true(sd_bus_message_enter_container(message, type, contents) > 0);
                        write_down(message);
                        assert_true(sd_bus_message_exit_container(message) > 0);
                        continue;
                }
                assert_true(sd_bus_message_read_basic(message, type, &value) > 0);
                int n = strchr("so", type)  ? snprintf(at, room, "[%s]", value.s)
                        : strchr("x", type) ? snprintf(at, room, "[%lld]", (long long) value.x)
                        : strchr("b", type) ? snprintf(at, room, "[%s]", value.b ? "yes" : "no")
                                            : snprintf(at, room, "[%llu]",
                                                       (unsigned long long) value.t);
                assert_true(n > 0 && (size_t) n < room);
                answer_length += (size_t) n;
        }
}

static int on_answer(sd_bus_message *message, void *userdata, sd_bus_error *error) {
        const sd_bus_error *failure = sd_bus_message_get_error(message);

        answered = true;
        answer_length = 0;
        answer[0] = '\0';
        if (failure)
                snprintf(answer, sizeof(answer), "%s", failure->name);
        else
                write_down(message);
        return 1;
}

static void call(
                const char *path,
                const char *interface,
                const char *method,
                const char *argument) {
        answered = false;
        assert_true(sd_bus_call_method_async(
                                    listener, NULL, MG_BUS_NAME, path, interface, method, on_answer,
                                    NULL, argument ? "s" : "", argument) >= 0);
        for (int i = 0; i < 20000 && !answered; i++)
                turn(1);
        assert_true(answered);
}

/* A call behind the signals: when its answer is here, so are they. */
static void expect_heard(const char *what) {
        call(MG_BUS_PATH, MG_BUS_INTERFACE, "GetLogLevel", NULL);
        assert_string_equal(heard, what);
        heard[0] = '\0';
}

static int setup(void **state) {
        sd_bus *bus;

        assert_int_equal(setup_system(state), 0);
        if (getuid() != 0)
                return 0;
        bus = connect_system(NULL);
        wait_for_name(bus);
        sd_bus_close_unref(bus);
        heard[0] = '\0';
        listener = connect_system(manager->event);
        assert_non_null(listener);
        assert_true(sd_bus_match_signal_async(
                                    listener, NULL, MG_BUS_NAME, NULL, PROPERTIES,
                                    "PropertiesChanged", on_changed, NULL, NULL) >= 0);
        assert_true(sd_bus_match_signal_async(
                                    listener, NULL, MG_BUS_NAME, MG_BUS_PATH, OBJECT_MANAGER, NULL,
                                    on_come_or_gone, NULL, NULL) >= 0);
        expect_heard("");
        return 0;
}

static int teardown(void **state) {
        listener = sd_bus_close_unref(listener);
        return teardown_system(state);
}

static void need_root(void) {
        if (getuid() == 0)
                return;
        print_message("needs root, to have the name\n");
        skip();
}

static struct unit *make_unit_at(const char *name, const char *path, bool user) {
        struct unit_identity identity = { .name = name, .path = path, .user = user };
        struct unit *unit;

        assert_int_equal(unit_get(manager, &identity, &unit), 0);
        return unit;
}

static void test_paths(void **state) {
        static const struct {
                const char *name, *cgroup;
                bool user;
                const char *object;
        } cases[] = {
                { "nginx.service", "/system.slice/nginx.service", false, "/nginx_2eservice" },
                { "a@b.service", "/system.slice/system-a.slice/a@b.service", false,
                  "/a_40b_2eservice" },
                { "init.scope", "/init.scope", false, "/init_2escope" },
                { "redis-server.process", NULL, false, "/redis_2dserver_2eprocess" },
                { "0.service", "/system.slice/0.service", false, "/_30_2eservice" },
                /* One name, three units. */
                { "nginx.service",
                  "/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service", true,
                  "/_2fuser_2eslice_2fuser_2d1000_2eslice_2fuser_401000_2eservice_2fapp_2eslice_2fnginx_2eservice" },
                { "nginx.service", "/machine.slice/x.scope/payload/system.slice/nginx.service",
                  false,
                  "/_2fmachine_2eslice_2fx_2escope_2fpayload_2fsystem_2eslice_2fnginx_2eservice" },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct unit *unit = make_unit_at(cases[i].name, cases[i].cgroup, cases[i].user);
                char *path = NULL, wanted[256];

                snprintf(wanted, sizeof(wanted), MG_BUS_UNIT_PATH "%s", cases[i].object);
                assert_int_equal(bus_unit_path(unit, &path), 0);
                assert_string_equal(path, wanted);
                free(path);
                if (!listener)
                        continue;
                call(wanted, PROPERTIES, "GetAll", MG_BUS_UNIT_INTERFACE);
                snprintf(wanted, sizeof(wanted), "[CGroup][%s]", cases[i].cgroup ?: "");
                assert_non_null(strstr(answer, wanted));
        }
}

static void test_properties(void **state) {
        static const char *const members[] = {
                "[Name][hog.service]",
                "[CGroup][]",
                "[Source][proc]",
                "[Mode][trim]",
                "[Activity][active]",
                "[Paused][no]",
                "[Breaker][no]",
                "[Verdict][learning]",
                "[Reason][]",
                "[AnonBytes][18446744073709551615]",
                "[LiveBytes][18446744073709551615]",
                "[SlopeBytesPerHour][-9223372036854775808]",
                "[Trims][3]",
                "[TrimmedBytes][4096]",
                "[LastTrim][at_usec][77]",
                "[Agents][0]",
        };
        static const char *const nowhere[] = {
                MG_BUS_UNIT_PATH "/nosuch_2eservice",
                MG_BUS_UNIT_PATH "/_zz",
                MG_BUS_UNIT_PATH,
                HOG "/below",
                MG_BUS_UNIT_PATH "/hog_2Eservice/_2f",
        };
        struct unit *unit = make_unit("hog.service");

        need_root();
        unit->policy.trims = 3;
        unit->policy.trimmed_bytes = 4096;
        unit->last_round_wall_usec = 77;
        call(HOG, PROPERTIES, "GetAll", MG_BUS_UNIT_INTERFACE);
        for (size_t i = 0; i < MG_ELEMENTS(members); i++)
                if (!strstr(answer, members[i]))
                        fail_msg("no %s in %s", members[i], answer);
        for (size_t i = 0; i < MG_ELEMENTS(nowhere); i++) {
                call(nowhere[i], PROPERTIES, "GetAll", MG_BUS_UNIT_INTERFACE);
                assert_null(strstr(answer, "[Name]"));
        }
        make_unit("other.service");
        call(MG_BUS_PATH, OBJECT_MANAGER, "GetManagedObjects", NULL);
        assert_non_null(strstr(answer, "[" HOG "]"));
        assert_non_null(strstr(answer, "[" MG_BUS_UNIT_PATH "/other_2eservice]"));
        assert_non_null(strstr(answer, "[Trims][3]"));
}

static void test_signals(void **state) {
        struct unit *unit = make_unit("hog.service");

        need_root();
        /* It came after the name. */
        bus_tick(manager->bus);
        expect_heard("added " HOG);
        bus_tick(manager->bus);
        expect_heard("");
        unit->paused = true;
        unit->policy.trims = 2;
        unit->policy.trimmed_bytes = 8192;
        unit->last_round_wall_usec = 99;
        bus_tick(manager->bus);
        bus_tick(manager->bus);
        expect_heard("changed " HOG " Paused=yes Trims=2 TrimmedBytes=8192 LastTrim=a{sv}");
        unit->policy.verdict.verdict = MG_VERDICT_PINNED;
        unit->policy.breaker_open = true;
        unit->config.mode = MG_MODE_OBSERVE;
        unit->decision.reason = MG_REASON_COOLDOWN;
        unit->decided = true;
        /* Changed and changed back: nothing to tell. */
        unit->paused = false;
        unit->paused = true;
        bus_tick(manager->bus);
        expect_heard("changed " HOG " Mode=observe Breaker=yes Verdict=pinned Reason=cooldown");
        /* What each tick measures anew makes no signal. */
        unit->memory.anon_bytes = 5;
        unit->n_pids = 7;
        bus_tick(manager->bus);
        expect_heard("");
        unit_end(unit);
        expect_heard("removed " HOG);
        /* It lived between two ticks: nobody has heard of it. */
        unit_end(make_unit("short.service"));
        bus_tick(manager->bus);
        expect_heard("");
}

static void test_many_units(void **state) {
        int64_t before;

        need_root();
        for (int i = 0; i < 1000; i++) {
                char name[32];
                snprintf(name, sizeof(name), "unit-%d.service", i);
                make_unit(name);
        }
        bus_tick(manager->bus);
        call(MG_BUS_PATH, MG_BUS_INTERFACE, "GetLogLevel", NULL);
        before = self_net_allocated();
        for (int i = 0; i < 100; i++)
                bus_tick(manager->bus);
        assert_true(self_net_allocated() == before);
        heard[0] = '\0';
        /* All of them at once fit the bus, and leave nothing behind. */
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                u->paused = true;
        bus_tick(manager->bus);
        call(MG_BUS_PATH, MG_BUS_INTERFACE, "GetLogLevel", NULL);
        assert_true(((struct bus_server *) manager->bus)->system_ready);
        assert_int_equal(
                        run_command("busctl call org.memguard1 /org/memguard1 "
                                    "org.freedesktop.DBus.ObjectManager GetManagedObjects >/dev/null"),
                        0);
        assert_true(self_net_allocated() - before < (int64_t) MG_MIB);
}

int main(void) {
#define UNITS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                UNITS_TEST(test_paths),
                UNITS_TEST(test_properties),
                UNITS_TEST(test_signals),
                UNITS_TEST(test_many_units),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
