/* SPDX-License-Identifier: MIT */
/* What reaches journald's socket, and what stderr: a socket and a pipe of the test's own take their places. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/journal.h"
#include "daemon/message_ids.h"

static char directory[] = "/tmp/memguard-journal-XXXXXX";
static char socket_path[64];
static int journald_fd = -EBADF;

static const struct mg_journal_unit puma = { .name = "puma.service" };

static int setup(void **state) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (!mkdtemp(directory))
                return -1;
        snprintf(socket_path, sizeof(socket_path), "%s/socket", directory);
        strcpy(address.sun_path, socket_path);
        journald_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        return bind(journald_fd, (struct sockaddr *) &address, sizeof(address));
}

static int teardown(void **state) {
        close(journald_fd);
        unlink(socket_path);
        return rmdir(directory);
}

static int open_journal(void **state) {
        journal_open(LOG_DEBUG);
        journal_sink()->socket_path = socket_path;
        sink_set_target(journal_sink(), MG_LOG_TARGET_JOURNAL);
        return 0;
}

static int close_journal(void **state) {
        char rest[MG_RECORD_MAX];

        journal_close();
        while (recv(journald_fd, rest, sizeof(rest), 0) > 0)
                ;
        return 0;
}

/* An entry as journald takes it apart: "KEY=VALUE" lines, and "KEY", length, bytes for those with line ends. */
struct entry {
        char bytes[2 * MG_RECORD_MAX];
        size_t n_fields;
        char *fields[64];
};

static void split_entry(struct entry *entry, size_t length) {
        static char lines[4][MG_RECORD_MAX];
        size_t n_long = 0;

        for (char *at = entry->bytes, *end = at + length; at < end;) {
                char *line_end = memchr(at, '\n', (size_t) (end - at));
                assert_non_null(line_end);
                *line_end = '\0';
                assert_true(entry->n_fields < 64);
                if (strchr(at, '=')) {
                        entry->fields[entry->n_fields++] = at;
                        at = line_end + 1;
                        continue;
                }
                uint64_t size;
                memcpy(&size, line_end + 1, sizeof(size));
                size = le64toh(size);
                assert_true(line_end + 9 + size < end);
                assert_int_equal(line_end[9 + size], '\n');
                assert_true(n_long < 4);
                assert_true(strlen(at) + 1 + size < sizeof(lines[0]));
                strcpy(lines[n_long], at);
                strcat(lines[n_long], "=");
                strncat(lines[n_long], line_end + 9, size);
                entry->fields[entry->n_fields++] = lines[n_long++];
                at = line_end + 9 + size + 1;
        }
}

static bool receive_entry(struct entry *entry) {
        ssize_t n;

        entry->n_fields = 0;
        n = recv(journald_fd, entry->bytes, sizeof(entry->bytes), 0);
        if (n < 0)
                return false;
        split_entry(entry, (size_t) n);
        return true;
}

static const char *field(const struct entry *entry, const char *key) {
        size_t length = strlen(key);

        for (size_t i = 0; i < entry->n_fields; i++)
                if (strncmp(entry->fields[i], key, length) == 0 && entry->fields[i][length] == '=')
                        return entry->fields[i] + length + 1;
        return NULL;
}

static void expect_field(const struct entry *entry, const char *key, const char *value) {
        const char *have = field(entry, key);

        if (!have)
                fail_msg("no field %s", key);
        assert_string_equal(have, value);
}

static void expect_entry(const char *message_id, const char *priority, const char *text) {
        struct entry entry;

        assert_true(receive_entry(&entry));
        expect_field(&entry, "MESSAGE", text);
        expect_field(&entry, "PRIORITY", priority);
        expect_field(&entry, "SYSLOG_IDENTIFIER", "memguardd");
        if (message_id)
                expect_field(&entry, "MESSAGE_ID", message_id);
        else
                assert_null(field(&entry, "MESSAGE_ID"));
}

static const struct mg_outcome good_outcome = {
        .before_bytes = 1181 * MG_MIB,
        .after_bytes = 729 * MG_MIB,
        .expected_bytes = 505 * MG_MIB,
        .pause_usec = 16000,
        .duration_usec = 45000,
        .minor_faults = 17,
        .n_asked = 3,
        .n_answered = 3,
        .reason = MG_REASON_THRESHOLD,
};

