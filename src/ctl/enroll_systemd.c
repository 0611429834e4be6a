/* SPDX-License-Identifier: MIT */
/* What enroll asks of systemd. Every error is printed once, here. Layer: ctl. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/macros.h"
#include "ctl/bus_json.h"
#include "ctl/ctl.h"
#include "ctl/enroll.h"

#define SYSTEMD         "org.freedesktop.systemd1"
#define SYSTEMD_PATH    "/org/freedesktop/systemd1"
#define SYSTEMD_MANAGER SYSTEMD ".Manager"

/* A daemon-reload runs generators; 90 s is systemd's own patience with a unit. */
#define CALL_TIMEOUT_USEC (5 * MG_USEC_PER_MIN)
#define JOB_TIMEOUT_USEC  (5 * MG_USEC_PER_MIN)
#define JOB_INTERVAL_NSEC 200000000L
#define JOB_INTERVALS     (JOB_TIMEOUT_USEC * 1000 / JOB_INTERVAL_NSEC)

static int report(const char *what, const sd_bus_error *error, int r) {
        fprintf(stderr, "memguardctl: %s: %s\n", what,
                sd_bus_error_is_set(error) && error->message ? error->message : strerror(-r));
        if (sd_bus_error_has_name(error, SYSTEMD ".NoSuchUnit"))
                return CTL_NO_SUCH_UNIT;
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED) ||
            sd_bus_error_has_name(error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED) ||
            r == -EACCES || r == -EPERM)
                return CTL_DENIED;
        return CTL_FAILED;
}

int enroll_connect(bool user, sd_bus **ret_bus) {
        sd_bus *bus = NULL;
        int r = user ? sd_bus_open_user(&bus) : sd_bus_open_system(&bus);

        if (r < 0)
                return report(user ? "cannot reach the user's service manager"
                                   : "cannot reach systemd on the system bus",
                              &SD_BUS_ERROR_NULL, r);
        sd_bus_set_method_call_timeout(bus, CALL_TIMEOUT_USEC);
        *ret_bus = bus;
        return CTL_OK;
}

/* Loads the unit: one that is not running has properties too. */
static int load_unit(sd_bus *bus, const char *unit, char *ret_path, size_t size) {
        MG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *path;
        int r = sd_bus_call_method(
                        bus, SYSTEMD, SYSTEMD_PATH, SYSTEMD_MANAGER, "LoadUnit", &error, &reply,
                        "s", unit);

        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return report(unit, &error, r);
        snprintf(ret_path, size, "%s", path);
        return CTL_OK;
}

static int get_all(sd_bus *bus, const char *path, const char *interface, json_t **ret_properties) {
        MG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = sd_bus_call_method(
                        bus, SYSTEMD, path, "org.freedesktop.DBus.Properties", "GetAll", &error,
                        &reply, "s", interface);

        if (r >= 0)
                r = bus_to_json(reply, ret_properties);
        return r < 0 ? report("cannot read the unit's properties", &error, r) : CTL_OK;
}

/* A unit that is not there has properties all the same. */
static int check_loaded(const char *unit, const json_t *properties) {
        const char *state = json_string_value(json_object_get(properties, "LoadState")) ?: "";

        if (mg_streq(state, "loaded"))
                return CTL_OK;
        if (mg_streq(state, "not-found")) {
                fprintf(stderr, "memguardctl: %s: there is no such unit\n", unit);
                return CTL_NO_SUCH_UNIT;
        }
        fprintf(stderr, "memguardctl: %s: its unit file is %s\n", unit, state);
        return CTL_FAILED;
}

