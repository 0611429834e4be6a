/* SPDX-License-Identifier: MIT */
/*
 * org.memguard1 over its own socket: a whole manager with units made by hand, and clients of every sort. The
 * well-behaved client lives in the manager's own event loop; others are processes or bare sockets.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "bus_fixture.h"
#include "daemon/bus_units.h"
#include "daemon/journal.h"
#include "daemon/peer.h"
#include "daemon/process.h"
#include "daemon/self.h"
#include "host/cleanup.h"
#include "host/memory_stat.h"

/* ---- replies as flat lines: "0/last_trim/result" = "s:done" ---- */

#define LINES_MAX 2048

static struct {
        char *path[LINES_MAX];
        char *value[LINES_MAX];
        size_t n;
} reply;

static void forget_reply(void) {
        for (size_t i = 0; i < reply.n; i++) {
                free(reply.path[i]);
                free(reply.value[i]);
        }
        reply.n = 0;
}

static void add_line(const char *path, const char *value) {
        assert_true(reply.n < LINES_MAX);
        reply.path[reply.n] = strdup(path);
        reply.value[reply.n++] = strdup(value);
}

static void flatten(sd_bus_message *message, const char *path);

static void flatten_basic(sd_bus_message *message, char type, const char *path) {
        char text[512];
        union {
                const char *s;
                int b;
                uint64_t t;
                int64_t x;
        } value;

        assert_true(sd_bus_message_read_basic(message, type, &value) > 0);
        switch (type) {
        case 's':
                snprintf(text, sizeof(text), "s:%s", value.s);
                break;
        case 'b':
                snprintf(text, sizeof(text), "b:%s", value.b ? "yes" : "no");
                break;
        case 't':
                snprintf(text, sizeof(text), "t:%" PRIu64, value.t);
                break;
        case 'x':
                snprintf(text, sizeof(text), "x:%" PRId64, value.x);
                break;
        default:
                fail_msg("%s has type %c", path, type);
        }
        add_line(path, text);
}

static void flatten_members(sd_bus_message *message, const char *path, bool dictionary) {
        char below[256];
        const char *key;

        for (unsigned i = 0; sd_bus_message_at_end(message, false) == 0; i++) {
                if (dictionary) {
                        assert_true(sd_bus_message_enter_container(message, 'e', "sv") > 0);
                        assert_true(sd_bus_message_read(message, "s", &key) > 0);
                        snprintf(below, sizeof(below), "%s/%s", path, key);
                } else
                        snprintf(below, sizeof(below), "%s/%u", path, i);
                flatten(message, below);
                if (dictionary)
                        assert_true(sd_bus_message_exit_container(message) > 0);
        }
}

static void flatten(sd_bus_message *message, const char *path) {
        const char *contents;
        char type;

        assert_true(sd_bus_message_peek_type(message, &type, &contents) > 0);
        if (type != 'a' && type != 'v') {
                flatten_basic(message, type, path);
                return;
        }
        assert_true(sd_bus_message_enter_container(message, type, contents) > 0);
        if (type == 'v')
                flatten(message, path);
        else
                flatten_members(message, path, contents[0] == '{');
        assert_true(sd_bus_message_exit_container(message) > 0);
}

static const char *line(const char *path) {
        for (size_t i = 0; i < reply.n; i++)
                if (strcmp(reply.path[i], path) == 0)
                        return reply.value[i];
        return NULL;
}

static void expect(const char *path, const char *value) {
        const char *have = line(path);

        if (!have)
                fail_msg("%s is not there", path);
        assert_string_equal(have, value);
}

static void expect_missing(const char *path) {
        if (line(path))
                fail_msg("%s is there: %s", path, line(path));
}

/* ---- the client ---- */

static sd_bus *client;

struct waiting {
        char error[256];
        char message[65536];
        bool done;
};

static int on_answer(sd_bus_message *answer, void *userdata, sd_bus_error *error) {
        struct waiting *waiting = userdata;
        const sd_bus_error *failure = sd_bus_message_get_error(answer);

        waiting->done = true;
        if (failure) {
                snprintf(waiting->error, sizeof(waiting->error), "%s", failure->name);
                snprintf(waiting->message, sizeof(waiting->message), "%s", failure->message);
        } else if (sd_bus_message_at_end(answer, true) == 0)
                flatten(answer, "");
        return 1;
}

static struct waiting answer;

static void wait_for_answer(void) {
        for (int i = 0; i < 5000 && !answer.done; i++)
                turn(1);
        assert_true(answer.done);
}

/* Calls, and turns the loop until the answer is in `reply` (or `answer` has the error). */
static void call(
                const char *path,
                const char *interface,
                const char *method,
                const char *types,
                ...) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        va_list arguments;

        forget_reply();
        answer = (struct waiting){};
        assert_true(sd_bus_message_new_method_call(
                                    client, &message, NULL, path, interface, method) >= 0);
        va_start(arguments, types);
        if (types[0] != '\0')
                assert_true(sd_bus_message_appendv(message, types, arguments) >= 0);
        va_end(arguments);
        assert_true(sd_bus_call_async(client, NULL, message, on_answer, &answer, 0) >= 0);
        wait_for_answer();
}

