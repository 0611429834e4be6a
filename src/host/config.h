/* SPDX-License-Identifier: MIT */
/*
 * The configuration: memguard.ini and its drop-ins, memguard.ini(5). Loading reads every file, gathers every
 * problem and builds a new object; the one in force is never touched, so a bad reload changes nothing. Layer: host.
 */
#pragma once

#include "base/macros.h"
#include "core/unit_config.h"
#include "host/problems.h"

struct mg_daemon_config {
        uint64_t interval_usec;
        uint64_t agent_timeout_usec;
        uint32_t pressure_high_permyriad;
        uint32_t max_concurrent_trims;
        uint32_t pressure_clients; /* 0: memguard is no provider of the memory-pressure protocol */
        bool paused;
        int log_level; /* syslog's: LOG_ERR ... LOG_DEBUG */
};

/* The keys of a unit's section, in the order of memguard.ini(5). */
enum mg_unit_key {
        MG_KEY_MODE,
        MG_KEY_TRIM_ABOVE,
        MG_KEY_MIN_GAIN,
        MG_KEY_MAX_PAUSE,
        MG_KEY_COOLDOWN,
        MG_KEY_COOLDOWN_MAX,
        MG_KEY_WHEN,
        MG_KEY_TRIM_PAD,
        MG_KEY_ARENA_TOPS,
        MG_KEY_SHRINK_CACHES,
        MG_KEY_STATISTICS,
        MG_KEY_JEMALLOC_BACKGROUND_THREAD,
        _MG_UNIT_KEY_MAX,
};

/* Where a value in force was set. FILE is the config's; NULL: the built-in default. */
struct mg_origin {
        const char *file;
        unsigned line;
};

struct mg_origins {
        struct mg_origin key[_MG_UNIT_KEY_MAX];
        bool own_section; /* consent: a section other than [Default] matched */
};

struct mg_config;

/*
 * FILE NULL: /etc/memguard.ini and memguard.ini.d/ of /usr/lib, /run and /etc (this build's sysconfdir), below ROOT (NULL or "" in production).
 * Else FILE and FILE.d/ alone. A missing main file is the defaults; a missing named FILE is an error. Returns 0, -EINVAL
 * when PROBLEMS has errors (*ret_config untouched), or -ENOMEM.
 */
int config_load(const char *file,
                const char *root,
                struct mg_config **ret_config,
                struct mg_problems *problems);

/* The same from TEXT alone, which calls itself NAME in problems and origins. */
int config_load_text(
                const char *name,
                const char *text,
                size_t length,
                struct mg_config **ret_config,
                struct mg_problems *problems);

struct mg_config *config_free(struct mg_config *config);
MG_DEFINE_CLEANUP(struct mg_config *, config_free)

const struct mg_daemon_config *config_daemon(const struct mg_config *config);

/*
 * What holds for a unit: name ("nginx.service") and cgroup path ("/system.slice/nginx.service", or NULL). The most specific
 * section wins key by key: exact name, then exact path, then globs with more literal characters first, later files
 * first among equals; then [Default] (never Mode). Where sections match and none sets Mode, it is trim, and its origin is the most
 * specific header. CooldownMaxSec is at least CooldownSec in what comes out. RET_ORIGINS may be NULL; its strings are CONFIG's.
 */
void config_unit(
                const struct mg_config *config,
                const char *unit,
                const char *cgroup_path,
                struct mg_unit_config *ret_unit,
                struct mg_origins *ret_origins);

/* Calls SEEN for every unit section, for "matches no loaded unit" warnings. */
typedef bool (*mg_section_matcher)(void *userdata, const char *pattern);
void config_warn_unmatched(
                const struct mg_config *config,
                mg_section_matcher is_loaded,
                void *userdata,
                struct mg_problems *problems);

/* Whether section PATTERN means this unit: a name or glob, or with a leading "/" a cgroup path or glob ("*" matches "/" too). */
bool config_pattern_matches(const char *pattern, const char *unit, const char *cgroup_path);

/* The files that were read, in order of precedence, lowest first; for cat-config and the journal. */
size_t config_files(const struct mg_config *config, const char *const **ret_files);

const char *unit_key_to_string(enum mg_unit_key key); /* "TrimAbove" */

/* KEY's value in UNIT the way it would be written in the file, into BUFFER. */
const char *unit_key_format(
                const struct mg_unit_config *unit,
                enum mg_unit_key key,
                char *buffer,
                size_t size);
