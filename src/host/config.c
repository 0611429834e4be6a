/* SPDX-License-Identifier: MIT */
/*
 * Asking a configuration what holds for a unit. Sections are kept by pattern; every key that is set carries its file, its line
 * and a running number, so that "later wins" among equals is one comparison. Layer: host; never logs.
 */
#include "host/config.h"

#include <stdlib.h>

#include "host/config_keys.h"
#include "host/config_object.h"

struct mg_config *config_free(struct mg_config *config) {
        if (!config)
                return NULL;
        for (size_t i = 0; i < config->n_sections; i++)
                section_free(config->sections[i]);
        free(config->sections);
        section_free(config->defaults);
        config_files_done(&config->files);
        free(config);
        return NULL;
}

const struct mg_daemon_config *config_daemon(const struct mg_config *config) {
        return &config->daemon;
}

size_t config_files(const struct mg_config *config, const char *const **ret_files) {
        *ret_files = (const char *const *) config->files.paths;
        return config->files.n_paths;
}

/* The section that decides each key, and the one that makes the unit one with a section of its own. */
struct deciding {
        const struct mg_section *by_key[_MG_UNIT_KEY_MAX];
        const struct mg_section *own;
};

static void consider(struct deciding *deciding, const struct mg_section *section) {
        if (!deciding->own ||
            section_precedes(section, &section->header, deciding->own, &deciding->own->header))
                deciding->own = section;
        for (size_t key = 0; key < _MG_UNIT_KEY_MAX; key++) {
                const struct mg_section *held = deciding->by_key[key];
                if (section->set[key].number == 0)
                        continue;
                if (!held || section_precedes(section, &section->set[key], held, &held->set[key]))
                        deciding->by_key[key] = section;
        }
}

static void take_origin(struct mg_origins *origins, size_t key, const struct mg_setting *setting) {
        origins->key[key] = (struct mg_origin){ .file = setting->file, .line = setting->line };
}

void config_unit(
                const struct mg_config *config,
                const char *unit,
                const char *cgroup_path,
                struct mg_unit_config *ret_unit,
                struct mg_origins *ret_origins) {
        struct deciding deciding = {};
        struct mg_origins origins = {};

        for (size_t i = 0; i < config->n_sections; i++)
                if (config_pattern_matches(config->sections[i]->pattern, unit, cgroup_path))
                        consider(&deciding, config->sections[i]);

        unit_config_defaults(ret_unit);
        for (size_t key = 0; key < _MG_UNIT_KEY_MAX; key++) {
                const struct mg_section *section = deciding.by_key[key];
                if (!section && !(key == MG_KEY_MODE && deciding.own))
                        section = config->defaults;
                if (!section || section->set[key].number == 0)
                        continue;
                config_key_copy(&unit_keys[key], &section->values, ret_unit);
                take_origin(&origins, key, &section->set[key]);
        }
        /* Consent: who writes a section for a unit wants it trimmed, unless a Mode= says otherwise. */
        if (deciding.own && !deciding.by_key[MG_KEY_MODE]) {
                ret_unit->mode = MG_MODE_TRIM;
                take_origin(&origins, MG_KEY_MODE, &deciding.own->header);
        }
        /* Each section is consistent; two that meet in one unit need not be. */
        ret_unit->cooldown_max_usec = MG_MAX(ret_unit->cooldown_max_usec, ret_unit->cooldown_usec);
        origins.own_section = deciding.own != NULL;
        if (ret_origins)
                *ret_origins = origins;
}

void config_warn_unmatched(
                const struct mg_config *config,
                mg_section_matcher is_loaded,
                void *userdata,
                struct mg_problems *problems) {
        for (size_t i = 0; i < config->n_sections; i++) {
                const struct mg_section *section = config->sections[i];
                if (!is_loaded(userdata, section->pattern))
                        problems_add(problems, MG_SEVERITY_WARNING, section->header.file,
                                     section->header.line, "[%s]: matches no loaded unit",
                                     section->pattern);
        }
}
