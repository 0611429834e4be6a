/* SPDX-License-Identifier: MIT */
/*
 * The whole daemon in this process, in the proc source, against scripted agents in child processes. Nothing is timed: the
 * event loop runs until what is waited for is true, and a test that waits in vain is ended by the suite's timeout.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jemalloc/jemalloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include "../unit/check.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/peer.h"
#include "daemon/process.h"
#include "daemon/tick.h"
#include "daemon/trim.h"
#include "daemon/unit.h"
#include "fake_agent.h"

#define MIB     ((uint64_t) 1 << 20)
#define UNIT    "test-manager.process"
#define FAKES   8
#define HOLDING 24

struct fixture {
        char directory[64];
        char config[96];
        char socket[96];
        struct manager *manager;
        struct fake_agent fakes[FAKES];
        size_t n_fakes;
};

static void write_config(const struct fixture *f, const char *mode) {
        FILE *file = fopen(f->config, "w");

        fprintf(file,
                "[Daemon]\nIntervalSec=100ms\nAgentTimeoutSec=3s\n[" UNIT
                "]\nMode=%s\nTrimAbove=1M\n"
                "MinGain=1M\nMaxPause=5s\nCooldownSec=1h\nCooldownMaxSec=4h\n",
                mode);
        fclose(file);
}

static void start_manager(struct fixture *f) {
        const char *argv[] = { "memguardd", f->config, f->directory, "--source=proc", NULL };
        struct options options;
        char config[128], directory[128];

        snprintf(config, sizeof(config), "--config=%s", f->config);
        snprintf(directory, sizeof(directory), "--runtime-directory=%s", f->directory);
        argv[1] = config;
        argv[2] = directory;
        optind = 0;
        assert_int_equal(options_parse(&options, 4, (char **) argv), OPTIONS_RUN);
        options.config_file = f->config;
        options.runtime_directory = f->directory;
        assert_int_equal(manager_new(&options, &f->manager), 0);
        options_done(&options);
}

static int set_up(void **state) {
        struct fixture *f = calloc(1, sizeof(*f));

        strcpy(f->directory, "/tmp/memguard-daemon-XXXXXX");
        assert_non_null(mkdtemp(f->directory));
        snprintf(f->config, sizeof(f->config), "%s/memguard.ini", f->directory);
        snprintf(f->socket, sizeof(f->socket), "%s/agent.sock", f->directory);
        write_config(f, "observe");
        start_manager(f);
        *state = f;
        return 0;
}

static int tear_down(void **state) {
        struct fixture *f = *state;
        char command[128];

        for (size_t i = 0; i < f->n_fakes; i++)
                fake_stop(&f->fakes[i]);
        manager_free(f->manager);
        snprintf(command, sizeof(command), "rm -rf %s", f->directory);
        assert_int_equal(system(command), 0);
        free(f);
        return 0;
}

static void run_once(struct fixture *f) {
        int r = tick_run(f->manager, UINT64_MAX);

        if (r < 0)
                fail_msg("the event loop: %s", strerror(-r));
}

static void run_ticks(struct fixture *f, uint64_t n) {
        uint64_t until = f->manager->ticks + n;

        while (f->manager->ticks < until)
                run_once(f);
}

static struct unit *unit_here(struct fixture *f) {
        return unit_find(f->manager, UNIT);
}

static bool all_told(struct fixture *f, size_t n) {
        struct unit *unit = unit_here(f);
        size_t told = 0;

        if (!unit || unit->n_agents < n)
                return false;
        for (struct process *p = process_first(unit); p; p = process_next(p))
                told += p->sample.stats_at_usec != MG_UNKNOWN;
        return told >= n;
}

/* Starts agents and waits for their first statistics (but those who never give any). */
static void start_fakes(struct fixture *f, const enum fake_behaviour *behaviours, size_t n) {
        size_t speaking = 0;

        for (size_t i = 0; i < n; i++) {
                f->fakes[f->n_fakes++] = fake_start(f->socket, behaviours[i], HOLDING);
                speaking += behaviours[i] != FAKE_DEAF && behaviours[i] != FAKE_FOREIGN_ID;
        }
        while (!all_told(f, speaking))
                run_once(f);
        run_ticks(f, 1);
}

