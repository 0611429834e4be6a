/* SPDX-License-Identifier: MIT */
/*
 * memguard.ini from any bytes: a configuration or problems, never both and never neither; what comes out is within its
 * limits for any unit, and every problem can be shown on a terminal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "host/config.h"

static void require(int condition) {
        if (!condition)
                abort();
}

static void check_unit(const struct mg_config *config, const char *name, const char *path) {
        struct mg_unit_config unit;
        struct mg_origins origins;
        char text[64];

        config_unit(config, name, path, &unit, &origins);
        require(unit.mode < _MG_MODE_MAX && unit.when != 0 && unit.min_gain_bytes > 0);
        require(unit.max_pause_usec > 0 && unit.cooldown_usec > 0);
        require(unit.cooldown_usec <= unit.cooldown_max_usec);
        for (size_t key = 0; key < _MG_UNIT_KEY_MAX; key++) {
                require(!origins.key[key].file == !origins.key[key].line);
                require(strlen(unit_key_format(&unit, key, text, sizeof(text))) < sizeof(text));
        }
}

static void check_problem(const struct mg_problem *problem) {
        char text[MG_PROBLEM_MAX];

        for (const char *at = problem_format(problem, text); *at != '\0'; at++)
                require(*at >= 0x20 && *at < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;

        int r = config_load_text("fuzz.ini", (const char *) data, size, &config, &problems);
        require(r == 0 || r == -EINVAL);
        require((r == 0) == (config != NULL) && (r == 0) == (problems.n_errors == 0));
        for (size_t i = 0; i < problems.n_items; i++)
                check_problem(&problems.items[i]);
        if (!config)
                return 0;
        require(config_daemon(config)->interval_usec > 0);
        check_unit(config, "nginx.service", "/system.slice/nginx.service");
        check_unit(config, "worker@7.service", NULL);
        return 0;
}
