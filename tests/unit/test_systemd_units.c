/* SPDX-License-Identifier: MIT */
/*
 * systemd's units over a real bus daemon, with a small systemd of the test's own on the other end. Both live
 * in one event loop; the test turns it until what it waits for has come.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include <cmocka.h>

#include "base/macros.h"
#include "bus_daemon.h"
#include "daemon/systemd_unit_entry.h"
#include "daemon/systemd_units.h"

#define UNITS_MAX 600

/* ---- the other end ---- */

struct fake_unit {
        char name[64];
        const char *state;
        char cgroup[96];
        uint8_t invocation;
        uint64_t watchdog_usec;
        const char *environment;
        const char *only_family; /* RestrictAddressFamilies=; NULL: none */
        bool loaded;
        bool ends; /* right after it was said to be loaded */
};

static struct fake_systemd {
        sd_bus *bus;
        struct fake_unit units[UNITS_MAX];
        size_t n_units;
        int subscriptions;
        int lists;
        int loads; /* units that were loaded, and forgotten again, because somebody asked for a path */
        bool silent; /* takes Gets and never answers */
        sd_bus_message *unanswered[8];
        size_t n_unanswered;
} fake;

static struct bus_daemon bus_daemon;
static sd_event *event;

static struct fake_unit *fake_unit(const char *name) {
        for (size_t i = 0; i < fake.n_units; i++)
                if (strcmp(fake.units[i].name, name) == 0)
                        return &fake.units[i];
        return NULL;
}

static struct fake_unit *fake_add(const char *name, const char *state) {
        struct fake_unit *unit = fake_unit(name);

        if (!unit)
                unit = &fake.units[fake.n_units++];
        *unit = (struct fake_unit){ .state = state, .invocation = 0xab, .loaded = true };
        snprintf(unit->name, sizeof(unit->name), "%s", name);
        snprintf(unit->cgroup, sizeof(unit->cgroup), "/system.slice/%s", name);
        return unit;
}

static int fake_subscribe(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        fake.subscriptions++;
        return sd_bus_reply_method_return(call, "");
}

static int fake_list(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

        fake.lists++;
        assert_true(sd_bus_message_new_method_return(call, &reply) >= 0);
        assert_true(sd_bus_message_open_container(reply, 'a', "(ssssssouso)") >= 0);
        for (size_t i = 0; i < fake.n_units; i++) {
                const struct fake_unit *unit = &fake.units[i];
                char *path = NULL;

                if (!unit->loaded)
                        continue;
                assert_true(sd_bus_path_encode(SYSTEMD_UNITS_PATH, unit->name, &path) >= 0);
                assert_true(sd_bus_message_append(
                                            reply, "(ssssssouso)", unit->name, "description",
                                            "loaded", unit->state, "running", "", path,
                                            (uint32_t) 0, "", "/") >= 0);
                free(path);
        }
        assert_true(sd_bus_message_close_container(reply) >= 0);
        return sd_bus_send(NULL, reply, NULL);
}

static int fake_get_unit(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        const char *name;
        char *path = NULL;
        struct fake_unit *unit;
        int r;

        assert_true(sd_bus_message_read(call, "s", &name) >= 0);
        unit = fake_unit(name);
        if (!unit || !unit->loaded)
                return sd_bus_error_set(error, SYSTEMD_NAME ".NoSuchUnit", "not loaded");
        unit->loaded = !unit->ends;
        assert_true(sd_bus_path_encode(SYSTEMD_UNITS_PATH, name, &path) >= 0);
        r = sd_bus_reply_method_return(call, "o", path);
        free(path);
        return r;
}