struct heard {
        unsigned times;
        struct trim_result result;
};

static void on_trimmed(void *userdata, const struct trim_result *result) {
        struct heard *heard = userdata;

        heard->times++;
        heard->result = *result;
}

static struct heard trim_now(struct fixture *f) {
        struct heard heard = {};

        assert_int_equal(trim_by_hand(unit_here(f), false, on_trimmed, &heard), 0);
        while (heard.times == 0)
                run_once(f);
        run_ticks(f, 1);
        assert_int_equal(heard.times, 1);
        return heard;
}

static void test_round(void **state) {
        static const enum fake_behaviour good[] = { FAKE_GOOD, FAKE_GOOD, FAKE_GOOD };
        struct fixture *f = *state;
        struct heard heard;

        start_fakes(f, good, 3);
        heard = trim_now(f);
        assert_int_equal(heard.result.status, TRIM_DONE);
        assert_int_equal(heard.result.outcome.n_asked, 3);
        assert_int_equal(heard.result.outcome.n_answered, 3);
        assert_int_equal(heard.result.outcome.n_refused, 0);
        assert_true(outcome_gain(&heard.result.outcome) >= 3 * (HOLDING - 1) * MIB);
        assert_true(outcome_gain(&heard.result.outcome) <= 3 * (HOLDING + 1) * MIB);
        assert_null(unit_here(f)->round);
        assert_int_equal(f->manager->n_rounds, 0);
}

static void test_dry_run(void **state) {
        static const enum fake_behaviour good[] = { FAKE_GOOD };
        struct fixture *f = *state;
        struct heard heard = {};

        start_fakes(f, good, 1);
        const struct peer *peer = process_first(unit_here(f))->peer;
        uint64_t asked = peer->last_id;
        assert_int_equal(trim_by_hand(unit_here(f), true, on_trimmed, &heard), 0);
        assert_int_equal(peer->last_id, asked);
        assert_int_equal(heard.times, 1);
        assert_int_equal(heard.result.status, TRIM_DRY_RUN);
        assert_true(heard.result.decision.expected_bytes >= (HOLDING - 1) * MIB);
        assert_int_equal(f->manager->n_rounds, 0);
        run_ticks(f, 2);
        assert_true(unit_here(f)->memory.anon_bytes >= HOLDING * MIB);
}

/* One bad agent among good ones: its own step fails, the others' memory comes back. */
static void check_among_good(
                struct fixture *f,
                enum fake_behaviour bad,
                uint32_t answered,
                uint32_t refused,
                uint32_t giving) {
        enum fake_behaviour behaviours[] = { FAKE_GOOD, bad, FAKE_GOOD };
        const struct mg_outcome *outcome;
        struct heard heard;

        start_fakes(f, behaviours, 3);
        heard = trim_now(f);
        outcome = &heard.result.outcome;
        assert_int_equal(heard.result.status, TRIM_DONE);
        assert_int_equal(outcome->n_answered, answered);
        assert_int_equal(outcome->n_refused, refused);
        assert_true(outcome_gain(outcome) >= giving * (HOLDING - 1) * MIB);
        /* What the bad one holds, or took along, is nobody's gain. */
        assert_true(outcome_gain(outcome) <= giving * (HOLDING + 2) * MIB);
}

static void test_hanging(void **state) {
        struct fixture *f = *state;
        size_t silent = 0;

        check_among_good(f, FAKE_HANGS, 2, 0, 2);
        for (struct process *p = process_first(unit_here(f)); p; p = process_next(p))
                silent += p->peer && p->peer->unresponsive;
        assert_int_equal(silent, 1);
}

static void test_vanishing(void **state) {
        struct fixture *f = *state;

        check_among_good(f, FAKE_VANISHES, 2, 0, 2);
        assert_int_equal(unit_here(f)->n_agents, 2);
        assert_int_equal(unit_here(f)->n_processes, 2);
}

static void test_lying(void **state) {
        struct fixture *f = *state;
        const struct mg_outcome *outcome;

        check_among_good(f, FAKE_LIES, 3, 0, 2);
        outcome = &unit_here(f)->policy.last;
        /* No pause can have been longer than the answer took: the breaker is not a liar's to open. */
        assert_true(outcome->pause_usec <= outcome->ended_usec - outcome->started_usec);
        assert_false(unit_here(f)->policy.breaker_open);
        assert_true(unit_here(f)->decision.account.live_bytes +
                                    unit_here(f)->decision.account.retained_bytes <=
                    unit_here(f)->decision.account.anon_bytes);
}

