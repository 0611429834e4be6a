/* SPDX-License-Identifier: MIT */
/*
 * Building a configuration out of files. Every problem is gathered, so that one look shows them all; a configuration with an error
 * never comes into being. Layer: host; never logs.
 */
#include <errno.h>
#include <stdlib.h>

#include "host/config_keys.h"
#include "host/config_object.h"
#include "host/ini_reader.h"

struct loader {
        struct mg_config *config;
        struct mg_problems *problems;
        unsigned number; /* of the last setting seen, over all files */
        bool out_of_memory;

        /* Of the file being read. */
        const char *file;
        unsigned first_number;
        struct mg_section *section; /* NULL: [Daemon] */
        unsigned daemon_lines[MG_DAEMON_KEY_COUNT];
};

static struct mg_config *config_new(void) {
        MG_CLEANUP(config_freep) struct mg_config *config = calloc(1, sizeof(*config));

        if (!config)
                return NULL;
        config->defaults = section_new("Default");
        if (!config->defaults)
                return NULL;
        daemon_config_defaults(&config->daemon);
        return MG_TAKE(config);
}

static struct mg_section *find_section(struct mg_config *config, const char *pattern) {
        if (mg_streq(pattern, "Default"))
                return config->defaults;
        for (size_t i = 0; i < config->n_sections; i++)
                if (mg_streq(config->sections[i]->pattern, pattern))
                        return config->sections[i];
        return NULL;
}

static struct mg_section *add_section(struct mg_config *config, const char *pattern) {
        struct mg_section **sections = realloc(
                        config->sections, (config->n_sections + 1) * sizeof(struct mg_section *));
        if (!sections)
                return NULL;
        config->sections = sections;
        struct mg_section *section = section_new(pattern);
        if (section)
                sections[config->n_sections++] = section;
        return section;
}

static bool start_section(void *userdata, unsigned line, const char *name) {
        struct loader *loader = userdata;

        loader->section = NULL;
        if (mg_streq(name, "Daemon"))
                return true;
        const char *problem = mg_streq(name, "Default") ? NULL : section_name_problem(name);
        if (problem) {
                problems_add(loader->problems, MG_SEVERITY_ERROR, loader->file, line, "[%s]: %s",
                             name, problem);
                return false;
        }
        loader->section = find_section(loader->config, name);
        if (!loader->section)
                loader->section = add_section(loader->config, name);
        if (!loader->section) {
                loader->out_of_memory = true;
                return false;
        }
        loader->section->header = (struct mg_setting){ loader->file, line, ++loader->number };
        return true;
}

static void report_unknown(
                struct loader *loader,
                unsigned line,
                const char *section,
                const char *key) {
        const struct mg_config_key *own = loader->section ? unit_keys : daemon_keys;
        const struct mg_config_key *other = loader->section ? daemon_keys : unit_keys;
        size_t n_own = loader->section ? _MG_UNIT_KEY_MAX : MG_DAEMON_KEY_COUNT;
        size_t n_other = loader->section ? MG_DAEMON_KEY_COUNT : _MG_UNIT_KEY_MAX;
        const struct mg_config_key *nearest = config_key_nearest(own, n_own, key);
        const char *hint = "expected one of memguard.ini(5)", *name = "", *end = "";

        if (config_key_find(other, n_other, key))
                hint = loader->section ? "it belongs in [Daemon]"
                                       : "it belongs in [Default] or a unit's section";
        else if (nearest) {
                hint = "did you mean ";
                name = nearest->name;
                end = "=?";
        }
        problems_add(loader->problems, MG_SEVERITY_ERROR, loader->file, line,
                     "[%s] %s: unknown key, %s%s%s", section, key, hint, name, end);
}

static void warn_twice(
                struct loader *loader,
                unsigned line,
                const char *section,
                const char *key,
                unsigned earlier) {
        problems_add(loader->problems, MG_SEVERITY_WARNING, loader->file, line,
                     "[%s] %s: set again, line %u no longer counts", section, key, earlier);
}

/* Remembers where KEY of the section was set; a key twice in one file is worth a word. */
static void note_setting(
                struct loader *loader,
                unsigned line,
                const char *section,
                const struct mg_config_key *key) {
        if (!loader->section) {
                unsigned *held = &loader->daemon_lines[key - daemon_keys];
                if (*held > 0)
                        warn_twice(loader, line, section, key->name, *held);
                *held = line;
                return;
        }
        struct mg_setting *held = &loader->section->set[key - unit_keys];
        if (held->number > loader->first_number)
                warn_twice(loader, line, section, key->name, held->line);
        *held = (struct mg_setting){ loader->file, line, ++loader->number };
}