static void test_trim(void **state) {
        struct entry entry;

        journal_trim(&(struct mg_journal_trim){ .unit = puma,
                                                .outcome = &good_outcome,
                                                .retained_bytes = 505 * MG_MIB,
                                                .pid = 4711 });
        assert_true(receive_entry(&entry));
        expect_field(&entry, "MESSAGE",
                     "puma.service: trimmed 452M of 505M: anon 1.1G -> 729M, worst pause 16ms");
        expect_field(&entry, "MESSAGE_ID", MG_MESSAGE_TRIM);
        expect_field(&entry, "PRIORITY", "6");
        expect_field(&entry, "MEMGUARD_UNIT", "puma.service");
        expect_field(&entry, "OBJECT_SYSTEMD_UNIT", "puma.service");
        assert_null(field(&entry, "OBJECT_SYSTEMD_USER_UNIT"));
        expect_field(&entry, "MEMGUARD_REASON", "threshold");
        expect_field(&entry, "MEMGUARD_RETAINED_BYTES", "529530880");
        expect_field(&entry, "MEMGUARD_BEFORE_BYTES", "1238368256");
        expect_field(&entry, "MEMGUARD_AFTER_BYTES", "764411904");
        expect_field(&entry, "TRIMMED_BYTES", "473956352");
        expect_field(&entry, "TRIMMED_USEC", "45000");
        expect_field(&entry, "MEMGUARD_PAUSE_USEC", "16000");
        expect_field(&entry, "MEMGUARD_MINOR_FAULTS", "17");
        expect_field(&entry, "MEMGUARD_PID", "4711");
}

static void test_trim_that_went_wrong(void **state) {
        struct mg_outcome outcome = good_outcome;

        outcome.n_answered = 2;
        outcome.n_refused = 1;
        outcome.by_hand = true;
        journal_trim(&(struct mg_journal_trim){ .unit = puma, .outcome = &outcome });
        expect_entry(MG_MESSAGE_TRIM, "6",
                     "puma.service: trimmed 452M of 505M: anon 1.1G -> 729M, worst pause 16ms, "
                     "1 of 3 processes did not answer, 1 of 3 processes refused (by hand)");

        outcome.n_answered = outcome.n_refused = 0;
        journal_trim(&(struct mg_journal_trim){ .unit = puma, .outcome = &outcome });
        expect_entry(MG_MESSAGE_TRIM_FAILED, "4",
                     "puma.service: nothing trimmed: of 3 processes asked none answered");

        outcome.n_answered = outcome.n_refused = 3;
        journal_trim(&(struct mg_journal_trim){ .unit = puma, .outcome = &outcome });
        expect_entry(MG_MESSAGE_TRIM_FAILED, "4",
                     "puma.service: nothing trimmed: of 3 processes asked none could or would");
}

static const struct mg_account known_account = {
        .anon_bytes = 1200 * MG_MIB,
        .live_bytes = 428 * MG_MIB,
        .retained_bytes = 505 * MG_MIB,
        .freeable_bytes = 505 * MG_MIB,
        .other_bytes = 267 * MG_MIB,
        .anon_known = true,
        .known = true,
};