static void test_refusing(void **state) {
        check_among_good(*state, FAKE_REFUSES, 3, 1, 2);
}

static void test_late(void **state) {
        struct fixture *f = *state;

        check_among_good(f, FAKE_LATE, 2, 0, 2);
        while (f->manager->late_replies == 0)
                run_once(f);
        /* Heard from again: it is served again. */
        for (struct process *p = process_first(unit_here(f)); p; p = process_next(p))
                assert_false(p->peer && p->peer->unresponsive);
}

static void test_twice(void **state) {
        struct fixture *f = *state;

        check_among_good(f, FAKE_TWICE, 3, 0, 3);
        assert_true(f->manager->late_replies > 0);
}

static void test_foreign_id(void **state) {
        static const enum fake_behaviour behaviours[] = { FAKE_GOOD, FAKE_FOREIGN_ID };
        struct fixture *f = *state;

        start_fakes(f, behaviours, 2);
        /* Thrown out each time it comes back. */
        while (f->manager->hellos < 5)
                run_once(f);
        assert_true(f->manager->n_peers <= 2);
}

static void test_deaf(void **state) {
        static const enum fake_behaviour behaviours[] = { FAKE_GOOD, FAKE_DEAF };
        struct fixture *f = *state;
        struct heard heard;

        start_fakes(f, behaviours, 2);
        heard = trim_now(f);
        assert_int_equal(heard.result.outcome.n_answered, 1);
        assert_true(outcome_gain(&heard.result.outcome) >= (HOLDING - 1) * MIB);
}

static void test_gone_in_a_round(void **state) {
        static const enum fake_behaviour behaviours[] = { FAKE_HANGS };
        struct fixture *f = *state;
        struct heard heard = {};

        start_fakes(f, behaviours, 1);
        assert_int_equal(trim_by_hand(unit_here(f), false, on_trimmed, &heard), 0);
        assert_int_equal(trim_by_hand(unit_here(f), false, on_trimmed, &heard), -EBUSY);
        run_once(f);
        unit_free(unit_here(f));
        assert_int_equal(heard.times, 1);
        assert_int_equal(heard.result.status, TRIM_GONE);
        assert_int_equal(f->manager->n_rounds, 0);
        run_ticks(f, 5);
        assert_int_equal(heard.times, 1);
}

static void test_trims_by_itself(void **state) {
        static const enum fake_behaviour behaviours[] = { FAKE_GOOD };
        struct fixture *f = *state;
        struct mg_problems problems = {};

        start_fakes(f, behaviours, 1);
        run_ticks(f, 5);
        assert_int_equal(f->manager->trims, 0);
        assert_int_equal(unit_here(f)->decision.reason, MG_REASON_OBSERVED);
        write_config(f, "trim");
        assert_int_equal(manager_reload(f->manager, &problems), 0);
        problems_done(&problems);
        while (f->manager->trims == 0)
                run_once(f);
        run_ticks(f, 5);
        assert_int_equal(f->manager->trims, 1);
        assert_true(f->manager->trimmed_bytes >= (HOLDING - 1) * MIB);
}

/* The agents come back by themselves. */
static void restart(struct fixture *f, size_t n_agents) {
        f->manager = manager_free(f->manager);
        start_manager(f);
        while (!all_told(f, n_agents))
                run_once(f);
        run_ticks(f, 3);
}

static void spoil_states(const struct fixture *f) {
        char command[160];

        snprintf(command, sizeof(command), "sed -i s/TRIMS=/TRIMS=1/ %s/units/*.state",
                 f->directory);
        assert_int_equal(system(command), 0);
}