static void take_key(
                void *userdata,
                unsigned line,
                const char *section,
                const char *name,
                const char *value) {
        struct loader *loader = userdata;
        const struct mg_config_key *key =
                        loader->section ? config_key_find(unit_keys, _MG_UNIT_KEY_MAX, name)
                                        : config_key_find(daemon_keys, MG_DAEMON_KEY_COUNT, name);
        void *target = loader->section ? (void *) &loader->section->values
                                       : (void *) &loader->config->daemon;

        if (!key) {
                report_unknown(loader, line, section, name);
                return;
        }
        if (config_key_read(key, value, target) < 0) {
                problems_add(loader->problems, MG_SEVERITY_ERROR, loader->file, line,
                             "[%s] %s: expected %s, got \"%s\"", section, name, key->expects,
                             value);
                return;
        }
        note_setting(loader, line, section, key);
}

static int load_text(struct loader *loader, const char *file, const char *text, size_t length) {
        const struct mg_ini_handler handler = {
                .section = start_section,
                .key = take_key,
                .userdata = loader,
        };

        loader->file = file;
        loader->first_number = loader->number;
        loader->section = NULL;
        memset(loader->daemon_lines, 0, sizeof(loader->daemon_lines));
        int r = ini_read(file, text, length, &handler, loader->problems);
        return loader->out_of_memory ? -ENOMEM : r;
}

static void free_charp(char **string) {
        free(*string);
}

static int load_file(struct loader *loader, const char *path) {
        MG_CLEANUP(free_charp) char *text = NULL;
        size_t length;

        int r = config_file_read(path, &text, &length);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                problems_add(loader->problems, MG_SEVERITY_ERROR, path, 0, "cannot be read: %s",
                             config_file_error(r));
                return 0;
        }
        return load_text(loader, path, text, length);
}

/* CooldownMaxSec= under CooldownSec= within what SECTION and [Default] say together. */
static void check_cooldowns(struct loader *loader, const struct mg_section *section) {
        const struct mg_setting *set = section->set;
        const struct mg_setting *defaults_set = loader->config->defaults->set;
        struct mg_unit_config unit;
        char cooldown[MG_SHORT_TEXT_MAX], maximum[MG_SHORT_TEXT_MAX];

        if (set[MG_KEY_COOLDOWN].number == 0 && set[MG_KEY_COOLDOWN_MAX].number == 0)
                return;
        unit_config_defaults(&unit);
        for (size_t key = MG_KEY_COOLDOWN; key <= MG_KEY_COOLDOWN_MAX; key++) {
                if (defaults_set[key].number > 0)
                        config_key_copy(&unit_keys[key], &loader->config->defaults->values, &unit);
                if (set[key].number > 0)
                        config_key_copy(&unit_keys[key], &section->values, &unit);
        }
        if (unit.cooldown_usec <= unit.cooldown_max_usec)
                return;
        size_t at = set[MG_KEY_COOLDOWN_MAX].number > 0 ? MG_KEY_COOLDOWN_MAX : MG_KEY_COOLDOWN;
        problems_add(loader->problems, MG_SEVERITY_ERROR, set[at].file, set[at].line,
                     "[%s] %s: expected CooldownSec= (%s) to be at most CooldownMaxSec= (%s)",
                     section->pattern, unit_keys[at].name,
                     unit_key_format(&unit, MG_KEY_COOLDOWN, cooldown, sizeof(cooldown)),
                     unit_key_format(&unit, MG_KEY_COOLDOWN_MAX, maximum, sizeof(maximum)));
}

static void check(struct loader *loader) {
        check_cooldowns(loader, loader->config->defaults);
        for (size_t i = 0; i < loader->config->n_sections; i++)
                check_cooldowns(loader, loader->config->sections[i]);
}

int config_load(const char *file,
                const char *root,
                struct mg_config **ret_config,
                struct mg_problems *problems) {
        MG_CLEANUP(config_freep) struct mg_config *config = config_new();
        struct loader loader = { .config = config, .problems = problems };
        size_t errors_before = problems->n_errors;

        if (!config)
                return -ENOMEM;
        int r = config_files_find(file, root, &config->files, problems);
        for (size_t i = 0; r >= 0 && i < config->files.n_paths; i++)
                r = load_file(&loader, config->files.paths[i]);
        if (r < 0)
                return r;
        check(&loader);
        if (problems->n_errors > errors_before)
                return -EINVAL;
        *ret_config = MG_TAKE(config);
        return 0;
}

int config_load_text(
                const char *name,
                const char *text,
                size_t length,
                struct mg_config **ret_config,
                struct mg_problems *problems) {
        MG_CLEANUP(config_freep) struct mg_config *config = config_new();
        struct loader loader = { .config = config, .problems = problems };
        size_t errors_before = problems->n_errors;

        if (!config)
                return -ENOMEM;
        int r = config_files_add(&config->files, name);
        if (r < 0)
                return r;
        r = load_text(&loader, config->files.paths[0], text, length);
        if (r < 0)
                return r;
        check(&loader);
        if (problems->n_errors > errors_before)
                return -EINVAL;
        *ret_config = MG_TAKE(config);
        return 0;
}