static void expect_ok(void) {
        if (answer.error[0] != '\0')
                fail_msg("%s: %s", answer.error, answer.message);
}

static int setup(void **state) {
        assert_int_equal(setup_manager(state), 0);
        client = connect_bus(manager->event);
        return 0;
}

static int teardown(void **state) {
        forget_reply();
        client = sd_bus_close_unref(client);
        return teardown_manager(state);
}

static struct process *make_process(struct unit *unit) {
        struct process *process;
        struct mg_proc proc;

        assert_int_equal(proc_open("/proc", getpid(), &proc), 0);
        assert_int_equal(process_new(unit, &proc, 0, &process), 0);
        process->sample.rss_anon_bytes = 1200 * MG_MIB;
        process->sample.live_bytes = 428 * MG_MIB;
        process->sample.system_bytes = 1000 * MG_MIB;
        process->sample.estimate_bytes = 505 * MG_MIB;
        process->sample.base_bytes = 0;
        process->sample.stats_at_usec = manager_now(manager);
        process->sample.stats_rss_bytes = MG_UNKNOWN;
        process->sample.has_agent = process->sample.can_trim = true;
        return process;
}

static struct peer agent = {
        .version = (char *) "0.1.0",
        .mode = (char *) "preload",
        .thread = (char *) "follow",
        .stats_cost_usec = 850,
        .n_heaps = 2,
        .heaps = {
                {
                        .allocator = (char *) "glibc",
                        .version = (char *) "2.36",
                        .options = (char *) "arena_max:8",
                        .can_trim = true,
                },
                { .allocator = (char *) "jemalloc", .prefix = (char *) "je_" },
        },
};

static void attach_agent(struct process *process) {
        memset(agent.heaps[0].number, 0xff, sizeof(agent.heaps[0].number));
        memset(agent.heaps[1].number, 0xff, sizeof(agent.heaps[1].number));
        agent.heaps[0].number[MG_HEAP_LIVE_BYTES] = 428 * MG_MIB;
        agent.heaps[0].number[MG_HEAP_FREEABLE_BYTES] = 505 * MG_MIB;
        agent.heaps[0].number[MG_HEAP_SERVES_MALLOC] = 1;
        process->peer = &agent;
        process->unit->n_agents = 1;
}

/* ---- reading ---- */

static void test_host(void **state) {
        char hostname[256];

        make_unit("hog.service");
        call(MANAGER, "GetHost", "");
        expect_ok();
        assert_int_equal(gethostname(hostname, sizeof(hostname)), 0);
        expect("/version", "s:" MG_VERSION);
        assert_string_equal(line("/hostname") + 2, hostname);
        expect("/units", "t:1");
        expect("/trimming", "t:0");
        expect("/no_agent", "t:1");
        expect("/agents", "t:0");
        expect("/source", "s:proc");
        expect("/paused", "b:no");
        expect("/late_replies", "t:0");
        assert_string_equal(line("/config_files/0") + 2, config_path);
        assert_non_null(line("/observing"));
        assert_non_null(line("/hierarchy"));
        assert_non_null(line("/psi"));
        assert_non_null(line("/uptime_usec"));
        assert_non_null(line("/history_bytes"));
        assert_true(strtoull(line("/self_anon_bytes") + 2, NULL, 10) > 0);
        assert_true(strtoull(line("/self_allocated_bytes") + 2, NULL, 10) > 0);
        assert_true(strtoull(line("/self_resident_bytes") + 2, NULL, 10) > 0);
}

static void fill_unit(struct unit *unit) {
        memory_unknown(&unit->memory);
        unit->memory.anon_bytes = 1200 * MG_MIB;
        unit->memory.swap_bytes = 0;
        unit->sampled = unit->decided = true;
        unit->n_pids = 3;
        unit->decision = (struct mg_decision){
                .reason = MG_REASON_COOLDOWN,
                .account = { .anon_bytes = 1200 * MG_MIB,
                             .live_bytes = 428 * MG_MIB,
                             .retained_bytes = 505 * MG_MIB,
                             .freeable_bytes = 500 * MG_MIB,
                             .pinned_bytes = 5 * MG_MIB,
                             .other_bytes = 267 * MG_MIB,
                             .anon_known = true,
                             .known = true },
                .trim_above_bytes = 256 * MG_MIB,
                .expected_bytes = 500 * MG_MIB,
                .predicted_pause_usec = 12000,
                .n_conditions = 2,
                .conditions = { { MG_REASON_OFF, MG_CONDITION_HOLDS, MG_QUANTITY_NONE, 0, 0 },
                                { MG_REASON_COOLDOWN, MG_CONDITION_FAILS, MG_QUANTITY_USEC, 5,
                                  MG_UNKNOWN } },
        };
        unit->policy.verdict.verdict = MG_VERDICT_RETENTION;
        unit->policy.verdict.slope_known = true;
        unit->policy.verdict.slope.bytes_per_hour = -4096;
        unit->policy.trims = 2;
        unit->policy.trimmed_bytes = 900 * MG_MIB;
        unit->policy.would_trim = 7;
        unit->policy.last = (struct mg_outcome){
                .before_bytes = 1300 * MG_MIB,
                .after_bytes = 850 * MG_MIB,
                .expected_bytes = 500 * MG_MIB,
                .pause_usec = 16000,
                .duration_usec = 40000,
                .n_asked = 3,
                .n_answered = 3,
                .n_refused = 1,
        };
        unit->last_round_wall_usec = 1700000000000000;
}

