/* SPDX-License-Identifier: MIT */
/* The daemon's answers, of this version, of others, and of none. */
#include "exporter/decode.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/macros.h"
#include "check.h"

static sd_bus *bus;
static int other_end;
static sd_bus_message *message;
static struct snapshot snapshot;

/* A bus that was begun and never answered: enough to make messages. */
static int set_up_bus(void **state) {
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0 ||
            sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fds[0], fds[0]) < 0 || sd_bus_start(bus) < 0)
                return -1;
        other_end = fds[1];
        return 0;
}

static int tear_down_bus(void **state) {
        bus = sd_bus_close_unref(bus);
        close(other_end);
        return 0;
}

static int set_up(void **state) {
        snapshot_init(&snapshot);
        return sd_bus_message_new_signal(bus, &message, "/x", "x.x", "X") < 0 ? -1 : 0;
}

static int tear_down(void **state) {
        message = sd_bus_message_unref(message);
        snapshot_done(&snapshot);
        return 0;
}

static void seal(void) {
        assert_true(sd_bus_message_seal(message, 1, 0) >= 0);
        assert_true(sd_bus_message_rewind(message, true) >= 0);
}

static uint64_t number_of(const struct snapshot_unit *unit, const char *key) {
        int slot = metric_find(unit_metrics, UNIT_METRICS, key);

        assert_true(slot >= 0);
        return unit->number[slot];
}

static void test_host(void **state) {
        assert_true(sd_bus_message_append(
                                    message, "a{sv}", 4, "version", "s", "9.9", "units", "t",
                                    UINT64_C(7), "paused", "b", 1, "psi", "b", 0) >= 0);
        seal();
        assert_int_equal(decode_host(message, &snapshot), 0);
        assert_string_equal(snapshot.version, "9.9");
        for (size_t i = 0; i < HOST_METRICS; i++) {
                const char *key = host_metrics[i].key;
                uint64_t want = mg_streq(key, "units")    ? 7
                                : mg_streq(key, "paused") ? 1
                                : mg_streq(key, "psi")    ? 0
                                                          : MG_UNKNOWN;
                assert_int_equal(snapshot.number[i], want);
        }
}

static void test_nothing(void **state) {
        assert_true(sd_bus_message_append(message, "aa{sv}", 2, 0, 0) >= 0);
        seal();
        assert_int_equal(decode_units(message, &snapshot), 0);
        assert_int_equal(snapshot.n_units, 2);
        assert_null(snapshot.units[0].name);
        assert_int_equal(number_of(&snapshot.units[1], "anon_bytes"), MG_UNKNOWN);
        snapshot_limit(&snapshot, 10, 10);
        assert_int_equal(snapshot.n_units, 1);
}

static void test_unit(void **state) {
        assert_true(sd_bus_message_append(
                                    message, "aa{sv}", 1, 10, "unit", "s", "a.service", "cgroup",
                                    "s", "/a.service", "anon_bytes", "t", UINT64_MAX - 1,
                                    "slope_bytes_per_hour", "x", INT64_C(-1), "breaker", "b", 1,
                                    "results", "a{sv}", 2, "done", "t", UINT64_C(3), "failed", "t",
                                    UINT64_C(1), "held_usec", "a{sv}", 1, "cooldown", "t",
                                    UINT64_C(5), "pause_sum_usec", "t", UINT64_C(77), "pauses",
                                    "aa{sv}", 2, 2, "up_to_usec", "t", UINT64_C(1000), "count", "t",
                                    UINT64_C(2), 1, "count", "t", UINT64_C(1), "allocators",
                                    "aa{sv}", 3, 2, "name", "s", "glibc", "pid", "t", UINT64_C(9),
                                    3, "name", "s", "jemalloc", "pid", "t", UINT64_C(9),
                                    "active_bytes", "t", UINT64_C(4096), 1, "pid", "t",
                                    UINT64_C(10)) >= 0);
        seal();
        assert_int_equal(decode_units(message, &snapshot), 0);
        assert_int_equal(snapshot.n_units, 1);

        const struct snapshot_unit *unit = &snapshot.units[0];
        assert_string_equal(unit->name, "a.service");
        assert_string_equal(unit->cgroup, "/a.service");
        assert_int_equal(number_of(unit, "anon_bytes"), UINT64_MAX - 1);
        assert_int_equal(number_of(unit, "breaker"), 1);
        assert_true(unit->slope_known && unit->slope_bytes_per_hour == -1);
        assert_int_equal(unit->results.n, 2);
        assert_string_equal(unit->results.list[1].name, "failed");
        assert_int_equal(unit->held_usec.list[0].value, 5);
        assert_int_equal(unit->pauses.n, 2);
        assert_int_equal(unit->pauses.up_to_usec[1], MG_UNKNOWN);
        assert_int_equal(unit->pauses.count[0], 2);
        assert_int_equal(unit->pauses.sum_usec, 77);
        assert_int_equal(unit->n_heaps, 3);
        assert_int_equal(unit->heaps[1].index, 1);
        assert_int_equal(unit->heaps[2].index, 0);
        assert_int_equal(unit->heaps[2].pid, 10);
        assert_null(unit->heaps[2].allocator);
}