static void test_decisions(void **state) {
        struct mg_slope slope = { .bytes_per_hour = 46 * (int64_t) MG_MIB };
        struct mg_decision decision = {
                .reason = MG_REASON_COOLDOWN,
                .account = known_account,
                .hold_until_usec = 70 * MG_USEC_PER_SEC,
        };

        journal_hold(&(struct mg_journal_hold){
                        .unit = puma, .decision = &decision, .now_usec = 10 * MG_USEC_PER_SEC });
        expect_entry(MG_MESSAGE_HOLD, "7",
                     "puma.service: held: the last trim is less than CooldownSec= ago (anon 1.1G, "
                     "live 428M, freeable 505M, pinned 0B, other 267M, for another 1min)");
        journal_verdict(&(struct mg_journal_verdict){ .unit = puma,
                                                      .before = MG_VERDICT_LEARNING,
                                                      .after = MG_VERDICT_RETENTION,
                                                      .account = &known_account,
                                                      .slope = &slope });
        expect_entry(MG_MESSAGE_VERDICT, "6",
                     "puma.service: verdict retention (was learning): anon 1.1G, live 428M, "
                     "freeable 505M, pinned 0B, other 267M, slope +46M/h");
        slope.bytes_per_hour = INT64_MIN;
        journal_verdict(&(struct mg_journal_verdict){
                        .unit = puma,
                        .before = MG_VERDICT_FLAT,
                        .after = MG_VERDICT_LEAK_SUSPECTED,
                        .account = &(struct mg_account){ .anon_bytes = MG_MIB },
                        .slope = &slope });
        expect_entry(MG_MESSAGE_VERDICT, "4",
                     "puma.service: verdict leak-suspected (was flat): anon 1M, slope -8E/h");
        journal_breaker(&(struct mg_journal_breaker){
                        .unit = puma, .pause_usec = 120000, .max_pause_usec = 50000, .pid = 12 });
        expect_entry(MG_MESSAGE_BREAKER, "4",
                     "puma.service: a trim may have held a thread up for 120ms, MaxPause= is 50ms: "
                     "only observed from now on, until 'memguardctl resume puma.service'");
        journal_pinned(&(struct mg_journal_pinned){ .unit = puma,
                                                    .gain_bytes = 2 * MG_MIB,
                                                    .expected_bytes = 505 * MG_MIB,
                                                    .backoff_usec = 600 * MG_USEC_PER_SEC,
                                                    .reason = MG_REASON_PINNED });
        expect_entry(MG_MESSAGE_PINNED, "6",
                     "puma.service: 2M of 505M came back, the rest is pinned by blocks in use; next "
                     "attempt in 10min at the earliest");
        journal_mode(&(struct mg_journal_mode){ .unit = puma,
                                                .before = MG_MODE_OBSERVE,
                                                .after = MG_MODE_TRIM,
                                                .file = "/etc/memguard.ini",
                                                .line = 12 });
        expect_entry(MG_MESSAGE_MODE, "6",
                     "puma.service: mode trim (was observe), set at /etc/memguard.ini:12");
}

static void test_daemon(void **state) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};

        journal_start(&(struct mg_journal_start){ .hierarchy = "unified",
                                                  .source = "cgroup",
                                                  .allocator = "jemalloc 5.3.0",
                                                  .units = 3,
                                                  .agents = 1,
                                                  .psi = true });
        expect_entry(MG_MESSAGE_START, "6",
                     "memguard " MG_VERSION
                     ": cgroup hierarchy unified, source cgroup, allocator jemalloc 5.3.0, PSI on, "
                     "3 units, 1 agent, configuration by default");
        problems_add(&problems, MG_SEVERITY_ERROR, "/etc/memguard.ini", 3,
                     "[a.service] X: unknown key");
        problems_add(&problems, MG_SEVERITY_WARNING, "/etc/memguard.ini", 4, "matches no unit");
        problems_add(&problems, MG_SEVERITY_ERROR, "/etc/memguard.ini", 0, "cannot be read");
        journal_config_rejected(&problems, false);
        expect_entry(MG_MESSAGE_CONFIG_REJECTED, "3",
                     "configuration rejected, the old one stays in force: 2 errors\n"
                     "/etc/memguard.ini:3: [a.service] X: unknown key\n"
                     "/etc/memguard.ini: cannot be read");
        journal_config_loaded(&(struct mg_journal_config){ .problems = &problems, .files = 1 });
        expect_entry(MG_MESSAGE_CONFIG_WARNING, "4", "/etc/memguard.ini:4: matches no unit");
        expect_entry(MG_MESSAGE_CONFIG_LOADED, "6", "configuration in force: 1 file");
        journal_no_pressure(-EOPNOTSUPP);
        expect_entry(MG_MESSAGE_NO_PRESSURE, "5",
                     "pressure information (PSI) cannot be used: Operation not supported; "
                     "thresholds go on without it");
        journal_paused(NULL, 0);
        expect_entry(MG_MESSAGE_PAUSED, "5", "all trimming paused by uid 0");
        journal_resumed(&puma, 1000);
        expect_entry(MG_MESSAGE_RESUMED, "5", "puma.service: resumed by uid 1000");
}