static void test_learned_lasts(void **state) {
        static const enum fake_behaviour good[] = { FAKE_GOOD, FAKE_GOOD };
        struct fixture *f = *state;
        struct mg_history_trim trim;
        uint64_t gain;

        start_fakes(f, good, 2);
        trim_now(f);
        gain = unit_here(f)->policy.last_gain_bytes;
        assert_true(gain > HOLDING * MIB);
        restart(f, 2);
        assert_int_equal(unit_here(f)->policy.trims, 1);
        assert_int_equal(unit_here(f)->policy.last_gain_bytes, gain);
        assert_true(history_get_trim(&unit_here(f)->history, 0, &trim));
        assert_false(history_get_trim(&unit_here(f)->history, 1, &trim));

        /* A damaged file costs what it held. */
        f->manager = manager_free(f->manager);
        spoil_states(f);
        start_manager(f);
        while (!all_told(f, 2))
                run_once(f);
        assert_int_equal(unit_here(f)->policy.trims, 0);
        assert_true(history_get_trim(&unit_here(f)->history, 0, &trim));

        /* Another process of the same name is another life. */
        trim_now(f);
        f->manager = manager_free(f->manager);
        fake_stop(&f->fakes[0]);
        fake_stop(&f->fakes[1]);
        start_manager(f);
        f->fakes[0] = fake_start(f->socket, FAKE_GOOD, HOLDING);
        while (!all_told(f, 1))
                run_once(f);
        assert_int_equal(unit_here(f)->policy.trims, 0);
        assert_int_equal(unit_here(f)->policy.last_gain_bytes, 0);
        assert_false(history_get_trim(&unit_here(f)->history, 0, &trim));
}

/* No runtime directory to write to any more: the daemon goes on. */
static void test_nothing_can_be_saved(void **state) {
        static const enum fake_behaviour good[] = { FAKE_GOOD };
        struct fixture *f = *state;

        start_fakes(f, good, 1);
        close(f->manager->units_dir_fd);
        close(f->manager->state_dir_fd);
        f->manager->units_dir_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        f->manager->state_dir_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(trim_now(f).result.status, TRIM_DONE);
        assert_true(manager_set_paused(f->manager, NULL, true) < 0);
        run_ticks(f, 2);
        assert_int_equal(unit_here(f)->decision.reason, MG_REASON_PAUSED);
}

/* Nothing has been told yet, and a neighbour is silent: an operator's trim looks first, and waits no longer than it must. */
static void test_by_hand_looks_first(void **state) {
        struct fixture *f = *state;
        struct heard heard;

        write_config(f, "off");
        f->manager = manager_free(f->manager);
        start_manager(f);
        f->fakes[f->n_fakes++] = fake_start(f->socket, FAKE_GOOD, HOLDING);
        f->fakes[f->n_fakes++] = fake_start(f->socket, FAKE_DEAF, HOLDING);
        while (!unit_here(f) || unit_here(f)->n_agents < 2)
                run_once(f);
        run_ticks(f, 2);
        assert_false(all_told(f, 1)); /* Mode=off: nobody is asked */
        heard = trim_now(f);
        assert_int_equal(heard.result.status, TRIM_DONE);
        assert_int_equal(heard.result.outcome.n_answered, 1);
        assert_true(outcome_gain(&heard.result.outcome) >= (HOLDING - 1) * MIB);
}

static void test_paused(void **state) {
        static const enum fake_behaviour behaviours[] = { FAKE_GOOD };
        struct fixture *f = *state;
        struct mg_problems problems = {};

        start_fakes(f, behaviours, 1);
        assert_int_equal(manager_set_paused(f->manager, unit_here(f), true), 0);
        write_config(f, "trim");
        assert_int_equal(manager_reload(f->manager, &problems), 0);
        run_ticks(f, 5);
        assert_int_equal(f->manager->trims, 0);
        assert_int_equal(unit_here(f)->decision.reason, MG_REASON_PAUSED);

        /* A bad file changes nothing, a restart neither. */
        write_config(f, "perhaps");
        assert_int_equal(manager_reload(f->manager, &problems), -EINVAL);
        assert_int_equal(unit_here(f)->config.mode, MG_MODE_TRIM);
        problems_done(&problems);
        write_config(f, "trim");
        restart(f, 1);
        assert_true(unit_here(f)->paused);
        assert_int_equal(f->manager->trims, 0);
        assert_int_equal(manager_set_paused(f->manager, NULL, false), 0);
        while (f->manager->trims == 0)
                run_once(f);
}

