/* SPDX-License-Identifier: MIT */
/* The table of variants, and what is asked for on the command line on top of it. Layer: replay. */
#include "replay/variant.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/parse.h"
#include "host/cleanup.h"

/* 128 KiB is where glibc's threshold starts; set, it never moves. */
#define MMAP_THRESHOLD "MALLOC_MMAP_THRESHOLD_=131072"

/* What a value without a key means. */
enum positional {
        POSITIONAL_NONE,
        POSITIONAL_VARIABLE,
        POSITIONAL_LIBRARY,
        POSITIONAL_INI,
        POSITIONAL_INTERVAL,
        POSITIONAL_THRESHOLD,
};

struct kind {
        const char *name;
        const char *environment;
        const char *library; /* a pattern for glob(3) */
        const char *package;
        enum positional positional;
        bool has_agent;
        const char *help;
};

static const struct kind kinds[] = {
        { "glibc", .help = "the program as it is" },
        { "arena2", .environment = "MALLOC_ARENA_MAX=2", .help = "glibc with MALLOC_ARENA_MAX=2" },
        { "mmap-threshold", .environment = MMAP_THRESHOLD, .positional = POSITIONAL_THRESHOLD,
          .help = "glibc with a fixed mmap threshold (:SIZE; 128K)" },
        { "jemalloc", .library = "libjemalloc.so.2", .package = "libjemalloc2",
          .help = "jemalloc, preloaded" },
        { "jemalloc-background", .environment = "MALLOC_CONF=background_thread:true",
          .library = "libjemalloc.so.2", .package = "libjemalloc2",
          .help = "the same with its background threads" },
        { "mimalloc", .library = "libmimalloc.so.[0-9]*", .package = "libmimalloc2.0",
          .help = "mimalloc, preloaded" },
        { "tcmalloc", .library = "libtcmalloc.so.4", .package = "libgoogle-perftools4",
          .help = "gperftools' tcmalloc, preloaded" },
        { "memguard", .has_agent = true, .positional = POSITIONAL_INI,
          .help = "glibc, memguard's agent and a memguardd of its own (:INI-FILE)" },
        { "trim-every", .positional = POSITIONAL_INTERVAL,
          .help = "glibc and a blind malloc_trim(0) every :TIME" },
        { "env", .positional = POSITIONAL_VARIABLE, .help = "glibc with :NAME=VALUE" },
        { "preload", .positional = POSITIONAL_LIBRARY, .help = "any :LIBRARY, preloaded" },
};

const char *variant_name(size_t i) {
        return i < MG_ELEMENTS(kinds) ? kinds[i].name : NULL;
}

const char *variant_help(size_t i) {
        return kinds[i].help;
}

static const struct kind *find_kind(const char *name, size_t length) {
        for (size_t i = 0; i < MG_ELEMENTS(kinds); i++)
                if (strlen(kinds[i].name) == length && strncmp(kinds[i].name, name, length) == 0)
                        return &kinds[i];
        return NULL;
}

static int complain(char **ret_message, const char *format, ...) MG_PRINTF(2, 3);
static int complain(char **ret_message, const char *format, ...) {
        va_list list;

        va_start(list, format);
        int n = vasprintf(ret_message, format, list);
        va_end(list);
        if (n < 0) {
                *ret_message = NULL;
                return -ENOMEM;
        }
        return -EINVAL;
}

/* Puts COPY, which it takes over, in LIST; a setting of the same name gives way. */
static int put_setting(char **list, size_t *n, char *copy) {
        size_t name = strcspn(copy, "=") + 1;

        for (size_t i = 0; i < *n; i++)
                if (strncmp(list[i], copy, name) == 0) {
                        free(list[i]);
                        list[i] = copy;
                        return 0;
                }
        if (*n == VARIANT_SETTINGS_MAX) {
                free(copy);
                return -E2BIG;
        }
        list[(*n)++] = copy;
        return 0;
}

static int put_variable(struct variant *variant, const char *name, const char *value) {
        char *setting;

        if (asprintf(&setting, "%s=%s", name, value) < 0)
                return -ENOMEM;
        return put_setting(variant->environment, &variant->n_environment, setting);
}

