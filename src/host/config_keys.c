/* SPDX-License-Identifier: MIT */
/* The keys of memguard.ini, a row each. Layer: host; pure. */
#include "host/config_keys.h"

#include <errno.h>
#include <syslog.h>

#include "host/nearest_name.h"

/* TrimAbove= is two members, read and copied as one. */
_Static_assert(offsetof(struct mg_unit_config, trim_above_permyriad) -
                                               offsetof(struct mg_unit_config, trim_above_bytes) ==
                               offsetof(struct mg_threshold, permyriad),
               "struct mg_threshold no longer lies over TrimAbove='s members");

/* What comes back from a trim is pages: less than one cannot be measured. */
#define MIN_GAIN_LEAST (4 * MG_KIB)
/* Beyond a week a cool-down is a typing error, and time arithmetic stays far from overflow. */
#define COOLDOWN_MOST (7 * 24 * MG_USEC_PER_HOUR)
/* Below 100 ms a tick would cost more than it finds out. */
#define INTERVAL_LEAST (100 * MG_USEC_PER_MSEC)

#define DAEMON_FIELD(member)                                 \
        .offset = offsetof(struct mg_daemon_config, member), \
        .size = sizeof(((struct mg_daemon_config *) NULL)->member)
#define UNIT_FIELD(member)                                 \
        .offset = offsetof(struct mg_unit_config, member), \
        .size = sizeof(((struct mg_unit_config *) NULL)->member)

const struct mg_config_key daemon_keys[MG_DAEMON_KEY_COUNT] = {
        {
                        .name = "IntervalSec",
                        .expects = "a time from 100ms to 1h, like 5s",
                        .kind = &value_duration,
                        DAEMON_FIELD(interval_usec),
                        .minimum = INTERVAL_LEAST,
                        .maximum = MG_USEC_PER_HOUR,
        },
        {
                        .name = "Paused",
                        .expects = "yes or no",
                        .kind = &value_bool,
                        DAEMON_FIELD(paused),
        },
        {
                        .name = "MaxConcurrentTrims",
                        .expects = "a number from 1 to 1000",
                        .kind = &value_count,
                        DAEMON_FIELD(max_concurrent_trims),
                        .minimum = 1,
                        .maximum = 1000,
        },
        {
                        .name = "PressureHigh",
                        .expects = "a percentage above 0% and up to 100%, like 10%",
                        .kind = &value_percent,
                        DAEMON_FIELD(pressure_high_permyriad),
                        .minimum = 1,
                        .maximum = 10000,
        },
        {
                        .name = "PressureClients",
                        .expects = "a number from 0 to 1024",
                        .kind = &value_count,
                        DAEMON_FIELD(pressure_clients),
                        .maximum = 1024, /* FileDescriptorStoreMax= of memguard.service */
        },
        {
                        .name = "AgentTimeoutSec",
                        .expects = "a time from 100ms to 1h, like 10s",
                        .kind = &value_duration,
                        DAEMON_FIELD(agent_timeout_usec),
                        .minimum = INTERVAL_LEAST,
                        .maximum = MG_USEC_PER_HOUR,
        },
        {
                        .name = "LogLevel",
                        .expects = "debug, info, notice, warning, err, crit, alert or emerg",
                        .kind = &value_log_level,
                        DAEMON_FIELD(log_level),
        },
};