static size_t count_descriptors(void) {
        size_t n = 0;

        for (int fd = 0; fd < 1024; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static void send_descriptors(int fd) {
        int descriptors[4] = { 0, 1, 2, fd };
        char control[CMSG_SPACE(sizeof(descriptors))] = {};
        struct iovec iov = { (char *) "VERB=pong\nID=1\n", strlen("VERB=pong\nID=1\n") };
        struct msghdr header = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = control,
                .msg_controllen = sizeof(control),
        };
        struct cmsghdr *message = CMSG_FIRSTHDR(&header);

        message->cmsg_level = SOL_SOCKET;
        message->cmsg_type = SCM_RIGHTS;
        message->cmsg_len = CMSG_LEN(sizeof(descriptors));
        memcpy(CMSG_DATA(message), descriptors, sizeof(descriptors));
        assert_true(sendmsg(fd, &header, 0) > 0);
}

static void wait_peers(struct fixture *f, size_t n) {
        while (f->manager->n_peers != n)
                run_once(f);
}

static void test_descriptors(void **state) {
        struct fixture *f = *state;
        size_t before;
        int fd;

        run_ticks(f, 1);
        before = count_descriptors();
        fd = fake_connect(f->socket);
        wait_peers(f, 1);
        send_descriptors(fd);
        wait_peers(f, 0);
        close(fd);
        run_ticks(f, 1);
        assert_int_equal(count_descriptors(), before);
}

static void test_out_of_turn(void **state) {
        static const char *const table[] = {
                "",
                "nonsense",
                "VERB=stats\nID=1\n",
                "VERB=trim\nID=1\n",
                "VERB=pong\nID=1\n",
                "VERB=stats-reply\nID=0\nRESULT=done\nHEAPS=0\n",
                "VERB=checkpoint\nTAG=early\n",
                "VERB=suspend\n",
                "VERB=resume\n",
                "VERB=hello\nPROTOCOL=0\nHEAPS=0\nMODE=linked\n",
                "VERB=hello\nPROTOCOL=2\nHEAPS=0\nMODE=linked\n",
                "VERB=hello\nPROTOCOL=1\nHEAPS=5\nMODE=linked\n",
                "VERB=hello\nHEAPS=0\nMODE=linked\n",
        };
        struct fixture *f = *state;

        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                int fd = fake_connect(f->socket);

                wait_peers(f, 1);
                assert_int_equal(fake_send(fd, table[i]), 0);
                wait_peers(f, 0);
                close(fd);
        }
        assert_int_equal(unit_here(f) ? unit_here(f)->n_agents : 0, 0);
}

static void test_replaced(void **state) {
        struct fixture *f = *state;
        int first = fake_connect(f->socket);
        int second;
        char byte;

        assert_int_equal(fake_hello(first), 0);
        while (!unit_here(f) || unit_here(f)->n_agents == 0)
                run_once(f);
        second = fake_connect(f->socket);
        assert_int_equal(fake_hello(second), 0);
        while (recv(first, &byte, 1, MSG_DONTWAIT) != 0)
                run_once(f);
        run_ticks(f, 1);
        assert_int_equal(unit_here(f)->n_agents, 1);
        assert_int_equal(unit_here(f)->n_processes, 1);
        assert_int_equal(f->manager->n_peers, 1);
        assert_true(process_first(unit_here(f))->sample.has_agent);
        assert_true(process_first(unit_here(f))->sample.stats_at_usec == MG_UNKNOWN);
        /* Said twice over one connection it is nonsense. */
        assert_int_equal(fake_hello(second), 0);
        wait_peers(f, 0);
        close(first);
        close(second);
}

/* The agent has gone and its process has not: what it said is worth something for two minutes. */
static void test_orphaned_statistics(void **state) {
        static const enum fake_behaviour good[] = { FAKE_GOOD };
        struct fixture *f = *state;
        struct process *process;

        start_fakes(f, good, 1);
        process = process_first(unit_here(f));
        assert_int_equal(kill(process->proc.pid, SIGSTOP), 0);
        peer_close(process->peer, "in a test");
        run_ticks(f, 1);
        assert_true(process->sample.live_bytes != MG_UNKNOWN);
        process->sample.stats_at_usec = 1;
        run_ticks(f, 1);
        assert_true(process->sample.live_bytes == MG_UNKNOWN);
        assert_int_equal(unit_here(f)->decision.account.known, false);
        assert_int_equal(kill(process->proc.pid, SIGCONT), 0);
}