static void test_unit(void **state) {
        static const struct {
                const char *path, *value;
        } lines[] = {
                { "/0/unit", "s:hog.service" },
                { "/0/source", "s:proc" },
                { "/0/mode", "s:trim" },
                { "/0/anon_bytes", "t:1258291200" },
                { "/0/swap_bytes", "t:0" },
                { "/0/live_bytes", "t:448790528" },
                { "/0/retained_bytes", "t:599785472" },
                { "/0/freeable_bytes", "t:529530880" },
                { "/0/pinned_bytes", "t:70254592" },
                { "/0/other_bytes", "t:209715200" },
                { "/0/trim_above_bytes", "t:268435456" },
                { "/0/verdict", "s:retention" },
                { "/0/slope_bytes_per_hour", "x:-4096" },
                { "/0/reason", "s:cooldown" },
                { "/0/processes", "t:3" },
                { "/0/agents", "t:1" },
                { "/0/trims", "t:2" },
                { "/0/trimmed_bytes", "t:943718400" },
                { "/0/would_trim", "t:7" },
                { "/0/last_trim/at_usec", "t:1700000000000000" },
                { "/0/last_trim/before_bytes", "t:1363148800" },
                { "/0/last_trim/after_bytes", "t:891289600" },
                { "/0/last_trim/gain_bytes", "t:471859200" },
                { "/0/last_trim/expected_bytes", "t:524288000" },
                { "/0/last_trim/duration_usec", "t:40000" },
                { "/0/last_trim/pause_usec", "t:16000" },
                { "/0/last_trim/result", "s:partial" },
                { "/0/allocators/0/name", "s:glibc" },
                { "/0/allocators/0/version", "s:2.36" },
                { "/0/allocators/0/live_bytes", "t:448790528" },
                { "/0/allocators/0/freeable_bytes", "t:529530880" },
                { "/0/allocators/0/can_trim", "b:yes" },
                { "/0/allocators/0/options", "s:arena_max:8" },
                { "/0/allocators/1/name", "s:jemalloc" },
                { "/0/allocators/1/can_trim", "b:no" },
        };
        struct unit *unit = make_unit("hog.service");
        struct process *process = make_process(unit);

        attach_agent(process);
        fill_unit(unit);
        call(MANAGER, "ListUnits", "as", 1, "hog.service");
        process->peer = NULL;
        expect_ok();
        for (size_t i = 0; i < MG_ELEMENTS(lines); i++)
                expect(lines[i].path, lines[i].value);
        assert_non_null(line("/0/allocators/0/pid"));
        /* Unknown is left out, never 0. */
        expect_missing("/0/cgroup");
        expect_missing("/0/file_bytes");
        expect_missing("/0/shmem_bytes");
        expect_missing("/0/allocators/1/live_bytes");
        expect_missing("/0/allocators/1/version");
        expect_missing("/1/unit");
}

/* A name costs a few bytes and a row some thousand: naming a unit again brings nothing, whatever it is called by. */
static void test_named_twice(void **state) {
        static const char *names[1026];
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *message = NULL;

        make_unit("a.service");
        make_unit("hog.service");
        call(MANAGER, "ListUnits", "as", 5, "hog.service", "a.service", "hog.service",
             "hog.service", "a.service");
        expect_ok();
        expect("/0/unit", "s:hog.service");
        expect("/1/unit", "s:a.service");
        expect_missing("/2/unit");
        call(MANAGER, "ListUnits", "as", 1, "hog.service");
        expect_ok();
        expect("/0/unit", "s:hog.service");

        for (size_t i = 0; i < MG_ELEMENTS(names) - 1; i++)
                names[i] = "hog.service";
        forget_reply();
        answer = (struct waiting){};
        assert_true(sd_bus_message_new_method_call(client, &message, NULL, MANAGER, "ListUnits") >=
                    0);
        assert_true(sd_bus_message_append_strv(message, (char **) names) >= 0);
        assert_true(sd_bus_call_async(client, NULL, message, on_answer, &answer, 0) >= 0);
        wait_for_answer();
        assert_string_equal(answer.error, SD_BUS_ERROR_INVALID_ARGS);
        assert_non_null(strstr(answer.message, "1025"));
}

