/* SPDX-License-Identifier: MIT */
/* A manager for tests of its D-Bus side; see bus_fixture.h. */
#include "bus_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/tick.h"
#include <cmocka.h>

#include "base/macros.h"
#include "daemon/journal.h"
#include "daemon/self.h"

struct manager *manager;
int64_t most_allocated;
char config_path[64];
struct bus_daemon bus_daemon;
static char directory[32];
static char socket_path[64];
static bool by_hand = true; /* else the system bus is used too */

void write_config(const char *text) {
        FILE *file = fopen(config_path, "we");

        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

int setup_manager(void **state) {
        struct options options = {
                .config_file = config_path,
                .source = SOURCE_PROC,
                .log_level = -1,
                .by_hand = by_hand,
        };

        strcpy(directory, "/tmp/memguard-bus-XXXXXX");
        assert_non_null(mkdtemp(directory));
        assert_int_equal(chmod(directory, 0755), 0);
        snprintf(config_path, sizeof(config_path), "%s/ini", directory);
        snprintf(socket_path, sizeof(socket_path), "%s/bus", directory);
        write_config("[Daemon]\nIntervalSec=1h\nLogLevel=err\n[hog.service]\nMode=trim\nMinGain=1M\n");
        options.runtime_directory = directory;
        options.state_directory = malloc(64);
        assert_non_null(options.state_directory);
        snprintf(options.state_directory, 64, "%s/state", directory);
        journal_open(LOG_ERR);
        sink_set_target(journal_sink(), MG_LOG_TARGET_NULL);
        assert_int_equal(manager_new(&options, &manager), 0);
        return 0;
}

int teardown_manager(void **state) {
        char command[64];

        manager = manager_free(manager);
        assert_int_equal(access(socket_path, F_OK), -1);
        snprintf(command, sizeof(command), "rm -r %s", directory);
        return system(command);
}

void turn(int times) {
        for (int i = 0; i < times; i++)
                assert_true(tick_run(manager, 500) >= 0);
}

struct unit *make_unit(const char *name) {
        struct unit_identity identity = { .name = name };
        struct unit *unit;

        assert_int_equal(unit_get(manager, &identity, &unit), 0);
        return unit;
}

int connect_socket(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        strcpy(address.sun_path, socket_path);
        assert_int_equal(connect(fd, (struct sockaddr *) &address, sizeof(address)), 0);
        return fd;
}

sd_bus *connect_bus(sd_event *event) {
        sd_bus *bus;
        int fd = connect_socket();

        assert_true(sd_bus_new(&bus) >= 0);
        assert_true(sd_bus_set_fd(bus, fd, fd) >= 0);
        assert_true(sd_bus_start(bus) >= 0);
        if (event)
                assert_true(sd_bus_attach_event(bus, event, 0) >= 0);
        return bus;
}

static int wait_for(pid_t pid) {
        int status = -1;

        most_allocated = 0;

        for (int i = 0; i < 20000; i++) {
                if (waitpid(pid, &status, WNOHANG) == pid)
                        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
                int r = tick_run(manager, 1000);
                if (r < 0)
                        fail_msg("the event loop failed: %s", strerror(-r));
                most_allocated = MG_MAX(most_allocated, self_net_allocated());
        }
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        fail_msg("the client hung");
        return -1;
}

int run_as_nobody(int (*child)(void)) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                /* Not the test's sockets, or a client would wait for itself once the test is gone. */
                (void) close_range(3, ~0U, 0);
                if (setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
                    setresuid(NOBODY, NOBODY, NOBODY) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                        _exit(99);
                _exit(child());
        }
        return wait_for(pid);
}

int run_command(const char *command) {
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                (void) close_range(3, ~0U, 0);
                execl("/bin/sh", "sh", "-c", command, NULL);
                _exit(99);
        }
        return wait_for(pid);
}

sd_bus *connect_system(sd_event *event) {
        sd_bus *bus;

        if (sd_bus_new(&bus) < 0 || sd_bus_set_address(bus, bus_daemon.address) < 0 ||
            sd_bus_set_bus_client(bus, true) < 0 || sd_bus_start(bus) < 0)
                return NULL;
        return !event || sd_bus_attach_event(bus, event, 0) >= 0 ? bus : NULL;
}

void wait_for_name(sd_bus *bus) {
        for (int i = 0; i < 5000; i++) {
                turn(1);
                if (sd_bus_get_name_creds(bus, MG_BUS_NAME, 0, NULL) >= 0)
                        return;
        }
        fail_msg("the name " MG_BUS_NAME " did not come");
}

int setup_system(void **state) {
        static char policy[512];

        snprintf(policy, sizeof(policy), "%s/../../../conf/org.memguard1.conf",
                 getenv("TEST_DATA"));
        bus_daemon.policy = policy;
        bus_daemon_start(&bus_daemon);
        assert_int_equal(setenv("DBUS_SYSTEM_BUS_ADDRESS", bus_daemon.address, 1), 0);
        by_hand = false;
        return setup_manager(state);
}

int teardown_system(void **state) {
        by_hand = true;
        assert_int_equal(teardown_manager(state), 0);
        bus_daemon_done(&bus_daemon);
        return unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
}
