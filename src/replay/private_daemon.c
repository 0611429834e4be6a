/* SPDX-License-Identifier: MIT */
/* A memguardd for one run alone. Layer: replay. */
#include "replay/private_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "busclient/busclient.h"
#include "host/bus_api.h"
#include "host/cleanup.h"
#include "host/config.h"
#include "host/config_keys.h"

/* Its backlog of a second is answered at once; a daemon that is slower than this has no number for this sample. */
#define CALL_USEC (500 * MG_USEC_PER_MSEC)

#define POLL_NSEC   (20 * 1000 * 1000)
#define START_TRIES 500 /* 10 s */
#define STOP_TRIES  500

static void pause_shortly(void) {
        nanosleep(&(struct timespec){ .tv_nsec = POLL_NSEC }, NULL);
}

/* ---- Configuration ---- */

static bool is_daemon_key(const char *setting) {
        size_t length = strcspn(setting, "=");

        for (size_t i = 0; i < MG_DAEMON_KEY_COUNT; i++)
                if (strlen(daemon_keys[i].name) == length &&
                    strncmp(daemon_keys[i].name, setting, length) == 0)
                        return true;
        return false;
}

static void print_section(FILE *file, const struct variant *variant, bool of_daemon) {
        for (size_t i = 0; i < variant->n_ini; i++)
                if (is_daemon_key(variant->ini[i]) == of_daemon)
                        fprintf(file, "%s\n", variant->ini[i]);
}

static int make_ini(const struct variant *variant, char **ret_ini) {
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return -ENOMEM;
        fputs("[Daemon]\n", file);
        print_section(file, variant, true);
        fputs("[Default]\nMode=trim\n", file);
        print_section(file, variant, false);
        if (fclose(file) != 0) {
                free(text);
                return -ENOMEM;
        }
        *ret_ini = text;
        return 0;
}

static int read_ini(const char *path, char **ret_ini) {
        size_t size = 256 * 1024;
        MG_CLEANUP(freep) char *text = malloc(size);
        ssize_t n = text ? file_read_at(AT_FDCWD, path, text, size) : -ENOMEM;

        if (n < 0)
                return (int) n;
        *ret_ini = MG_TAKE(text);
        return 0;
}

static int check_ini(const char *name, const char *ini, char **ret_message) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        char line[MG_PROBLEM_MAX];
        int r = config_load_text(name, ini, strlen(ini), &config, &problems);

        if (r >= 0)
                return 0;
        for (size_t i = 0; i < problems.n_items; i++)
                if (problems.items[i].severity == MG_SEVERITY_ERROR) {
                        *ret_message = strdup(problem_format(&problems.items[i], line));
                        break;
                }
        return r;
}

int private_daemon_ini(const struct variant *variant, char **ret_ini, char **ret_message) {
        MG_CLEANUP(freep) char *ini = NULL;
        int r = variant->ini_file ? read_ini(variant->ini_file, &ini) : make_ini(variant, &ini);

        *ret_message = NULL;
        if (r < 0) {
                if (asprintf(ret_message, "%s: %s", variant->ini_file ?: variant->text,
                             strerror(-r)) < 0)
                        *ret_message = NULL;
                return r;
        }
        r = check_ini(variant->ini_file ?: variant->text, ini, ret_message);
        if (r < 0)
                return r;
        *ret_ini = MG_TAKE(ini);
        return 0;
}

/* ---- Start and end ---- */

static int make_directory(struct private_daemon *daemon) {
        const char *base = getenv("XDG_RUNTIME_DIR") ?: "/tmp";
        MG_CLEANUP(freep) char *directory = NULL;

        if (asprintf(&directory, "%s/memguard-replay-XXXXXX", base) < 0)
                return -ENOMEM;
        if (!mkdtemp(directory))
                return -errno;
        daemon->directory = MG_TAKE(directory);
        if (asprintf(&daemon->socket, "%s/%s", daemon->directory, MG_AGENT_SOCKET) < 0 ||
            asprintf(&daemon->ini, "%s/memguard.ini", daemon->directory) < 0)
                return -ENOMEM;
        return 0;
}