const struct mg_config_key unit_keys[_MG_UNIT_KEY_MAX] = {
        [MG_KEY_MODE] = {
                .name = "Mode",
                .expects = "trim, observe or off",
                .kind = &value_mode,
                UNIT_FIELD(mode),
        },
        [MG_KEY_TRIM_ABOVE] = {
                .name = "TrimAbove",
                .expects = "a size, a percentage of live memory, or both, like 256M 20%",
                .kind = &value_threshold,
                .offset = offsetof(struct mg_unit_config, trim_above_bytes),
                .size = offsetof(struct mg_threshold, permyriad) + sizeof(uint32_t),
        },
        [MG_KEY_MIN_GAIN] = {
                .name = "MinGain",
                .expects = "a size of at least 4K, like 32M",
                .kind = &value_size,
                UNIT_FIELD(min_gain_bytes),
                .minimum = MIN_GAIN_LEAST,
                .maximum = MG_UNKNOWN - 1,
        },
        [MG_KEY_MAX_PAUSE] = {
                .name = "MaxPause",
                .expects = "a time with its unit, above 0 and up to 1h, like 50ms",
                .kind = &value_pause,
                UNIT_FIELD(max_pause_usec),
                .minimum = 1,
                .maximum = MG_USEC_PER_HOUR,
        },
        [MG_KEY_COOLDOWN] = {
                .name = "CooldownSec",
                .expects = "a time above 0 and up to 7d, like 5min",
                .kind = &value_duration,
                UNIT_FIELD(cooldown_usec),
                .minimum = 1,
                .maximum = COOLDOWN_MOST,
        },
        [MG_KEY_COOLDOWN_MAX] = {
                .name = "CooldownMaxSec",
                .expects = "a time above 0 and up to 7d, like 4h",
                .kind = &value_duration,
                UNIT_FIELD(cooldown_max_usec),
                .minimum = 1,
                .maximum = COOLDOWN_MOST,
        },
        [MG_KEY_WHEN] = {
                .name = "When",
                .expects = "any, or one or more of idle, checkpoint, pressure",
                .kind = &value_when,
                UNIT_FIELD(when),
        },
        [MG_KEY_TRIM_PAD] = {
                .name = "TrimPad",
                .expects = "a size, like 64M",
                .kind = &value_size,
                UNIT_FIELD(trim_pad_bytes),
                .maximum = MG_UNKNOWN - 1,
        },
        [MG_KEY_ARENA_TOPS] = {
                .name = "ArenaTops",
                .expects = "yes or no",
                .kind = &value_bool,
                UNIT_FIELD(arena_tops),
        },
        [MG_KEY_SHRINK_CACHES] = {
                .name = "ShrinkCaches",
                .expects = "yes or no",
                .kind = &value_bool,
                UNIT_FIELD(shrink_caches),
        },
        [MG_KEY_STATISTICS] = {
                .name = "Statistics",
                .expects = "yes or no",
                .kind = &value_bool,
                UNIT_FIELD(statistics),
        },
        [MG_KEY_JEMALLOC_BACKGROUND_THREAD] = {
                .name = "JemallocBackgroundThread",
                .expects = "yes, no, or nothing to leave it alone",
                .kind = &value_tristate,
                UNIT_FIELD(jemalloc_background_thread),
        },
};

void daemon_config_defaults(struct mg_daemon_config *ret_config) {
        *ret_config = (struct mg_daemon_config){
                .interval_usec = 5 * MG_USEC_PER_SEC,
                .agent_timeout_usec = 10 * MG_USEC_PER_SEC,
                .pressure_high_permyriad = 1000,
                .max_concurrent_trims = 2,
                .log_level = LOG_INFO,
        };
}

const struct mg_config_key *config_key_find(
                const struct mg_config_key *keys,
                size_t n_keys,
                const char *name) {
        for (size_t i = 0; i < n_keys; i++)
                if (mg_streq(keys[i].name, name))
                        return &keys[i];
        return NULL;
}

const struct mg_config_key *config_key_nearest(
                const struct mg_config_key *keys,
                size_t n_keys,
                const char *name) {
        const struct mg_config_key *nearest = NULL;
        unsigned least = MG_NAME_TOO_FAR;

        for (size_t i = 0; i < n_keys; i++) {
                unsigned distance = name_distance(name, keys[i].name);
                if (distance < least) {
                        least = distance;
                        nearest = &keys[i];
                }
        }
        return nearest;
}

int config_key_read(const struct mg_config_key *key, const char *value, void *config) {
        return key->kind->read(value, key->minimum, key->maximum, (char *) config + key->offset);
}

const char *config_key_write(
                const struct mg_config_key *key,
                const void *config,
                char *buffer,
                size_t size) {
        struct mg_text text;

        text_init(&text, buffer, size);
        key->kind->write(&text, (const char *) config + key->offset);
        return buffer;
}

void config_key_copy(const struct mg_config_key *key, const void *from, void *to) {
        memcpy((char *) to + key->offset, (const char *) from + key->offset, key->size);
}

const char *unit_key_to_string(enum mg_unit_key key) {
        return unit_keys[key].name;
}

const char *unit_key_format(
                const struct mg_unit_config *unit,
                enum mg_unit_key key,
                char *buffer,
                size_t size) {
        return config_key_write(&unit_keys[key], unit, buffer, size);
}