static void test_many_of_one_process(void **state) {
        struct fixture *f = *state;
        int fds[64];
        size_t open = 0;
        char byte;

        for (size_t i = 0; i < 64; i++)
                fds[i] = fake_connect(f->socket);
        run_ticks(f, 3);
        for (size_t i = 0; i < 64; i++) {
                open += recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0;
                close(fds[i]);
        }
        assert_in_range(open, 1, 8);
        wait_peers(f, 0);
}

static void test_flood(void **state) {
        static const enum fake_behaviour good[] = { FAKE_GOOD };
        struct fixture *f = *state;
        int fd;

        start_fakes(f, good, 1);
        fd = fake_connect(f->socket);
        assert_int_equal(fake_hello(fd), 0);
        wait_peers(f, 2);
        while (f->manager->n_peers == 2) {
                (void) send(fd, "VERB=checkpoint\n", 16, MSG_DONTWAIT | MSG_NOSIGNAL);
                (void) sd_event_run(f->manager->event, 0);
        }
        close(fd);
        assert_int_equal(trim_now(f).result.outcome.n_answered, 1);
}

static struct peer *own_peer(struct fixture *f) {
        struct unit *unit = unit_here(f);

        for (struct process *p = unit ? process_first(unit) : NULL; p; p = process_next(p))
                if (p->proc.pid == getpid() && p->peer && p->peer->state == PEER_READY)
                        return p->peer;
        return NULL;
}

/* Whoever may not be asked anything is not asked at a checkpoint either. */
static void test_checkpoint_in_mode_off(void **state) {
        static const enum mg_mode modes[] = { MG_MODE_OFF, MG_MODE_OBSERVE };
        struct fixture *f = *state;
        int fd = fake_connect(f->socket);

        assert_int_equal(fake_hello(fd), 0);
        while (!own_peer(f))
                run_once(f);
        for (size_t i = 0; i < MG_ELEMENTS(modes); i++) {
                struct unit *unit = unit_here(f);
                struct peer *peer = own_peer(f);

                unit->config.mode = modes[i];
                peer->request.verb = MG_VERB_UNKNOWN; /* whatever was asked is answered */
                peer->stats_cost_usec = 1;
                peer->stats_due_usec = unit->checkpoint_at_usec = 0;
                uint64_t asked = peer->last_id;
                assert_int_equal(fake_send(fd, "VERB=checkpoint\nTAG=here\n"), 0);
                while (unit->checkpoint_at_usec == 0)
                        assert_true(sd_event_run(f->manager->event, UINT64_MAX) >= 0);
                assert_int_equal(peer->last_id > asked, modes[i] != MG_MODE_OFF);
        }
        close(fd);
}

/* Reads what the daemon asks next. */
static void hear(struct fixture *f, int fd, char text[static 4097]) {
        ssize_t n;

        while ((n = recv(fd, text, 4096, MSG_DONTWAIT)) < 0)
                run_once(f);
        assert_true(n > 0);
        text[n] = '\0';
}

/* The one look without a known cost was in vain; what it cost is known all the same, and so there may be others. */
static void test_first_look_too_late(void **state) {
        struct fixture *f = *state;
        char text[4097], late[256];
        int fd = fake_connect(f->socket);

        assert_int_equal(
                        fake_send(fd,
                                  "VERB=hello\nPROTOCOL=1\nHEAPS=1\nMODE=linked\nVERSION=0.1.0\nCAN=stats,trim\n"
                                  "BASE_BYTES=0\nHEAP0_ALLOCATOR=glibc\nHEAP0_CAN=stats,trim\n"),
                        0);
        do
                hear(f, fd, text);
        while (!strstr(text, "VERB=stats\n"));
        assert_non_null(strstr(text, "FORCE=1"));
        snprintf(late, sizeof(late),
                 "VERB=stats-reply\nID=%ju\nRESULT=done\nHEAPS=0\nSTATS_COST_USEC=5\n",
                 (uintmax_t) own_peer(f)->last_id);
        while (!own_peer(f)->unresponsive)
                run_once(f);
        assert_int_equal(fake_send(fd, late), 0);
        do
                hear(f, fd, text);
        while (!strstr(text, "VERB=stats\n"));
        assert_null(strstr(text, "FORCE=1"));
        close(fd);
}