static int fake_get(sd_bus_message *call, const struct fake_unit *unit) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        uint8_t id[INVOCATION_ID_BYTES];
        const char *interface, *property;

        assert_true(sd_bus_message_read(call, "ss", &interface, &property) >= 0);
        if (strcmp(property, "ActiveState") == 0)
                return sd_bus_reply_method_return(call, "v", "s", unit->state);
        if (strcmp(property, "ControlGroup") == 0)
                return sd_bus_reply_method_return(call, "v", "s", unit->cgroup);
        if (strcmp(property, "WatchdogUSec") == 0)
                return sd_bus_reply_method_return(call, "v", "t", unit->watchdog_usec);
        if (strcmp(property, "Environment") == 0)
                return sd_bus_reply_method_return(
                                call, "v", "as", 2, "LD_PRELOADED=libmemguard-preload.so",
                                unit->environment ?: "A=1");
        if (strcmp(property, "RestrictAddressFamilies") == 0)
                return unit->only_family ? sd_bus_reply_method_return(
                                                           call, "v", "(bas)", 1, 1,
                                                           unit->only_family)
                                         : sd_bus_reply_method_return(call, "v", "(bas)", 0, 0);
        memset(id, unit->invocation, sizeof(id));
        assert_string_equal(property, "InvocationID");
        assert_true(sd_bus_message_new_method_return(call, &reply) >= 0);
        assert_true(sd_bus_message_open_container(reply, 'v', "ay") >= 0);
        assert_true(sd_bus_message_append_array(reply, 'y', id, sizeof(id)) >= 0);
        assert_true(sd_bus_message_close_container(reply) >= 0);
        return sd_bus_send(NULL, reply, NULL);
}

static void fake_emit_unit(const char *member, const char *name) {
        char *path = NULL;

        assert_true(sd_bus_path_encode(SYSTEMD_UNITS_PATH, name, &path) >= 0);
        assert_true(sd_bus_emit_signal(
                                    fake.bus, SYSTEMD_PATH, SYSTEMD_MANAGER, member, "so", name,
                                    path) >= 0);
        free(path);
}

/* As systemd does: no unit is unknown, a path is enough to load it. Nothing keeps it. */
static int fake_load(sd_bus_message *call, const char *name) {
        struct fake_unit forgotten = { .state = "inactive" };

        fake.loads++;
        fake_emit_unit("UnitNew", name);
        fake_emit_unit("UnitRemoved", name);
        return fake_get(call, &forgotten);
}

/* Properties.Get below the units' path, by hand: a vtable would want one object each. */
static int on_fake_call(sd_bus_message *call, void *userdata, sd_bus_error *error) {
        struct fake_unit *unit;
        char *name = NULL;
        int r;

        if (!sd_bus_message_is_method_call(call, "org.freedesktop.DBus.Properties", "Get") ||
            sd_bus_path_decode(sd_bus_message_get_path(call), SYSTEMD_UNITS_PATH, &name) <= 0)
                return 0;
        unit = fake_unit(name);
        if (fake.silent) {
                if (fake.n_unanswered < MG_ELEMENTS(fake.unanswered))
                        fake.unanswered[fake.n_unanswered++] = sd_bus_message_ref(call);
                r = 1;
        } else if (unit && unit->loaded)
                r = fake_get(call, unit);
        else
                r = fake_load(call, name);
        free(name);
        return r;
}

static const sd_bus_vtable fake_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Subscribe", "", "", fake_subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetUnit", "s", "o", fake_get_unit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListUnitsByPatterns",
                      "asas",
                      "a(ssssssouso)",
                      fake_list,
                      SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static void fake_connect(void) {
        assert_true(sd_bus_new(&fake.bus) >= 0);
        assert_true(sd_bus_set_address(fake.bus, bus_daemon.address) >= 0);
        assert_true(sd_bus_set_bus_client(fake.bus, true) >= 0);
        assert_true(sd_bus_start(fake.bus) >= 0);
        assert_true(sd_bus_add_object_vtable(
                                    fake.bus, NULL, SYSTEMD_PATH, SYSTEMD_MANAGER, fake_vtable,
                                    NULL) >= 0);
        assert_true(sd_bus_add_filter(fake.bus, NULL, on_fake_call, NULL) >= 0);
        assert_true(sd_bus_request_name(fake.bus, SYSTEMD_NAME, 0) >= 0);
        assert_true(sd_bus_attach_event(fake.bus, event, 0) >= 0);
}