/* Whose line it is under: services and scopes only, and user units apart. */
static void test_object_fields(void **state) {
        static const struct {
                struct mg_journal_unit unit;
                const char *system, *user;
        } cases[] = {
                { { "a.service", false }, "a.service", NULL },
                { { "session-1.scope", false }, "session-1.scope", NULL },
                { { "a.service", true }, NULL, "a.service" },
                { { "redis-server.process", false }, NULL, NULL },
                { { "kubepods", false }, NULL, NULL },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                struct entry entry;
                journal_log(LOG_INFO, &cases[i].unit, "hello");
                assert_true(receive_entry(&entry));
                expect_field(&entry, "MEMGUARD_UNIT", cases[i].unit.name);
                if (cases[i].system)
                        expect_field(&entry, "OBJECT_SYSTEMD_UNIT", cases[i].system);
                else
                        assert_null(field(&entry, "OBJECT_SYSTEMD_UNIT"));
                if (cases[i].user)
                        expect_field(&entry, "OBJECT_SYSTEMD_USER_UNIT", cases[i].user);
                else
                        assert_null(field(&entry, "OBJECT_SYSTEMD_USER_UNIT"));
        }
}

/* A name that tries to become a field, a line or a terminal's command; texts longer than there is room. */
static void test_hostile_names(void **state) {
        struct mg_journal_unit evil = { .name = "x\nPRIORITY=0\n\033[2J.service" };
        struct entry entry;
        char *huge = malloc(100000);

        assert_non_null(huge);
        journal_log(LOG_INFO, &evil, "%s", "a\nb");
        assert_true(receive_entry(&entry));
        expect_field(&entry, "PRIORITY", "6");
        expect_field(&entry, "MEMGUARD_UNIT", "x?PRIORITY=0??[2J.service");
        expect_field(&entry, "MESSAGE", "x?PRIORITY=0??[2J.service: a?b");

        memset(huge, 'A', 99999);
        huge[99999] = '\0';
        journal_state_ignored(huge, huge, huge);
        assert_true(receive_entry(&entry));
        assert_null(field(&entry, "MEMGUARD_STATE_FILE"));
        expect_field(&entry, "MESSAGE_ID", MG_MESSAGE_STATE_IGNORED);
        assert_int_equal(strlen(field(&entry, "MESSAGE")), MG_MESSAGE_MAX - 1);
        free(huge);
}

static void test_level(void **state) {
        struct entry entry;

        journal_set_level(LOG_WARNING);
        journal_log(LOG_INFO, NULL, "too quiet");
        assert_int_equal(journal_errno(LOG_INFO, -ENOENT, NULL, "too quiet"), -ENOENT);
        assert_false(receive_entry(&entry));
        assert_int_equal(journal_errno(LOG_WARNING, -ENOENT, NULL, "open %s", "x"), -ENOENT);
        expect_entry(NULL, "4", "open x: No such file or directory");

        assert_int_equal(log_level_from_string("debug"), LOG_DEBUG);
        assert_int_equal(log_level_from_string("warn"), LOG_WARNING);
        assert_int_equal(log_level_from_string("Debug"), -EINVAL);
        assert_int_equal(log_level_from_string(""), -EINVAL);
        assert_string_equal(log_level_to_string(LOG_ERR), "err");
        assert_int_equal(log_target_from_string("console"), MG_LOG_TARGET_CONSOLE);
        assert_int_equal(log_target_from_string("kmsg"), -EINVAL);
}

/* Nobody reads: everything returns at once, what did not fit is counted and told when there is room again. */
static void test_full_journal(void **state) {
        struct mg_sink *sink = journal_sink();
        struct entry entry;
        uint64_t lost;

        for (int i = 0; i < 100000 && sink->lost == 0; i++) {
                struct mg_record record;
                record_init(&record, LOG_INFO, NULL);
                record_say(&record, "%d", i);
                sink_send(sink, &record);
        }
        assert_true(sink->lost > 0);
        journal_log(LOG_INFO, NULL, "lost too");
        lost = sink->lost;
        while (receive_entry(&entry))
                ;
        journal_log(LOG_INFO, NULL, "room again");
        expect_entry(NULL, "6", "room again");
        assert_int_equal(lost, 2);
        expect_entry(NULL, "4", "2 log messages were lost: the journal did not take them");
        assert_int_equal(sink->lost, 0);
}

static void test_missing_journal(void **state) {
        journal_sink()->socket_path = "/nonexistent/socket";
        journal_log(LOG_INFO, NULL, "nobody hears");
        assert_int_equal(journal_sink()->lost, 1);
}

static void read_stderr(int fd, char *buffer, size_t size) {
        ssize_t n = read(fd, buffer, size - 1);

        assert_true(n >= 0);
        buffer[n] = '\0';
}

