/* SPDX-License-Identifier: MIT */
/* A private dbus-daemon. */
#include "bus_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char header[] =
                "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n"
                " \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
                "<busconfig><type>session</type><auth>EXTERNAL</auth>\n";

static const char open_policy[] =
                "<policy context=\"default\"><allow send_destination=\"*\"/><allow eavesdrop=\"true\"/>"
                "<allow own=\"*\"/><allow user=\"*\"/></policy>\n";

/* As in system.conf: names are nobody's, method calls go to the bus alone, unless a policy file says otherwise, as polkit's does. */
static const char system_policy[] =
                "<policy context=\"default\"><allow user=\"*\"/><deny own=\"*\"/><deny send_type=\"method_call\"/>"
                "<allow send_type=\"signal\"/><allow send_requested_reply=\"true\" send_type=\"method_return\"/>"
                "<allow send_requested_reply=\"true\" send_type=\"error\"/><allow receive_type=\"method_call\"/>"
                "<allow receive_type=\"method_return\"/><allow receive_type=\"error\"/>"
                "<allow receive_type=\"signal\"/><allow send_destination=\"org.freedesktop.DBus\"/>"
                "<allow send_destination=\"org.freedesktop.PolicyKit1\"/></policy>\n"
                "<policy user=\"root\"><allow own=\"org.freedesktop.PolicyKit1\"/></policy>\n";

static void skip(const char *reason) {
        const char *must = getenv("MEMGUARD_MUST_WORK");

        printf("skipped: %s\n", reason);
        exit(must && strcmp(must, "1") == 0 ? 1 : 77);
}

static void write_config(const struct bus_daemon *daemon, char *ret_path, size_t size) {
        FILE *file;

        snprintf(ret_path, size, "%s/config", daemon->directory);
        file = fopen(ret_path, "we");
        if (!file)
                abort();
        fprintf(file, "%s<listen>unix:path=%s/socket</listen>\n", header, daemon->directory);
        fputs(daemon->policy ? system_policy : open_policy, file);
        if (daemon->policy)
                fprintf(file, "<include>%s</include>\n", daemon->policy);
        fputs("</busconfig>\n", file);
        fclose(file);
}

void bus_daemon_start(struct bus_daemon *daemon) {
        char path[64], argument[96], ready[256];
        char *argv[] = { (char *) "dbus-daemon",       argument,
                         (char *) "--nofork",          (char *) "--nopidfile",
                         (char *) "--print-address=3", NULL };
        posix_spawn_file_actions_t actions;
        int fds[2];

        if (daemon->directory[0] == '\0') {
                strcpy(daemon->directory, "/tmp/memguard-dbus-XXXXXX");
                if (!mkdtemp(daemon->directory) || chmod(daemon->directory, 0755) < 0)
                        abort();
                snprintf(daemon->address, sizeof(daemon->address), "unix:path=%s/socket",
                         daemon->directory);
        }
        write_config(daemon, path, sizeof(path));
        snprintf(argument, sizeof(argument), "--config-file=%s", path);
        if (pipe(fds) < 0)
                abort();
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, fds[1], 3);
        /* It complains about RLIMIT_NOFILE in most sandboxes. */
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        if (posix_spawnp(&daemon->pid, argv[0], &actions, NULL, argv, environ) != 0) {
                bus_daemon_done(daemon);
                skip("dbus-daemon is not installed");
        }
        posix_spawn_file_actions_destroy(&actions);
        close(fds[1]);
        /* The address is printed once it listens. */
        if (read(fds[0], ready, sizeof(ready)) <= 0)
                abort();
        close(fds[0]);
}

void bus_daemon_stop(struct bus_daemon *daemon) {
        if (daemon->pid <= 0)
                return;
        kill(daemon->pid, SIGKILL);
        waitpid(daemon->pid, NULL, 0);
        daemon->pid = 0;
}

void bus_daemon_done(struct bus_daemon *daemon) {
        static const char *const files[] = { "config", "socket" };
        char path[64];

        bus_daemon_stop(daemon);
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
                snprintf(path, sizeof(path), "%s/%s", daemon->directory, files[i]);
                unlink(path);
        }
        rmdir(daemon->directory);
        daemon->directory[0] = '\0';
}