static void fake_disconnect(void) {
        for (size_t i = 0; i < fake.n_unanswered; i++)
                sd_bus_message_unref(fake.unanswered[i]);
        fake.n_unanswered = 0;
        fake.bus = sd_bus_close_unref(fake.bus);
}

static void fake_emit_state(struct fake_unit *unit, const char *state) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *signal = NULL;
        char *path = NULL;

        unit->state = state;
        assert_true(sd_bus_path_encode(SYSTEMD_UNITS_PATH, unit->name, &path) >= 0);
        assert_true(sd_bus_message_new_signal(
                                    fake.bus, &signal, path, "org.freedesktop.DBus.Properties",
                                    "PropertiesChanged") >= 0);
        assert_true(sd_bus_message_append(
                                    signal, "sa{sv}as", SYSTEMD_UNIT, 3, "Following", "s", "",
                                    "ActiveState", "s", state, "ConditionTimestamp", "t",
                                    UINT64_C(5), 1, "InvalidatedOne") >= 0);
        assert_true(sd_bus_send(NULL, signal, NULL) >= 0);
        free(path);
}

/* ---- this end ---- */

struct seen_unit {
        char name[64];
        char cgroup[96];
        char invocation[33];
        enum mg_activity activity;
        uint64_t watchdog_usec;
        enum mg_fact sets_agent;
        enum mg_fact forbids_unix;
};

static struct seen {
        struct seen_unit units[UNITS_MAX];
        size_t n_units;
        bool available;
        unsigned news;
        unsigned removals;
} seen;

static struct systemd_units *units;

static struct seen_unit *seen_unit(const char *name) {
        for (size_t i = 0; i < seen.n_units; i++)
                if (strcmp(seen.units[i].name, name) == 0)
                        return &seen.units[i];
        return NULL;
}

static void on_changed(void *userdata, const struct systemd_unit *unit) {
        struct seen_unit *entry = seen_unit(unit->name);

        if (!entry)
                entry = &seen.units[seen.n_units++];
        assert_true(seen.n_units <= UNITS_MAX);
        snprintf(entry->name, sizeof(entry->name), "%s", unit->name);
        snprintf(entry->cgroup, sizeof(entry->cgroup), "%s", unit->cgroup_path);
        snprintf(entry->invocation, sizeof(entry->invocation), "%s", unit->invocation_id);
        entry->activity = unit->activity;
        entry->watchdog_usec = unit->watchdog_usec;
        entry->sets_agent = unit->sets_agent;
        entry->forbids_unix = unit->forbids_unix;
        seen.news++;
}

static void on_removed(void *userdata, const char *name) {
        struct seen_unit *entry = seen_unit(name);

        assert_non_null(entry);
        *entry = seen.units[--seen.n_units];
        seen.removals++;
}

static void on_available(void *userdata, bool available) {
        assert_true(seen.available != available);
        seen.available = available;
}

static void start_units(void) {
        static const struct systemd_units_callbacks callbacks = { .changed = on_changed,
                                                                  .removed = on_removed,
                                                                  .available = on_available };

        assert_int_equal(systemd_units_new(event, bus_daemon.address, &callbacks, NULL, &units), 0);
}