static int write_ini(const char *path, const char *text) {
        MG_CLEANUP(file_closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        size_t length = strlen(text);

        if (fd < 0)
                return -errno;
        return write(fd, text, length) == (ssize_t) length ? 0 : -EIO;
}

static bool has_ended(struct child *process) {
        if (process->pid <= 0 || waitpid(process->pid, NULL, WNOHANG) == 0)
                return process->pid <= 0;
        process->pid = 0;
        return true;
}

static int wait_ready(struct private_daemon *daemon) {
        for (int i = 0; i < START_TRIES; i++) {
                if (busclient_open_private(daemon->directory, &daemon->bus) >= 0)
                        return 0;
                if (has_ended(&daemon->process))
                        return -ECHILD;
                pause_shortly();
        }
        return -ETIMEDOUT;
}

static int start_process(struct private_daemon *daemon, const char *program, int log_fd) {
        MG_CLEANUP(freep) char *config = NULL;
        MG_CLEANUP(freep) char *directory = NULL;

        if (asprintf(&config, "--config=%s", daemon->ini) < 0 ||
            asprintf(&directory, "--runtime-directory=%s", daemon->directory) < 0)
                return -ENOMEM;
        char *argv[] = { (char *) program, config, directory, (char *) "--source=proc", NULL };
        char *environment[] = { (char *) REPLAY_LOAD_MARK, (char *) "LD_PRELOAD=" };
        struct child_request request = { .argv = argv,
                                         .environment = environment,
                                         .n_environment = MG_ELEMENTS(environment),
                                         .output_fd = log_fd };
        int r = child_prepare(&request, &daemon->process);
        return r < 0 ? r : child_go(&daemon->process);
}

int private_daemon_start(
                struct private_daemon *daemon,
                const char *program,
                const struct variant *variant,
                int log_fd) {
        MG_CLEANUP(freep) char *text = NULL;
        MG_CLEANUP(freep) char *message = NULL;
        int r = private_daemon_ini(variant, &text, &message);

        if (r >= 0)
                r = make_directory(daemon);
        if (r >= 0)
                r = write_ini(daemon->ini, text);
        if (r >= 0)
                r = start_process(daemon, program, log_fd);
        return r < 0 ? r : wait_ready(daemon);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *ftw) {
        return remove(path);
}

void private_daemon_stop(struct private_daemon *daemon) {
        sd_bus_flush_close_unref(MG_TAKE(daemon->bus));
        child_signal(&daemon->process, SIGTERM);
        for (int i = 0; i < STOP_TRIES && !has_ended(&daemon->process); i++)
                pause_shortly();
        if (daemon->process.pid > 0) {
                child_signal(&daemon->process, SIGKILL);
                waitpid(daemon->process.pid, NULL, 0);
                daemon->process.pid = 0;
        }
        child_close(&daemon->process);
        if (daemon->directory)
                nftw(daemon->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
        free(MG_TAKE(daemon->directory));
        free(MG_TAKE(daemon->socket));
        free(MG_TAKE(daemon->ini));
}

/* ---- Asking ---- */

struct unit_numbers {
        uint64_t agents;
        uint64_t live_bytes;
        uint64_t trims;
        uint64_t pause_usec;
};

/* A variant with an unsigned number; anything else is skipped and leaves *RET_VALUE. */
static int read_number(sd_bus_message *message, uint64_t *ret_value) {
        const char *contents;
        char type;
        int r = sd_bus_message_peek_type(message, &type, &contents);

        if (r < 0)
                return r;
        if (!contents || !mg_streq(contents, "t"))
                return sd_bus_message_skip(message, "v");
        return sd_bus_message_read(message, "v", "t", ret_value);
}

static int read_dictionary(sd_bus_message *message, struct unit_numbers *numbers);

static int read_member(sd_bus_message *message, const char *key, struct unit_numbers *numbers) {
        const char *contents;
        char type;

        if (mg_streq(key, "agents"))
                return read_number(message, &numbers->agents);
        if (mg_streq(key, "live_bytes"))
                return read_number(message, &numbers->live_bytes);
        if (mg_streq(key, "trims"))
                return read_number(message, &numbers->trims);
        if (mg_streq(key, "pause_usec"))
                return read_number(message, &numbers->pause_usec);
        if (!mg_streq(key, "last_trim"))
                return sd_bus_message_skip(message, "v");
        int r = sd_bus_message_peek_type(message, &type, &contents);
        if (r >= 0 && (!contents || !mg_streq(contents, "a{sv}")))
                return sd_bus_message_skip(message, "v");
        if (r >= 0)
                r = sd_bus_message_enter_container(message, 'v', "a{sv}");
        if (r >= 0)
                r = read_dictionary(message, numbers);
        return r < 0 ? r : sd_bus_message_exit_container(message);
}

static int read_dictionary(sd_bus_message *message, struct unit_numbers *numbers) {
        const char *key;
        int r = sd_bus_message_enter_container(message, 'a', "{sv}");

        if (r <= 0)
                return r;
        while ((r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
                r = sd_bus_message_read(message, "s", &key);
                if (r >= 0)
                        r = read_member(message, key, numbers);
                if (r >= 0)
                        r = sd_bus_message_exit_container(message);
                if (r < 0)
                        return r;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(message);
        return r < 0 ? r : 1;
}

static void add_known(uint64_t *sum, uint64_t value) {
        if (value != MG_UNKNOWN)
                *sum = *sum == MG_UNKNOWN ? value : mg_add_cap(*sum, value);
}

static void take_unit(const struct unit_numbers *unit, struct replay_sample *sample) {
        if (unit->agents == MG_UNKNOWN || unit->agents == 0)
                return;
        add_known(&sample->live_bytes, unit->live_bytes);
        add_known(&sample->trims, unit->trims);
        if (unit->pause_usec != MG_UNKNOWN)
                sample->pause_usec = sample->pause_usec == MG_UNKNOWN
                                                     ? unit->pause_usec
                                                     : MG_MAX(sample->pause_usec, unit->pause_usec);
}

static int read_units(sd_bus_message *reply, struct replay_sample *sample) {
        int r = sd_bus_message_enter_container(reply, 'a', "a{sv}");

        while (r >= 0) {
                struct unit_numbers unit = { MG_UNKNOWN, MG_UNKNOWN, MG_UNKNOWN, MG_UNKNOWN };

                r = read_dictionary(reply, &unit);
                if (r <= 0)
                        break;
                take_unit(&unit, sample);
        }
        return r;
}

void private_daemon_measure(struct private_daemon *daemon, struct replay_sample *sample) {
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        struct replay_sample seen = *sample;

        if (!daemon->bus)
                return;
        int r = sd_bus_message_new_method_call(
                        daemon->bus, &call, NULL, MG_BUS_PATH, MG_BUS_INTERFACE, "ListUnits");
        if (r >= 0)
                r = sd_bus_message_append(call, "as", 0);
        if (r >= 0)
                r = sd_bus_call(daemon->bus, call, CALL_USEC, NULL, &reply);
        if (r >= 0)
                r = read_units(reply, &seen);
        if (r >= 0)
                *sample = seen;
}
