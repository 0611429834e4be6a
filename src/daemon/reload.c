/* SPDX-License-Identifier: MIT */
/* Loading the configuration into the running daemon: all of it, or nothing. */
#include "daemon/reload.h"

#include <errno.h>

#include "base/macros.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/notify.h"
#include "daemon/provider.h"
#include "daemon/tick.h"
#include "daemon/unit.h"

static int load(const struct manager *manager,
                struct mg_config **ret_config,
                struct mg_problems *problems) {
        int r = config_load(manager->options.config_file, NULL, ret_config, problems);

        return r < 0 && r != -EINVAL ? -ENOMEM : r;
}

static void take_settings(struct manager *manager, struct mg_config *config) {
        int old_level = manager->config ? manager->settings.log_level : -1;

        manager->config = config;
        manager->settings = *config_daemon(config);
        manager_apply_paused(manager);
        if (old_level == manager->settings.log_level)
                return; /* what `log-level` said stays */
        if (old_level < 0 && manager->options.log_level >= 0)
                manager_set_log_level(manager, manager->options.log_level);
        else
                manager_set_log_level(manager, manager->settings.log_level);
}

static void tell_loaded(const struct manager *manager, const struct mg_problems *problems) {
        const char *const *files;

        journal_config_loaded(&(struct mg_journal_config){
                        .problems = problems,
                        .files = config_files(manager->config, &files),
        });
}

int reload_at_start(struct manager *manager) {
        struct mg_problems problems = {};
        struct mg_config *config = NULL;
        int r = load(manager, &config, &problems);

        if (r >= 0) {
                take_settings(manager, config);
                tell_loaded(manager, &problems);
        } else if (r == -EINVAL)
                journal_config_rejected(&problems, true);
        else
                journal_errno(LOG_ERR, r, NULL, "Cannot load the configuration");
        problems_done(&problems);
        return r;
}

static bool is_loaded(void *userdata, const char *pattern) {
        const struct manager *manager = userdata;

        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                if (config_pattern_matches(pattern, u->name, u->path))
                        return true;
        return false;
}

static int replace(struct manager *manager, struct mg_problems *problems) {
        struct mg_config *old = manager->config;
        struct mg_config *config = NULL;
        int r = load(manager, &config, problems);

        if (r < 0)
                return r;
        take_settings(manager, config);
        for (struct unit *u = unit_first(manager); u; u = unit_next(u))
                unit_configure(u);
        config_warn_unmatched(config, is_loaded, manager, problems);
        (void) config_free(old); /* only now: origins pointed into it */
        tell_loaded(manager, problems);
        tick_rearm(manager);
        provider_configure(manager->provider);
        return 0;
}

int manager_reload(struct manager *manager, struct mg_problems *problems) {
        int r;

        notify_reloading();
        r = replace(manager, problems);
        if (r == -EINVAL)
                journal_config_rejected(problems, false);
        else if (r < 0)
                journal_errno(LOG_ERR, r, NULL, "Cannot load the configuration");
        notify_ready();
        return r;
}

void reload_by_signal(struct manager *manager) {
        struct mg_problems problems = {};

        (void) manager_reload(manager, &problems);
        problems_done(&problems);
}

const char *reload_main_file(const struct manager *manager) {
        const char *const *files;

        return config_files(manager->config, &files) > 0 ? files[0] : NULL;
}