static int put_ini(struct variant *variant, const char *name, const char *value) {
        char *setting;

        if (asprintf(&setting, "%s=%s", name, value) < 0)
                return -ENOMEM;
        return put_setting(variant->ini, &variant->n_ini, setting);
}

static int replace_text(char **text, const char *value) {
        char *copy = strdup(value);

        if (!copy)
                return -ENOMEM;
        free(*text);
        *text = copy;
        return 0;
}

static int set_threshold(struct variant *variant, const char *value) {
        uint64_t bytes;
        char digits[24];

        if (parse_size(value, &bytes) < 0)
                return -EINVAL;
        snprintf(digits, sizeof(digits), "%" PRIu64, bytes);
        return put_variable(variant, "MALLOC_MMAP_THRESHOLD_", digits);
}

/* Environment and library of another kind: memguard:allocator=jemalloc. */
static int use_kind(struct variant *variant, const struct kind *kind) {
        if (kind->environment) {
                char *setting = strdup(kind->environment);
                int r = setting ? put_setting(variant->environment, &variant->n_environment,
                                              setting)
                                : -ENOMEM;
                if (r < 0)
                        return r;
        }
        if (kind->library) {
                variant->wants = kind->library;
                variant->package = kind->package;
        }
        return 0;
}

static int set_lower(struct variant *variant, const char *key, const char *value) {
        if (mg_streq(key, "name"))
                return *value ? replace_text(&variant->text, value) : -EINVAL;
        if (mg_streq(key, "library"))
                return replace_text(&variant->library, value);
        if (mg_streq(key, "arena-max"))
                return put_variable(variant, "MALLOC_ARENA_MAX", value);
        if (mg_streq(key, "thread"))
                return put_variable(variant, "MEMGUARD_THREAD", value);
        if (mg_streq(key, "ini"))
                return replace_text(&variant->ini_file, value);
        if (mg_streq(key, "allocator")) {
                const struct kind *kind = find_kind(value, strlen(value));
                return kind ? use_kind(variant, kind) : -EINVAL;
        }
        return -ENOENT;
}

static bool has_case(const char *key, int (*is)(int)) {
        for (; *key != '\0'; key++)
                if (is((unsigned char) *key))
                        return true;
        return false;
}

static int set_key(struct variant *variant, const char *key, const char *value) {
        if (!has_case(key, isupper))
                return set_lower(variant, key, value);
        if (!has_case(key, islower))
                return put_variable(variant, key, value);
        return variant->has_agent ? put_ini(variant, key, value) : -ENOENT;
}

static int set_positional(struct variant *variant, const struct kind *kind, const char *value) {
        switch (kind->positional) {
        case POSITIONAL_LIBRARY:
                return replace_text(&variant->library, value);
        case POSITIONAL_INI:
                return replace_text(&variant->ini_file, value);
        case POSITIONAL_INTERVAL:
                return parse_duration(value, &variant->trim_every_usec) < 0 ||
                                                       variant->trim_every_usec == 0
                                       ? -EINVAL
                                       : 0;
        case POSITIONAL_THRESHOLD:
                return set_threshold(variant, value);
        case POSITIONAL_VARIABLE:
        case POSITIONAL_NONE:
                break;
        }
        return -ENOENT;
}

/* The end of the setting at TEXT: the comma before the next one with a "=" of its own. */
static char *setting_end(char *text) {
        char *comma = strchr(text, ',');

        while (comma) {
                size_t length = strcspn(comma + 1, ",");
                if (memchr(comma + 1, '=', length))
                        return comma;
                comma = strchr(comma + 1, ',');
        }
        return text + strlen(text);
}

static int apply_setting(
                struct variant *variant,
                const struct kind *kind,
                char *setting,
                char **ret_message) {
        char *equals = strchr(setting, '=');
        int r;

        if (equals) {
                *equals = '\0';
                r = set_key(variant, setting, equals + 1);
        } else
                r = set_positional(variant, kind, setting);
        if (r == -ENOENT)
                return complain(ret_message, "\"%s\" means nothing to variant %s", setting,
                                kind->name);
        if (r == -EINVAL)
                return complain(ret_message, "the value of \"%s\" is not one for variant %s",
                                setting, kind->name);
        if (r == -E2BIG)
                return complain(ret_message, "too many settings at \"%s\" of variant %s", setting,
                                kind->name);
        return r;
}

