/* SPDX-License-Identifier: MIT */
/*
 * From systemd's properties to what matters for an agent. A property that this systemd does not have says nothing. Layer: ctl.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "ctl/enroll.h"
#include "host/config_files.h"

static const char *string_of(const json_t *object, const char *name) {
        return json_string_value(json_object_get(object, name)) ?: "";
}

static const char *string_or_null(const json_t *object, const char *name) {
        const char *value = string_of(object, name);

        return value[0] ? value : NULL;
}

static bool list_has(const json_t *list, const char *wanted) {
        size_t i;
        json_t *item;

        json_array_foreach(list, i, item) {
                if (json_is_string(item) && mg_streq(json_string_value(item), wanted))
                        return true;
        }
        return false;
}

/* (bas): whether it is a list of what is allowed, and the list. An empty deny list forbids nothing. */
static bool filter_forbids(const json_t *filter, const char *wanted) {
        const json_t *list = json_array_get(filter, 1);

        if (!json_is_array(list))
                return false;
        return json_is_true(json_array_get(filter, 0)) ? !list_has(list, wanted)
                                                       : list_has(list, wanted);
}

/* ["VAR", ...] or ["VAR=value", ...]: UnsetEnvironment= takes both. */
static bool names_variable(const json_t *list, const char *name) {
        size_t length = strlen(name);
        size_t i;
        json_t *item;

        json_array_foreach(list, i, item) {
                const char *text = json_string_value(item);
                if (text && strncmp(text, name, length) == 0 &&
                    (text[length] == '\0' || text[length] == '='))
                        return true;
        }
        return false;
}

/* The last assignment counts. */
static const char *value_of(const json_t *list, const char *name) {
        size_t length = strlen(name);
        const char *value = NULL;
        size_t i;
        json_t *item;

        json_array_foreach(list, i, item) {
                const char *text = json_string_value(item);
                if (text && strncmp(text, name, length) == 0 && text[length] == '=')
                        value = text + length + 1;
        }
        return value;
}

bool enroll_file_sets(const char *text, const char *name) {
        size_t length = strlen(name);

        for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
                const char *at = line + strspn(line, " \t\r");
                if (strncmp(at, name, length) != 0)
                        continue;
                at += length;
                at += strspn(at, " \t");
                if (*at == '=')
                        return true;
        }
        return false;
}

static void take_environment_file(struct enroll_facts *facts, const char *path) {
        char *text = NULL;
        size_t length;

        if (config_file_read(path, &text, &length) < 0)
                return;
        if (enroll_file_sets(text, "LD_PRELOAD"))
                snprintf(facts->preload_file, sizeof(facts->preload_file), "%s", path);
        free(text);
}

/* Each may be a pattern. The last file that sets it is the one that counts. */
static void take_environment_files(struct enroll_facts *facts, const json_t *files) {
        size_t i;
        json_t *entry;

        json_array_foreach(files, i, entry) {
                const char *pattern = json_string_value(json_array_get(entry, 0));
                glob_t found = {};
                if (!pattern || glob(pattern, GLOB_NOSORT | GLOB_BRACE, NULL, &found) != 0)
                        continue;
                for (size_t k = 0; k < found.gl_pathc; k++)
                        take_environment_file(facts, found.gl_pathv[k]);
                globfree(&found);
        }
}

static bool covers(const char *path, const char *socket) {
        size_t length;

        /* "-" tolerates a missing path, "+" means one below the service's root. */
        path += strspn(path, "-+");
        length = strlen(path);
        while (length > 1 && path[length - 1] == '/')
                length--;
        return length > 0 && strncmp(path, socket, length) == 0 &&
               (length == 1 || socket[length] == '/' || socket[length] == '\0');
}

static const char *find_cover(const json_t *paths, const char *socket) {
        size_t i;
        json_t *entry;

        json_array_foreach(paths, i, entry) {
                const char *path = json_string_value(
                                json_is_array(entry) ? json_array_get(entry, 0) : entry);
                if (path && covers(path, socket))
                        return path;
        }
        return NULL;
}

static int take_command(struct enroll_facts *facts, const json_t *commands) {
        const json_t *arguments = json_array_get(json_array_get(commands, 0), 1);
        const char *path = json_string_value(json_array_get(json_array_get(commands, 0), 0));
        size_t n = json_array_size(arguments);
        const char **argv = calloc(n + 2, sizeof(*argv));

        if (!argv)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                argv[i] = json_string_value(json_array_get(arguments, i)) ?: "";
        /* argv[0] may be anything, by "@" or ":"; the path is what is run. */
        if (path)
                argv[0] = path;
        facts->command = argv;
        snprintf(facts->started.path, sizeof(facts->started.path), "%s", path ?: "");
        return 0;
}

static const char *find_forbidden_call(const json_t *filter) {
        static const char *const calls[] = { "socket", "connect", "close_range", "signalfd4",
                                             "clone" };

        for (size_t i = 0; i < MG_ELEMENTS(calls); i++)
                if (filter_forbids(filter, calls[i]))
                        return calls[i];
        return NULL;
}

int enroll_facts_take(
                struct enroll_facts *facts,
                const json_t *unit,
                const json_t *service,
                const char *socket) {
        const json_t *families = json_object_get(service, "RestrictAddressFamilies");
        const json_t *environment = json_object_get(service, "Environment");

        *facts = (struct enroll_facts){ .anon_bytes = MG_UNKNOWN };
        facts->unit = string_of(unit, "Id");
        facts->transient = json_is_true(json_object_get(unit, "Transient"));
        facts->may_not_be_stopped = json_is_true(json_object_get(unit, "RefuseManualStop"));
        facts->service_type = string_of(service, "Type");
        facts->service_user = string_of(service, "User");
        facts->preload = value_of(environment, "LD_PRELOAD");
        facts->passes_preload = list_has(json_object_get(service, "PassEnvironment"), "LD_PRELOAD");
        facts->unsets_preload =
                        names_variable(json_object_get(service, "UnsetEnvironment"), "LD_PRELOAD");
        facts->forbids_unix = filter_forbids(families, "AF_UNIX");
        facts->forbidden_call = find_forbidden_call(json_object_get(service, "SystemCallFilter"));
        facts->root = string_or_null(service, "RootDirectory")
                                      ?: string_or_null(service, "RootImage");
        facts->hides_socket =
                        find_cover(json_object_get(service, "TemporaryFileSystem"), socket)
                                        ?: find_cover(json_object_get(service, "InaccessiblePaths"),
                                                      socket);
        facts->confined_by = json_string_value(json_array_get(
                                             json_object_get(service, "AppArmorProfile"), 1))
                                             ?: json_string_value(json_array_get(
                                                                json_object_get(service,
                                                                                "SELinuxContext"),
                                                                1));
        if (facts->confined_by && facts->confined_by[0] == '\0')
                facts->confined_by = NULL;
        facts->private_users = json_is_true(json_object_get(service, "PrivateUsers"));
        facts->main_pid = (uint64_t) json_integer_value(json_object_get(service, "MainPID"));
        take_environment_files(facts, json_object_get(service, "EnvironmentFiles"));
        return take_command(facts, json_object_get(service, "ExecStart"));
}

void enroll_facts_done(struct enroll_facts *facts) {
        free((void *) facts->command);
        facts->command = NULL;
}