static void test_unmeasured_unit(void **state) {
        make_unit("new.service");
        make_unit("other.service");
        call(MANAGER, "ListUnits", "as", 0);
        expect_ok();
        expect("/0/unit", "s:new.service");
        expect("/1/unit", "s:other.service");
        expect("/0/mode", "s:observe");
        expect("/0/verdict", "s:learning");
        expect_missing("/0/anon_bytes");
        expect_missing("/0/live_bytes");
        expect_missing("/0/reason");
        expect_missing("/0/last_trim/result");
        call(MANAGER, "Explain", "s", "new.service");
        expect_ok();
        expect("/action", "s:hold");
        expect("/settings/0/key", "s:Mode");
}

static void test_no_such_unit(void **state) {
        static const char *const methods[] = { "ListProcesses", "Explain", "Pause", "Resume" };

        make_unit("a.service");
        for (size_t i = 0; i < MG_ELEMENTS(methods); i++) {
                call(MANAGER, methods[i], "s", "nosuch.service");
                assert_string_equal(answer.error, MG_BUS_ERROR_NO_SUCH_UNIT);
        }
        call(MANAGER, "TrimUnit", "sb", "nosuch.service", 0);
        assert_string_equal(answer.error, MG_BUS_ERROR_NO_SUCH_UNIT);
        call(MANAGER, "ListUnits", "as", 2, "a.service", "nosuch.service");
        assert_string_equal(answer.error, MG_BUS_ERROR_NO_SUCH_UNIT);
        call(MANAGER, "NoSuchMethod", "");
        assert_string_equal(answer.error, SD_BUS_ERROR_UNKNOWN_METHOD);
        call(MANAGER, "Explain", "u", 5);
        assert_string_equal(answer.error, SD_BUS_ERROR_INVALID_ARGS);
}

static void test_processes(void **state) {
        struct unit *unit = make_unit("hog.service");
        struct process *process = make_process(unit);

        attach_agent(process);
        strcpy(process->comm, "bad\xff\x01name");
        call(MANAGER, "ListProcesses", "s", "");
        process->peer = NULL;
        expect_ok();
        expect("/0/unit", "s:hog.service");
        expect("/0/command", "s:bad??name");
        expect("/0/rss_anon_bytes", "t:1258291200");
        expect("/0/live_bytes", "t:448790528");
        expect("/0/agent", "s:loaded");
        expect("/0/agent_version", "s:0.1.0");
        expect("/0/mode", "s:preload");
        expect("/0/thread", "s:follow");
        expect("/0/stats_cost_usec", "t:850");
        expect("/0/suspended", "b:no");
        expect("/0/allocators/0/name", "s:glibc");
        assert_non_null(line("/0/retained_bytes"));
        assert_non_null(line("/0/freeable_bytes"));
        assert_non_null(line("/0/stats_age_usec"));
        call(MANAGER, "ListProcesses", "s", "hog.service");
        expect_ok();
        assert_non_null(line("/0/agent"));
        assert_string_not_equal(line("/0/agent"), "s:loaded");
        expect_missing("/0/agent_version");
}

/* Two samples and a trim, and each of them from a moment on; what is unknown is left out. */
static void test_get_history(void **state) {
        struct unit *unit = make_unit("hog.service");
        uint64_t now_usec = manager_now(manager);

        history_add(&unit->history,
                    &(struct mg_history_sample){ 300 * MG_MIB, MG_UNKNOWN, MG_UNKNOWN, MG_UNKNOWN },
                    now_usec);
        history_add(&unit->history,
                    &(struct mg_history_sample){ 200 * MG_MIB, 120 * MG_MIB, 80 * MG_MIB,
                                                 64 * MG_MIB },
                    now_usec + 5 * MG_USEC_PER_SEC);
        fill_unit(unit);
        unit->policy.last.ended_usec = now_usec;
        unit->policy.last.reason = MG_REASON_THRESHOLD;
        history_trimmed(&unit->history, &unit->policy.last);
        call(MANAGER, "GetHistory", "st", "hog.service", UINT64_C(0));
        expect_ok();
        expect("/unit", "s:hog.service");
        expect("/trims_forgotten", "t:0");
        expect("/samples/0/anon_bytes", "t:314572800");
        expect("/samples/0/step_usec", "t:5000000");
        expect_missing("/samples/0/live_bytes");
        expect_missing("/samples/0/trim_above_bytes");
        expect("/samples/1/anon_bytes", "t:209715200");
        expect("/samples/1/live_bytes", "t:125829120");
        expect("/samples/1/retained_bytes", "t:83886080");
        expect("/samples/1/trim_above_bytes", "t:67108864");
        expect_missing("/samples/2/anon_bytes");
        expect("/trims/0/result", "s:partial");
        expect("/trims/0/reason", "s:threshold");
        expect("/trims/0/gain_bytes", "t:471859200");
        expect("/trims/0/pause_usec", "t:16000");
        expect_missing("/trims/1/result");
        call(MANAGER, "GetHistory", "st", "hog.service", UINT64_MAX);
        expect_ok();
        expect_missing("/samples/0/anon_bytes");
        expect_missing("/trims/0/result");
        call(MANAGER, "GetHistory", "st", "none.service", UINT64_C(0));
        assert_string_equal(answer.error, MG_BUS_ERROR_NO_SUCH_UNIT);
}