/* Keys that this version lacks, of every type: what stands behind them is still read. */
static void test_newer_daemon(void **state) {
        assert_true(sd_bus_message_append(
                                    message, "aa{sv}", 1, 12, "y", "y", 1, "q", "q", 1, "i", "i", 1,
                                    "d", "d", 0.5, "o", "o", "/x", "as", "as", 2, "x", "y", "v",
                                    "v", "s", "x", "struct", "(st)", "x", UINT64_C(1), "ay", "ay",
                                    1, 1, "deep", "a{sa{sv}}", 1, "x", 1, "y", "t", UINT64_C(1),
                                    "pidmap", "a{tt}", 1, UINT64_C(1), UINT64_C(2), "anon_bytes",
                                    "t", UINT64_C(5)) >= 0);
        seal();
        assert_int_equal(decode_units(message, &snapshot), 0);
        assert_int_equal(number_of(&snapshot.units[0], "anon_bytes"), 5);
}

/* Known keys, types that nobody expects. */
static void test_other_types(void **state) {
        assert_true(sd_bus_message_append(
                                    message, "aa{sv}", 1, 9, "unit", "t", UINT64_C(1), "anon_bytes",
                                    "s", "much", "slope_bytes_per_hour", "t", UINT64_C(1), "pauses",
                                    "a{sv}", 1, "count", "t", UINT64_C(1), "results", "aa{sv}", 1,
                                    0, "allocators", "s", "none", "held_usec", "as", 1, "x",
                                    "swap_bytes", "x", INT64_C(-1), "agents", "t",
                                    UINT64_C(3)) >= 0);
        seal();
        assert_int_equal(decode_units(message, &snapshot), 0);

        const struct snapshot_unit *unit = &snapshot.units[0];
        assert_null(unit->name);
        assert_false(unit->slope_known);
        assert_int_equal(number_of(unit, "anon_bytes"), MG_UNKNOWN);
        assert_int_equal(number_of(unit, "swap_bytes"), MG_UNKNOWN);
        assert_int_equal(unit->pauses.n + unit->results.n + unit->held_usec.n + unit->n_heaps, 0);
        assert_int_equal(number_of(unit, "agents"), 3);
}

static void test_no_such_answer(void **state) {
        static const char *const types[] = { "", "s", "as", "a{ss}", "t" };

        for (size_t i = 0; i < MG_ELEMENTS(types); i++) {
                tear_down(NULL);
                assert_int_equal(set_up(NULL), 0);
                if (mg_streq(types[i], "s"))
                        assert_true(sd_bus_message_append(message, "s", "x") >= 0);
                else if (mg_streq(types[i], "t"))
                        assert_true(sd_bus_message_append(message, "t", UINT64_C(1)) >= 0);
                else if (*types[i])
                        assert_true(sd_bus_message_append(message, types[i], 0) >= 0);
                seal();
                assert_true(decode_host(message, &snapshot) < 0 ||
                            decode_units(message, &snapshot) < 0);
                assert_int_equal(snapshot.n_units, 0);
        }
}

/* More buckets than there is room for are ignored; no bound is overrun. */
static void test_too_many_buckets(void **state) {
        assert_true(sd_bus_message_open_container(message, 'a', "a{sv}") >= 0);
        assert_true(sd_bus_message_open_container(message, 'a', "{sv}") >= 0);
        assert_true(sd_bus_message_open_container(message, 'e', "sv") >= 0);
        assert_true(sd_bus_message_append(message, "s", "pauses") >= 0);
        assert_true(sd_bus_message_open_container(message, 'v', "aa{sv}") >= 0);
        assert_true(sd_bus_message_open_container(message, 'a', "a{sv}") >= 0);
        for (uint64_t i = 0; i < 3 * SNAPSHOT_BUCKETS_MAX; i++)
                assert_true(sd_bus_message_append(message, "a{sv}", 1, "count", "t", i) >= 0);
        for (int i = 0; i < 5; i++)
                assert_true(sd_bus_message_close_container(message) >= 0);
        seal();
        assert_int_equal(decode_units(message, &snapshot), 0);
        assert_int_equal(snapshot.units[0].pauses.n, SNAPSHOT_BUCKETS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_host),
                TEST(test_nothing),
                TEST(test_unit),
                TEST(test_newer_daemon),
                TEST(test_other_types),
                TEST(test_no_such_answer),
                TEST(test_too_many_buckets),
        };
        return cmocka_run_group_tests(tests, set_up_bus, tear_down_bus);
}