static void test_stderr(void **state) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        struct mg_sink *sink = journal_sink();
        char buffer[8192];
        int fds[2];

        assert_int_equal(pipe(fds), 0);
        sink->stderr_fd = fds[1];
        sink_set_target(sink, MG_LOG_TARGET_CONSOLE);
        problems_add(&problems, MG_SEVERITY_ERROR, "f", 3, "wrong");
        journal_config_rejected(&problems, true);
        read_stderr(fds[0], buffer, sizeof(buffer));
        assert_string_equal(
                        buffer,
                        "<3>configuration rejected, memguardd does not start: 1 error\n<3>f:3: wrong\n");
        sink_set_target(sink, MG_LOG_TARGET_NULL);
        journal_log(LOG_ERR, NULL, "not shown");
        assert_int_equal(sink->lost, 0);

        /* A pipe that nobody reads fills up: nothing waits. */
        sink_set_target(sink, MG_LOG_TARGET_CONSOLE);
        for (int i = 0; i < 100000 && sink->lost == 0; i++) {
                struct mg_record record;
                record_init(&record, LOG_INFO, NULL);
                record_say(&record, "%d", i);
                sink_send(sink, &record);
        }
        assert_true(sink->lost > 0);
        close(fds[0]);
        journal_log(LOG_ERR, NULL, "the reader is gone");
        close(fds[1]);
}

static void test_journal_stream(void **state) {
        struct stat st;
        char text[64];

        assert_int_equal(fstat(journald_fd, &st), 0);
        snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long) st.st_dev,
                 (unsigned long long) st.st_ino);
        assert_true(stream_is_journal(text, journald_fd));
        assert_false(stream_is_journal(text, -1));
        strcat(text, "1");
        assert_false(stream_is_journal(text, journald_fd));
        assert_false(stream_is_journal(NULL, journald_fd));
        assert_false(stream_is_journal("", journald_fd));
        assert_false(stream_is_journal("8:", journald_fd));
        assert_false(stream_is_journal("x:y", journald_fd));
}

static void test_rate(void **state) {
        struct mg_event_rate rate = {};
        uint64_t now = 5 * MG_USEC_PER_HOUR;

        for (int i = 0; i < 3; i++)
                assert_true(event_rate_admit(&rate, 3, now));
        assert_false(event_rate_admit(&rate, 3, now + 1));
        assert_false(event_rate_admit(&rate, 3, now + MG_USEC_PER_MIN - 1));
        assert_int_equal(event_rate_take_suppressed(&rate, now + MG_USEC_PER_MIN - 1), 0);
        assert_int_equal(event_rate_take_suppressed(&rate, now + MG_USEC_PER_MIN), 2);
        assert_int_equal(event_rate_take_suppressed(&rate, now + MG_USEC_PER_MIN), 0);
        assert_true(event_rate_admit(&rate, 3, now + MG_USEC_PER_MIN));
}

/* A kind that shouts is cut off; other kinds are not. */
static void test_flood(void **state) {
        struct entry entry;
        int n = 0;

        for (int i = 0; i < 1000; i++) {
                journal_agent_problem(&(struct mg_journal_agent_problem){ .unit = puma,
                                                                          .pid = 7,
                                                                          .command = "ruby",
                                                                          .problem = "is silent" });
                while (receive_entry(&entry)) {
                        expect_field(&entry, "MESSAGE",
                                     "puma.service: ruby[7]: the agent is silent");
                        n++;
                }
        }
        assert_in_range(n, 1, 60);
        journal_source(&puma, MG_SOURCE_PROC, "no memory.stat");
        expect_entry(MG_MESSAGE_SOURCE, "5",
                     "puma.service: measured through /proc, process by process: no memory.stat");
}

int main(void) {
#define JOURNAL_TEST(f) cmocka_unit_test_setup_teardown(f, open_journal, close_journal)
        const struct CMUnitTest tests[] = {
                JOURNAL_TEST(test_trim),
                JOURNAL_TEST(test_trim_that_went_wrong),
                JOURNAL_TEST(test_decisions),
                JOURNAL_TEST(test_daemon),
                JOURNAL_TEST(test_object_fields),
                JOURNAL_TEST(test_hostile_names),
                JOURNAL_TEST(test_level),
                JOURNAL_TEST(test_full_journal),
                JOURNAL_TEST(test_missing_journal),
                JOURNAL_TEST(test_stderr),
                JOURNAL_TEST(test_journal_stream),
                cmocka_unit_test(test_rate),
                JOURNAL_TEST(test_flood),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