static int apply_settings(
                struct variant *variant,
                const struct kind *kind,
                const char *text,
                char **ret_message) {
        MG_CLEANUP(freep) char *copy = strdup(text);
        char *at = copy;

        if (!copy)
                return -ENOMEM;
        while (*at != '\0') {
                char *end = setting_end(at);
                bool last = *end == '\0';

                *end = '\0';
                int r = apply_setting(variant, kind, at, ret_message);
                if (r < 0)
                        return r;
                at = last ? end : end + 1;
        }
        return 0;
}

static char *make_label(const char *text) {
        char *label = strndup(text, 100);

        for (char *c = label; c && *c != '\0'; c++)
                if (!isalnum((unsigned char) *c) && !strchr("-_.", *c))
                        *c = '-';
        if (label && label[0] == '.')
                label[0] = '-';
        return label;
}

static int check_complete(
                const struct variant *variant,
                const struct kind *kind,
                char **ret_message) {
        bool complete = true;

        switch (kind->positional) {
        case POSITIONAL_VARIABLE:
                complete = variant->n_environment > 0;
                break;
        case POSITIONAL_LIBRARY:
                complete = variant->library != NULL;
                break;
        case POSITIONAL_INTERVAL:
                complete = variant->trim_every_usec > 0;
                break;
        case POSITIONAL_INI:
        case POSITIONAL_THRESHOLD:
        case POSITIONAL_NONE:
                break;
        }
        return complete ? 0
                        : complain(ret_message, "variant %s is incomplete: %s", kind->name,
                                   kind->help);
}

static int fill(struct variant *variant, const char *text, char **ret_message) {
        size_t length = strcspn(text, ":");
        const struct kind *kind = find_kind(text, length);
        int r;

        if (!kind)
                return complain(ret_message, "there is no variant \"%s\"; --help lists them", text);
        variant->settings = strdup(text);
        variant->text = strdup(text);
        if (!variant->text || !variant->settings)
                return -ENOMEM;
        variant->has_agent = kind->has_agent;
        r = use_kind(variant, kind);
        if (r >= 0 && text[length] == ':')
                r = apply_settings(variant, kind, text + length + 1, ret_message);
        if (r >= 0)
                r = check_complete(variant, kind, ret_message);
        if (r < 0)
                return r;
        variant->label = make_label(variant->text);
        return variant->label ? 0 : -ENOMEM;
}

int variant_parse(const char *text, struct variant *ret_variant, char **ret_message) {
        struct variant variant = {};

        *ret_message = NULL;
        int r = fill(&variant, text, ret_message);
        if (r < 0) {
                variant_done(&variant);
                return r;
        }
        *ret_variant = variant;
        return 0;
}

void variant_done(struct variant *variant) {
        free(variant->settings);
        free(variant->text);
        free(variant->label);
        for (size_t i = 0; i < variant->n_environment; i++)
                free(variant->environment[i]);
        for (size_t i = 0; i < variant->n_ini; i++)
                free(variant->ini[i]);
        free(variant->ini_file);
        free(variant->library);
        *variant = (struct variant){};
}

static int find_in(const char *directory, const char *name, char **ret_path) {
        MG_CLEANUP(freep) char *pattern = NULL;
        glob_t found = {};
        int r = -ENOENT;

        if (asprintf(&pattern, "%s/%s", directory, name) < 0)
                return -ENOMEM;
        if (glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0) {
                *ret_path = strdup(found.gl_pathv[0]);
                r = *ret_path ? 0 : -ENOMEM;
        }
        globfree(&found);
        return r;
}

int variant_find_library(struct variant *variant) {
        static const char *const directories[] = { "/usr/local/lib", "/usr/lib/*-linux-gnu*",
                                                   "/usr/lib64", "/usr/lib" };

        if (variant->library)
                return access(variant->library, R_OK) < 0 ? -errno : 0;
        if (!variant->wants)
                return 0;
        for (size_t i = 0; i < MG_ELEMENTS(directories); i++) {
                int r = find_in(directories[i], variant->wants, &variant->library);
                if (r != -ENOENT)
                        return r;
        }
        return -ENOENT;
}