static void test_explain(void **state) {
        struct unit *unit = make_unit("hog.service");
        char line_5[80];

        fill_unit(unit);
        call(MANAGER, "Explain", "s", "hog.service");
        expect_ok();
        expect("/unit", "s:hog.service");
        expect("/action", "s:hold");
        expect("/reason", "s:cooldown");
        expect("/expected_bytes", "t:524288000");
        expect("/predicted_pause_usec", "t:12000");
        expect("/would_trim", "b:no");
        expect("/conditions/0/name", "s:off");
        expect("/conditions/0/state", "s:holds");
        expect("/conditions/0/quantity", "s:none");
        expect_missing("/conditions/0/have");
        expect("/conditions/1/state", "s:fails");
        expect("/conditions/1/have", "t:5");
        expect_missing("/conditions/1/want");
        expect_missing("/conditions/2/name");
        expect("/settings/0/key", "s:Mode");
        expect("/settings/0/value", "s:trim");
        snprintf(line_5, sizeof(line_5), "s:%s", config_path);
        expect("/settings/0/file", line_5);
        expect("/settings/0/line", "t:5");
        for (unsigned key = 0; key < _MG_UNIT_KEY_MAX; key++) {
                char path[64], want[64];
                snprintf(path, sizeof(path), "/settings/%u/key", key);
                snprintf(want, sizeof(want), "s:%s", unit_key_to_string(key));
                expect(path, want);
        }
        expect_missing("/settings/3/file"); /* MaxPause= is the default */
}

/* ---- acting ---- */

static void test_trim(void **state) {
        struct unit *unit = make_unit("hog.service");

        call(MANAGER, "TrimUnit", "sb", "hog.service", 0);
        expect_ok();
        expect("/unit", "s:hog.service");
        expect("/result", "s:held");
        expect("/reason", "s:no-agent");
        expect("/asked", "t:0");
        unit->round = (struct trim_round *) &unit; /* one is running */
        call(MANAGER, "TrimUnit", "sb", "hog.service", 0);
        unit->round = NULL;
        assert_string_equal(answer.error, MG_BUS_ERROR_NOT_NOW);
}

static void test_reload(void **state) {
        make_unit("hog.service");
        write_config("[Daemon]\nIntervalSec=1h\n[hog.service]\nTrimAbov=5M\nMode=sometimes\n");
        call(MANAGER, "Reload", "");
        assert_string_equal(answer.error, MG_BUS_ERROR_CONFIG_INVALID);
        assert_non_null(strstr(answer.message, "/ini:4: "));
        assert_non_null(strstr(answer.message, "\n"));
        assert_non_null(strstr(answer.message, "/ini:5: "));
        call(MANAGER, "Explain", "s", "hog.service");
        expect("/settings/0/value", "s:trim");

        write_config("[Daemon]\nIntervalSec=1h\n[hog.service]\nMode=observe\n[typo.service]\n");
        call(MANAGER, "Reload", "");
        expect_ok();
        assert_non_null(strstr(line("/0"), "typo.service"));
        expect_missing("/1");
        call(MANAGER, "Explain", "s", "hog.service");
        expect("/settings/0/value", "s:observe");
}

/* However many errors there are, all are told. */
static void test_reload_of_nonsense(void **state) {
        MG_CLEANUP(freep) char *text = NULL;
        size_t length;
        FILE *file = open_memstream(&text, &length);

        fputs("[Daemon]\nIntervalSec=1h\n", file);
        for (unsigned i = 0; i < 300; i++)
                fprintf(file, "[hog-%u.service]\nMode=sometimes\n", i);
        fclose(file);
        write_config(text);
        call(MANAGER, "Reload", "");
        assert_string_equal(answer.error, MG_BUS_ERROR_CONFIG_INVALID);
        assert_non_null(strstr(answer.message, "/ini:4: "));
        assert_non_null(strstr(answer.message, "/ini:602: "));
}

static void test_pause(void **state) {
        struct unit *unit = make_unit("hog.service");

        call(MANAGER, "Pause", "s", "hog.service");
        expect_ok();
        assert_true(unit->paused);
        call(MANAGER, "Resume", "s", "hog.service");
        expect_ok();
        assert_false(unit->paused);
        call(MANAGER, "Pause", "s", "");
        expect_ok();
        call(MANAGER, "GetHost", "");
        expect("/paused", "b:yes");
        call(MANAGER, "Resume", "s", "");
        expect_ok();
        assert_false(manager->paused);
}