/* A bound against hanging for ever, not a measure of speed. */
#define WAIT_UNTIL(condition)                                                  \
        do {                                                                   \
                int mg_turns = 0;                                              \
                while (!(condition)) {                                         \
                        if (mg_turns++ > 20000)                                \
                                fail_msg("waited in vain for %s", #condition); \
                        assert_true(sd_event_run(event, 1000) >= 0);           \
                }                                                              \
        } while (0)

/* Everything that was sent before has been handled on both ends. */
static void settle(void) {
        for (int i = 0; i < 50; i++)
                assert_true(sd_event_run(event, 2000) >= 0);
}

static int setup(void **state) {
        memset(&fake, 0, sizeof(fake));
        memset(&seen, 0, sizeof(seen));
        bus_daemon_start(&bus_daemon);
        assert_true(sd_event_new(&event) >= 0);
        fake_connect();
        return 0;
}

static int teardown(void **state) {
        units = systemd_units_free(units);
        fake_disconnect();
        event = sd_event_unref(event);
        bus_daemon_stop(&bus_daemon);
        return 0;
}

/* ---- tests ---- */

static void test_list(void **state) {
        struct fake_unit *unit;

        fake_add("nginx.service", "active")->watchdog_usec = 30 * MG_USEC_PER_SEC;
        fake_add("dbus.socket", "active");
        fake_add("gone.service", "inactive");
        fake_add("broken.service", "failed");
        fake_add("session-1.scope", "active");
        fake_add("slow.service", "activating");
        fake_add("system-a\\x2db.service", "reloading");
        fake_add("done.service", "active")->cgroup[0] = '\0'; /* a oneshot that remains */
        unit = fake_add("rootish.service", "active");
        strcpy(unit->cgroup, "/");
        start_units();
        WAIT_UNTIL(seen.available);
        assert_int_equal(fake.subscriptions, 1);
        assert_int_equal(seen.n_units, systemd_units_count(units));

        assert_non_null(seen_unit("nginx.service"));
        assert_string_equal(seen_unit("nginx.service")->cgroup, "/system.slice/nginx.service");
        assert_string_equal(
                        seen_unit("nginx.service")->invocation, "abababababababababababababababab");
        assert_int_equal(seen_unit("nginx.service")->watchdog_usec, 30 * MG_USEC_PER_SEC);
        assert_int_equal(seen_unit("nginx.service")->activity, MG_ACTIVITY_ACTIVE);
        assert_non_null(seen_unit("session-1.scope"));
        assert_true(seen_unit("session-1.scope")->watchdog_usec == MG_UNKNOWN);
        assert_int_equal(seen_unit("slow.service")->activity, MG_ACTIVITY_ACTIVATING);
        assert_int_equal(seen_unit("system-a\\x2db.service")->activity, MG_ACTIVITY_RELOADING);
        assert_null(seen_unit("gone.service"));
        assert_null(seen_unit("broken.service"));
        assert_null(seen_unit("done.service"));
        assert_null(seen_unit("rootish.service"));
}

static void test_agent_facts(void **state) {
        struct fake_unit *unit = fake_add("a.service", "active");

        unit->environment = "LD_PRELOAD=/a.so:/usr/$LIB/libmemguard-preload.so";
        unit->only_family = "AF_INET";
        unit = fake_add("b.service", "active");
        unit->environment = "LD_PRELOAD=/a.so";
        unit->only_family = "AF_UNIX";
        fake_add("c.service", "active");
        fake_add("d.scope", "active");
        start_units();
        WAIT_UNTIL(seen.available);
        assert_int_equal(seen_unit("a.service")->sets_agent, MG_FACT_YES);
        assert_int_equal(seen_unit("a.service")->forbids_unix, MG_FACT_YES);
        assert_int_equal(seen_unit("b.service")->sets_agent, MG_FACT_NO);
        assert_int_equal(seen_unit("b.service")->forbids_unix, MG_FACT_NO);
        assert_int_equal(seen_unit("c.service")->sets_agent, MG_FACT_NO);
        assert_int_equal(seen_unit("c.service")->forbids_unix, MG_FACT_NO);
        assert_int_equal(seen_unit("d.scope")->sets_agent, MG_FACT_UNKNOWN);
        assert_int_equal(seen_unit("d.scope")->forbids_unix, MG_FACT_UNKNOWN);
}

static void test_states(void **state) {
        struct fake_unit *unit = fake_add("a.service", "active");

        start_units();
        WAIT_UNTIL(seen.available && seen_unit("a.service"));
        fake_emit_state(unit, "reloading");
        WAIT_UNTIL(seen_unit("a.service")->activity == MG_ACTIVITY_RELOADING);
        fake_emit_state(unit, "active");
        WAIT_UNTIL(seen_unit("a.service")->activity == MG_ACTIVITY_ACTIVE);
        fake_emit_state(unit, "deactivating");
        WAIT_UNTIL(seen_unit("a.service")->activity == MG_ACTIVITY_DEACTIVATING);
        fake_emit_state(unit, "inactive");
        WAIT_UNTIL(!seen_unit("a.service"));

        /* The next life has another InvocationID; the cgroup comes with its processes. */
        unit->invocation = 0xcd;
        unit->cgroup[0] = '\0';
        fake_emit_state(unit, "activating");
        settle();
        assert_null(seen_unit("a.service"));
        strcpy(unit->cgroup, "/system.slice/a.service");
        fake_emit_state(unit, "active");
        WAIT_UNTIL(seen_unit("a.service"));
        assert_string_equal(seen_unit("a.service")->invocation, "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd");
        fake_emit_state(unit, "failed");
        WAIT_UNTIL(!seen_unit("a.service"));
}

static void test_come_and_go(void **state) {
        start_units();
        WAIT_UNTIL(seen.available);
        fake_add("b.scope", "active");
        fake_emit_unit("UnitNew", "b.scope");
        WAIT_UNTIL(seen_unit("b.scope"));
        fake_unit("b.scope")->loaded = false;
        fake_emit_unit("UnitRemoved", "b.scope");
        WAIT_UNTIL(!seen_unit("b.scope"));
        assert_int_equal(systemd_units_count(units), 0);

        /* Gone before it could be asked about; a kind nobody asked for; a signal for a stranger. */
        fake_emit_unit("UnitNew", "short.service");
        fake_emit_unit("UnitNew", "x.mount");
        fake_emit_unit("UnitRemoved", "never-seen.service");
        settle();
        assert_int_equal(seen.n_units, 0);
        assert_int_equal(fake.loads, 0);
}

/* Asking about a unit that has just gone makes systemd load it, say so and forget it: that is nothing to ask about. */
static void test_asking_is_no_news(void **state) {
        start_units();
        WAIT_UNTIL(seen.available);
        fake_add("brief.service", "active")->ends = true;
        fake_emit_unit("UnitNew", "brief.service");
        WAIT_UNTIL(fake.loads > 0);
        settle();
        assert_int_equal(fake.loads, 6); /* one for each of its properties */
        assert_int_equal(seen.n_units, 0);
}

/* Two hundred restarts in a row: the last state wins, nothing is left in flight. */
static void test_restart_storm(void **state) {
        struct fake_unit *unit = fake_add("storm.service", "active");

        start_units();
        WAIT_UNTIL(seen.available && seen_unit("storm.service"));
        for (int i = 0; i < 200; i++) {
                unit->invocation = (uint8_t) i;
                fake_emit_state(unit, "inactive");
                fake_emit_state(unit, "activating");
                fake_emit_state(unit, "active");
        }
        unit->invocation = 0xee;
        fake_emit_state(unit, "inactive");
        fake_emit_state(unit, "active");
        WAIT_UNTIL(seen_unit("storm.service") && seen_unit("storm.service")->invocation[0] == 'e');
        settle();
        assert_int_equal(seen.n_units, 1);
        assert_int_equal(seen_unit("storm.service")->activity, MG_ACTIVITY_ACTIVE);
}

static void test_many(void **state) {
        for (int i = 0; i < 500; i++) {
                char name[32];
                snprintf(name, sizeof(name), "unit-%d.service", i);
                fake_add(name, "active");
        }
        start_units();
        WAIT_UNTIL(seen.available);
        assert_int_equal(seen.n_units, 500);

        /* daemon-reload: one unit went away in it, one changed its watchdog. */
        fake_unit("unit-7.service")->loaded = false;
        fake_unit("unit-8.service")->watchdog_usec = 5;
        assert_true(sd_bus_emit_signal(
                                    fake.bus, SYSTEMD_PATH, SYSTEMD_MANAGER, "Reloading", "b", 1) >=
                    0);
        assert_true(sd_bus_emit_signal(
                                    fake.bus, SYSTEMD_PATH, SYSTEMD_MANAGER, "Reloading", "b", 0) >=
                    0);
        WAIT_UNTIL(!seen_unit("unit-7.service") && seen_unit("unit-8.service")->watchdog_usec == 5);
        assert_int_equal(seen.n_units, 499);
        assert_int_equal(fake.lists, 2);
}

/* The bus dies and comes back: what was known stays until the new list corrects it. */
static void test_bus_restart(void **state) {
        fake_add("a.service", "active");
        fake_add("b.service", "active");
        start_units();
        WAIT_UNTIL(seen.available && seen.n_units == 2);
        fake_disconnect();
        bus_daemon_stop(&bus_daemon);
        WAIT_UNTIL(!seen.available);
        assert_int_equal(seen.n_units, 2);
        fake_unit("b.service")->loaded = false;
        bus_daemon_start(&bus_daemon);
        fake_connect();
        WAIT_UNTIL(seen.available);
        assert_int_equal(seen.n_units, 1);
        assert_non_null(seen_unit("a.service"));
}

/* No bus at all: quiet. */
static void test_no_bus(void **state) {
        fake_disconnect();
        bus_daemon_stop(&bus_daemon);
        start_units();
        settle();
        assert_false(systemd_units_available(units));
        assert_int_equal(seen.news, 0);
}

/* A systemd that never answers: the loop turns, and freeing with calls in flight is clean. */
static void test_hanging_systemd(void **state) {
        for (int i = 0; i < 40; i++) {
                char name[32];
                snprintf(name, sizeof(name), "unit-%d.service", i);
                fake_add(name, "active");
        }
        fake.silent = true;
        start_units();
        WAIT_UNTIL(fake.n_unanswered == MG_ELEMENTS(fake.unanswered));
        assert_false(seen.available);
        fake_unit("unit-0.service")->loaded = false;
        fake_emit_unit("UnitRemoved", "unit-0.service");
        fake_emit_state(fake_unit("unit-1.service"), "inactive");
        settle();
        assert_int_equal(seen.n_units, 0);
}

static void test_activity(void **state) {
        static const struct {
                const char *state;
                bool has_processes;
                enum mg_activity activity;
        } cases[] = {
                { "active", true, MG_ACTIVITY_ACTIVE },
                { "reloading", true, MG_ACTIVITY_RELOADING },
                { "refreshing", true, MG_ACTIVITY_RELOADING },
                { "activating", true, MG_ACTIVITY_ACTIVATING },
                { "deactivating", true, MG_ACTIVITY_DEACTIVATING },
                { "inactive", false, MG_ACTIVITY_ACTIVE },
                { "failed", false, MG_ACTIVITY_ACTIVE },
                { "maintenance", false, MG_ACTIVITY_ACTIVE },
                { "", false, MG_ACTIVITY_ACTIVE },
                { "ACTIVE", false, MG_ACTIVITY_ACTIVE },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                enum mg_activity activity = MG_ACTIVITY_ACTIVE;
                assert_int_equal(
                                activity_from_state(cases[i].state, &activity),
                                cases[i].has_processes);
                assert_int_equal(activity, cases[i].activity);
        }
}

int main(void) {
#define BUS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_activity), BUS_TEST(test_list),
                BUS_TEST(test_agent_facts),      BUS_TEST(test_states),
                BUS_TEST(test_come_and_go),      BUS_TEST(test_asking_is_no_news),
                BUS_TEST(test_restart_storm),    BUS_TEST(test_many),
                BUS_TEST(test_bus_restart),      BUS_TEST(test_no_bus),
                BUS_TEST(test_hanging_systemd),
        };
        int failed = cmocka_run_group_tests(tests, NULL, NULL);
        bus_daemon_done(&bus_daemon);
        return failed;
}