/* The end of a round makes room: who waits urgently does not wait for the next tick. */
static void test_room_for_the_urgent(void **state) {
        static const enum fake_behaviour good[] = { FAKE_GOOD };
        struct fixture *f = *state;
        struct heard heard = {};

        start_fakes(f, good, 1);
        f->manager->settings.interval_usec = MG_USEC_PER_HOUR;
        tick_rearm(f->manager);
        assert_int_equal(trim_by_hand(unit_here(f), false, on_trimmed, &heard), 0);
        unit_here(f)->tick_wished = true;
        while (unit_here(f)->tick_wished)
                run_once(f);
        assert_int_equal(heard.times, 1);
}

static void test_slow_to_read(void **state) {
        static const enum fake_behaviour good[] = { FAKE_GOOD };
        struct fixture *f = *state;

        start_fakes(f, good, 1);
        uint64_t sampled_usec = unit_here(f)->policy.last_sample_usec;
        unit_here(f)->rest_until_usec = MG_UNKNOWN;
        run_ticks(f, 3);
        assert_int_equal(unit_here(f)->policy.last_sample_usec, sampled_usec);
        unit_here(f)->rest_until_usec = 0;
        run_ticks(f, 1);
        assert_true(unit_here(f)->policy.last_sample_usec > sampled_usec);
}

static void test_second_daemon(void **state) {
        struct fixture *f = *state;
        pid_t child = fork();
        int status;

        if (child == 0) {
                struct options options = {
                        .config_file = f->config,
                        .runtime_directory = f->directory,
                        .by_hand = true,
                        .source = SOURCE_PROC,
                        .log_level = LOG_EMERG,
                };
                struct manager *manager = NULL;

                options.state_directory = strdup(f->directory);
                _exit(manager_new(&options, &manager) == -EWOULDBLOCK ? 0 : 1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        /* Nor did it take the first one's socket away. */
        close(fake_connect(f->socket));
        assert_int_equal(access(f->socket, F_OK), 0);
}

static uint64_t allocated_so_far(void) {
        uint64_t bytes;
        size_t size = sizeof(bytes);

        assert_int_equal(mallctl("thread.allocated", &bytes, &size, NULL, 0), 0);
        return bytes;
}

/* A tick with agents that are asked for statistics, and answer, takes nothing from the allocator. */
static void test_steady_tick(void **state) {
        static const enum fake_behaviour good[] = {
                FAKE_GOOD, FAKE_GOOD, FAKE_GOOD, FAKE_GOOD, FAKE_GOOD, FAKE_GOOD,
        };
        struct fixture *f = *state;
        uint64_t before;
        uint64_t asked;

        before = allocated_so_far();
        start_fakes(f, good, 6);
        if (allocated_so_far() == before) {
                print_message("skipped: malloc() is not jemalloc's here (a sanitizer's)\n");
                skip();
        }
        run_ticks(f, 5);
        /* Looking for new processes now and then is no part of the tick. */
        sd_event_source_set_enabled(f->manager->discovery_source, SD_EVENT_OFF);
        asked = process_first(unit_here(f))->peer->last_id;
        before = allocated_so_far();
        run_ticks(f, 20);
        assert_int_equal(allocated_so_far() - before, 0);
        assert_true(process_first(unit_here(f))->peer->last_id > asked + 10);
}

/* An argument is a pattern of the tests to run. */
int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_round, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_dry_run, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_hanging, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_vanishing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_lying, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_refusing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_late, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_twice, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_foreign_id, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_deaf, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_gone_in_a_round, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_trims_by_itself, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_learned_lasts, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_nothing_can_be_saved, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_by_hand_looks_first, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_paused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_descriptors, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_out_of_turn, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_replaced, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_orphaned_statistics, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_many_of_one_process, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_flood, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_checkpoint_in_mode_off, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_first_look_too_late, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_room_for_the_urgent, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_slow_to_read, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_second_daemon, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_steady_tick, set_up, tear_down),
        };

        signal(SIGPIPE, SIG_IGN);
        if (argc > 1)
                cmocka_set_test_filter(argv[1]);
        journal_open(LOG_ERR);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