/* It is in force all the same, and whoever asked for it is told. */
static void test_pause_cannot_be_saved(void **state) {
        struct unit *unit = make_unit("hog.service");
        int state_dir_fd = manager->state_dir_fd;

        manager->state_dir_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        call(MANAGER, "Pause", "s", "hog.service");
        assert_string_equal(answer.error, MG_BUS_ERROR_NOT_SAVED);
        assert_non_null(strstr(answer.message, "hog.service is paused now, but"));
        assert_non_null(strstr(answer.message, "restart"));
        assert_true(unit->paused);
        call(MANAGER, "Resume", "s", "hog.service");
        assert_string_equal(answer.error, MG_BUS_ERROR_NOT_SAVED);
        assert_non_null(strstr(answer.message, "hog.service is resumed now, but"));
        assert_false(unit->paused);
        close(manager->state_dir_fd);

        /* No state directory from the start. */
        manager->state_dir_fd = -EBADF;
        call(MANAGER, "Pause", "s", "");
        assert_string_equal(answer.error, MG_BUS_ERROR_NOT_SAVED);
        assert_non_null(strstr(answer.message, "Everything is paused now, but"));
        assert_true(manager->paused);
        manager->state_dir_fd = state_dir_fd;
        call(MANAGER, "Resume", "s", "");
        expect_ok();
}

static void test_log_level(void **state) {
        call(MANAGER, "SetLogLevel", "s", "debug");
        expect_ok();
        call(MANAGER, "GetLogLevel", "");
        expect("", "s:debug");
        call(MANAGER, "SetLogLevel", "s", "loud");
        assert_string_equal(answer.error, SD_BUS_ERROR_INVALID_ARGS);

        call(LOG_CONTROL_PROPERTIES, "GetAll", "s", "org.freedesktop.LogControl1");
        expect_ok();
        expect("/LogLevel", "s:debug");
        expect("/LogTarget", "s:null");
        expect("/SyslogIdentifier", "s:memguardd");
        call(LOG_CONTROL_PROPERTIES, "Set", "ssv", "org.freedesktop.LogControl1", "LogLevel", "s",
             "err");
        expect_ok();
        assert_int_equal(journal_level(), LOG_ERR);
        call(LOG_CONTROL_PROPERTIES, "Set", "ssv", "org.freedesktop.LogControl1", "LogTarget", "s",
             "kmsg");
        assert_string_equal(answer.error, SD_BUS_ERROR_INVALID_ARGS);
        call(LOG_CONTROL_PROPERTIES, "Set", "ssv", "org.freedesktop.LogControl1",
             "SyslogIdentifier", "s", "x");
        assert_string_equal(answer.error, SD_BUS_ERROR_PROPERTY_READ_ONLY);
}

/* ---- clients one would rather not have ---- */

static int call_denied(
                sd_bus *bus,
                const char *path,
                const char *interface,
                const char *method,
                const char *types,
                ...) {
        MG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        va_list arguments;
        int r;

        va_start(arguments, types);
        r = sd_bus_call_methodv(bus, NULL, path, interface, method, &error, NULL, types, arguments);
        va_end(arguments);
        return r < 0 && sd_bus_error_has_name(&error, SD_BUS_ERROR_ACCESS_DENIED);
}

static int stranger(void) {
        sd_bus *bus = connect_bus(NULL);

        if (sd_bus_call_method(bus, NULL, MANAGER, "GetHost", NULL, NULL, "") < 0)
                return 1;
        if (sd_bus_call_method(bus, NULL, MANAGER, "ListUnits", NULL, NULL, "as", 0) < 0)
                return 2;
        if (sd_bus_call_method(bus, NULL, MANAGER, "TrimUnit", NULL, NULL, "sb", "hog.service", 1) <
            0)
                return 3;
        if (!call_denied(bus, MANAGER, "TrimUnit", "sb", "hog.service", 0))
                return 4;
        if (!call_denied(bus, MANAGER, "Pause", "s", "") ||
            !call_denied(bus, MANAGER, "Resume", "s", ""))
                return 5;
        if (!call_denied(bus, MANAGER, "Reload", NULL) ||
            !call_denied(bus, MANAGER, "SetLogLevel", "s", "debug"))
                return 6;
        if (!call_denied(bus, LOG_CONTROL_PROPERTIES, "Set", "ssv", "org.freedesktop.LogControl1",
                         "LogLevel", "s", "debug"))
                return 7;
        return 0;
}

/* Claims to be somebody else in the message itself. */
static int impostor(void) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *message = NULL;
        sd_bus *bus = connect_bus(NULL);

        if (sd_bus_message_new_method_call(bus, &message, NULL, MANAGER, "Pause") < 0 ||
            sd_bus_message_set_sender(message, ":1.0") < 0 ||
            sd_bus_message_append(message, "s", "") < 0)
                return 1;
        return sd_bus_call(bus, message, 0, NULL, NULL) < 0 ? 0 : 2;
}

/* Opens more connections than one user may have: the later ones are closed, the first ones work. */
static int crowd(void) {
        sd_bus *first = connect_bus(NULL);
        struct pollfd fds[30];
        int closed = 0;

        for (size_t i = 0; i < MG_ELEMENTS(fds); i++)
                fds[i] = (struct pollfd){ .fd = connect_socket(), .events = POLLIN };
        while (closed < 23) {
                if (poll(fds, MG_ELEMENTS(fds), 10000) <= 0)
                        return 1;
                for (size_t i = 0; i < MG_ELEMENTS(fds); i++)
                        if (fds[i].fd >= 0 && fds[i].revents != 0) {
                                fds[i].fd = -1;
                                closed++;
                        }
        }
        return sd_bus_call_method(first, NULL, MANAGER, "GetHost", NULL, NULL, "") < 0 ? 2 : 0;
}