int enroll_get_properties(sd_bus *bus, const char *unit, json_t **ret_unit, json_t **ret_service) {
        MG_CLEANUP(json_decrefp) json_t *properties = NULL;
        MG_CLEANUP(json_decrefp) json_t *service = NULL;
        char path[1024];

        int exit_code = load_unit(bus, unit, path, sizeof(path));
        if (exit_code == CTL_OK)
                exit_code = get_all(bus, path, SYSTEMD ".Unit", &properties);
        if (exit_code == CTL_OK)
                exit_code = check_loaded(unit, properties);
        if (exit_code == CTL_OK)
                exit_code = get_all(bus, path, SYSTEMD ".Service", &service);
        if (exit_code != CTL_OK)
                return exit_code;
        *ret_unit = MG_TAKE(properties);
        *ret_service = MG_TAKE(service);
        return CTL_OK;
}

int enroll_daemon_reload(sd_bus *bus) {
        MG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = sd_bus_call_method(
                        bus, SYSTEMD, SYSTEMD_PATH, SYSTEMD_MANAGER, "Reload", &error, NULL, NULL);

        /* Done, and the answer was lost with the manager's connection: what systemctl thinks too. */
        if (sd_bus_error_has_name(&error, SD_BUS_ERROR_NO_REPLY))
                return CTL_OK;
        return r < 0 ? report("systemd cannot reload its units", &error, r) : CTL_OK;
}

static bool is_job_over(sd_bus *bus, const char *job) {
        MG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

        return sd_bus_get_property(
                               bus, SYSTEMD, job, SYSTEMD ".Job", "State", &error, &reply, "s") < 0;
}

int enroll_get_cgroup(sd_bus *bus, const char *unit, char *ret_cgroup, size_t size) {
        MG_CLEANUP(json_decrefp) json_t *properties = NULL;
        char path[1024];

        int exit_code = load_unit(bus, unit, path, sizeof(path));
        if (exit_code == CTL_OK)
                exit_code = get_all(bus, path, SYSTEMD ".Service", &properties);
        if (exit_code == CTL_OK)
                snprintf(ret_cgroup, size, "%s",
                         json_string_value(json_object_get(properties, "ControlGroup")) ?: "");
        return exit_code;
}

static int get_active_state(sd_bus *bus, const char *unit, char *ret_state, size_t size) {
        MG_CLEANUP(json_decrefp) json_t *properties = NULL;
        char path[1024];

        int exit_code = load_unit(bus, unit, path, sizeof(path));
        if (exit_code == CTL_OK)
                exit_code = get_all(bus, path, SYSTEMD ".Unit", &properties);
        if (exit_code == CTL_OK)
                snprintf(ret_state, size, "%s",
                         json_string_value(json_object_get(properties, "ActiveState")) ?: "");
        return exit_code;
}

static int wait_for_restart(sd_bus *bus, const char *unit) {
        MG_CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        MG_CLEANUP(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *job;
        int r = sd_bus_call_method(
                        bus, SYSTEMD, SYSTEMD_PATH, SYSTEMD_MANAGER, "TryRestartUnit", &error,
                        &reply, "ss", unit, "replace");

        if (r >= 0)
                r = sd_bus_message_read(reply, "o", &job);
        if (r < 0)
                return report("cannot restart", &error, r);
        for (uint64_t i = 0; i < JOB_INTERVALS && !is_job_over(bus, job); i++)
                nanosleep(&(struct timespec){ .tv_nsec = JOB_INTERVAL_NSEC }, NULL);
        return CTL_OK;
}

int enroll_restart(sd_bus *bus, const char *unit, bool *ret_runs) {
        char state[32];

        *ret_runs = false;
        int exit_code = get_active_state(bus, unit, state, sizeof(state));
        if (exit_code != CTL_OK || mg_streq(state, "inactive") || mg_streq(state, "failed"))
                return exit_code;
        exit_code = wait_for_restart(bus, unit);
        if (exit_code == CTL_OK)
                exit_code = get_active_state(bus, unit, state, sizeof(state));
        if (exit_code != CTL_OK)
                return exit_code;
        *ret_runs = mg_streq(state, "active");
        if (*ret_runs)
                return CTL_OK;
        fprintf(stderr, "memguardctl: %s is %s after its restart: see journalctl -u %s\n", unit,
                state, unit);
        return CTL_FAILED;
}