/* The header claims a message of 64 MiB. */
static int begin_huge_message(void) {
        static const char handshake[] = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n";
        static const unsigned char header[16] = { 'l', 1, 0, 1, 0, 0, 0, 4, 1, 0, 0, 0, 0x70 };
        int fd = connect_socket();
        char answer_line[256];

        if (send(fd, handshake, sizeof(handshake) - 1, MSG_NOSIGNAL) < 0 ||
            recv(fd, answer_line, sizeof(answer_line), 0) <= 0 ||
            send(fd, header, sizeof(header), MSG_NOSIGNAL) < 0)
                _exit(98);
        return fd;
}

/* Sends until the other side has had enough. */
static int flooder(void) {
        static char junk[65536];
        int fd = begin_huge_message();

        for (size_t sent = 0; sent < MG_GIB; sent += sizeof(junk))
                if (send(fd, junk, sizeof(junk), MSG_NOSIGNAL) < 0)
                        return 0;
        return 3;
}

/* Sends a little of it and waits: is shown the door before it has cost anything. */
static int sleeper(void) {
        struct pollfd pollfd = { .fd = begin_huge_message(), .events = POLLRDHUP };

        if (send(pollfd.fd, "junk", 4, MSG_NOSIGNAL) < 0)
                return 0;
        return poll(&pollfd, 1, 10000) == 1 ? 0 : 3;
}

/* Asks and asks and never reads: cut off before long. */
static int deaf(void) {
        sd_bus *bus = connect_bus(NULL);

        if (sd_bus_call_method(bus, NULL, MANAGER, "GetHost", NULL, NULL, "") < 0)
                return 1;
        for (int i = 0; i < 100000; i++) {
                MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *message = NULL;
                if (sd_bus_message_new_method_call(bus, &message, NULL, MANAGER, "ListUnits") < 0 ||
                    sd_bus_message_append(message, "as", 0) < 0)
                        return 2;
                uint64_t cookie; /* without one, no answer is expected */
                if (sd_bus_send(bus, message, &cookie) < 0 || sd_bus_flush(bus) < 0)
                        return 0;
        }
        return 3;
}

static void test_strangers(void **state) {
        static const struct {
                const char *name;
                int (*client)(void);
        } clients[] = {
                { "stranger", stranger }, { "impostor", impostor }, { "crowd", crowd },
                { "flooder", flooder },   { "sleeper", sleeper },   { "deaf", deaf },
        };

        if (getuid() != 0) {
                print_message("needs root, to run clients of another user\n");
                skip();
        }
        for (int i = 0; i < 40; i++) {
                char name[32];
                snprintf(name, sizeof(name), "unit-%d.service", i);
                make_unit(name);
        }
        make_unit("hog.service");
        for (size_t i = 0; i < MG_ELEMENTS(clients); i++) {
                int64_t before = self_net_allocated();
                int status;

                if (before == 0 && (clients[i].client == sleeper || clients[i].client == flooder)) {
                        print_message("the allocator in use does not count: no %s\n",
                                      clients[i].name);
                        continue;
                }
                status = run_as_nobody(clients[i].client);
                if (status != 0)
                        fail_msg("%s: %d", clients[i].name, status);
                turn(5);
                assert_false(manager->paused);
                call(MANAGER, "GetHost", "");
                expect_ok();
                assert_true(self_net_allocated() - before < (int64_t) MG_MIB);
        }
}

/* Asks for everything of a large host and reads nothing, on each connection that a user may have. */
static int hoarder(void) {
        sd_bus *busses[8];

        for (size_t i = 0; i < MG_ELEMENTS(busses); i++)
                busses[i] = connect_bus(NULL);
        for (size_t i = 0; i < MG_ELEMENTS(busses); i++) {
                if (sd_bus_call_method(busses[i], NULL, MANAGER, "GetLogLevel", NULL, NULL, "") < 0)
                        return 1;
                for (int n = 0; n < 4; n++) {
                        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *message = NULL;
                        uint64_t cookie;
                        if (sd_bus_message_new_method_call(
                                            busses[i], &message, NULL, MANAGER, "ListUnits") < 0 ||
                            sd_bus_message_append(message, "as", 0) < 0)
                                return 2;
                        if (sd_bus_send(busses[i], message, &cookie) < 0 ||
                            sd_bus_flush(busses[i]) < 0)
                                break;
                }
        }
        /* All are answered, or shown the door, by when this one is. */
        busses[0] = sd_bus_close_unref(busses[0]);
        for (int i = 0; i < 1000; i++) {
                busses[0] = connect_bus(NULL);
                int r = sd_bus_call_method(busses[0], NULL, MANAGER, "GetLogLevel", NULL, NULL, "");
                if (r >= 0)
                        return 0;
                sd_bus_close_unref(busses[0]);
        }
        return 3;
}

static int reader(void) {
        for (int i = 0; i < 3; i++)
                if (sd_bus_call_method(
                                    connect_bus(NULL), NULL, MANAGER, "ListUnits", NULL, NULL, "as",
                                    0) < 0)
                        return 1;
        return 0;
}

/* What waits for those who do not read is bounded in bytes; a host's whole answer is none too large for those who do. */
static void test_hoarder(void **state) {
        int64_t before, answer_bytes;

        if (getuid() != 0 || self_net_allocated() == 0) {
                print_message("needs root, to run clients of another user, and jemalloc's count\n");
                skip();
        }
        for (int i = 0; i < 2048; i++) {
                char name[32];
                snprintf(name, sizeof(name), "unit-%d.service", i);
                make_unit(name);
        }
        before = self_net_allocated();
        assert_int_equal(run_as_nobody(reader), 0);
        answer_bytes = most_allocated - before;
        /* Else the case is none: two of them have to be beyond the limit. */
        assert_true(answer_bytes > (int64_t) (4 * MG_MIB));
        assert_int_equal(run_as_nobody(hoarder), 0);
        /* A second answer was begun by nobody. */
        assert_true(most_allocated - before < 9 * answer_bytes);
        turn(20);
        assert_true(self_net_allocated() - before < (int64_t) MG_MIB);
}

static void test_garbage(void **state) {
        static const char *const garbage[] = {
                "GET / HTTP/1.1\r\n\r\n",
                "\r\n",
                "AUTH EXTERNAL 00\r\nBEGIN\r\nxxxxxxxxxxxxxxxxxxxxxxx",
        };

        for (size_t i = 0; i < MG_ELEMENTS(garbage); i++) {
                int fd = connect_socket();
                assert_true(send(fd, garbage[i], strlen(garbage[i]), MSG_NOSIGNAL) > 0);
                turn(5);
                close(fd);
                turn(5);
        }
        call(MANAGER, "GetHost", "");
        expect_ok();
}

/* Two thousand calls in flight at once, all answered; and clients that leave in the middle of one. */
static void test_many_calls(void **state) {
        static struct waiting waiting[2000];

        for (size_t i = 0; i < MG_ELEMENTS(waiting); i++) {
                waiting[i].done = false;
                assert_true(sd_bus_call_method_async(
                                            client, NULL, NULL, MANAGER, "GetLogLevel", on_answer,
                                            &waiting[i], "") >= 0);
        }
        for (int i = 0; i < 20000 && !waiting[MG_ELEMENTS(waiting) - 1].done; i++) {
                turn(1);
                forget_reply();
        }
        for (size_t i = 0; i < MG_ELEMENTS(waiting); i++) {
                assert_true(waiting[i].done);
                assert_string_equal(waiting[i].error, "");
        }
        for (int i = 0; i < 50; i++) {
                sd_bus *hasty = connect_bus(manager->event);
                assert_true(sd_bus_call_method_async(
                                            hasty, NULL, NULL, MANAGER, "GetHost", NULL, NULL,
                                            "") >= 0);
                turn(i % 6);
                sd_bus_close_unref(hasty);
        }
        turn(10);
        call(MANAGER, "GetHost", "");
        expect_ok();
}

static void test_utf8(void **state) {
        assert_true(utf8_is_clean(""));
        assert_true(utf8_is_clean("nginx.service"));
        assert_true(utf8_is_clean("gr\xc3\xbc\xc3\x9f"));
        assert_true(utf8_is_clean("\xf0\x9f\x8c\x8d"));
        assert_true(utf8_is_clean("a\tb\n"));
        assert_false(utf8_is_clean("\xff"));
        assert_false(utf8_is_clean("\xc3"));
        assert_false(utf8_is_clean("\xc0\x80"));         /* overlong NUL */
        assert_false(utf8_is_clean("\xe0\x80\xaf"));     /* overlong */
        assert_false(utf8_is_clean("\xed\xa0\x80"));     /* a surrogate */
        assert_false(utf8_is_clean("\xf4\x90\x80\x80")); /* beyond the last */
        assert_false(utf8_is_clean("\x1b[2J"));
        assert_false(utf8_is_clean("\x7f"));
}

int main(void) {
#define BUS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_utf8),
                BUS_TEST(test_host),
                BUS_TEST(test_unit),
                BUS_TEST(test_unmeasured_unit),
                BUS_TEST(test_no_such_unit),
                BUS_TEST(test_processes),
                BUS_TEST(test_get_history),
                BUS_TEST(test_explain),
                BUS_TEST(test_trim),
                BUS_TEST(test_reload),
                BUS_TEST(test_reload_of_nonsense),
                BUS_TEST(test_pause),
                BUS_TEST(test_pause_cannot_be_saved),
                BUS_TEST(test_log_level),
                BUS_TEST(test_garbage),
                BUS_TEST(test_many_calls),
                BUS_TEST(test_strangers),
                BUS_TEST(test_named_twice),
                BUS_TEST(test_hoarder),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
