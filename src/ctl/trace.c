/* SPDX-License-Identifier: MIT */
/*
 * One line of a trace. A number is a whole one and not negative; a member of another type is an error and not
 * a guess, for a mistyped trace would otherwise say that all is well. Layer: ctl.
 */
#include "ctl/trace.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "base/macros.h"

static void json_free(json_t **json) {
        json_decref(*json);
}

struct number_key {
        const char *name;
        size_t offset;
};

#define MEMORY(name) \
        { #name, offsetof(struct mg_memory, name) }
#define PROCESS(name, member) \
        { name, offsetof(struct mg_process_sample, member) }

static const struct number_key memory_keys[] = {
        MEMORY(anon_bytes),        MEMORY(swap_bytes),
        MEMORY(file_bytes),        MEMORY(shmem_bytes),
        MEMORY(anon_thp_bytes),    MEMORY(inactive_anon_bytes),
        MEMORY(active_anon_bytes), MEMORY(unevictable_bytes),
        MEMORY(kernel_bytes),      MEMORY(slab_reclaimable_bytes),
};

static const struct number_key process_keys[] = {
        PROCESS("rss_anon_bytes", rss_anon_bytes), PROCESS("swap_bytes", swap_bytes),
        PROCESS("base_bytes", base_bytes),         PROCESS("live_bytes", live_bytes),
        PROCESS("system_bytes", system_bytes),     PROCESS("freeable_bytes", estimate_bytes),
        PROCESS("free_chunks", free_chunks),       PROCESS("arenas", arenas),
};

/* Sets *ret_value and returns 0 where NAME is there, returns 0 where it is not, -EBADMSG where it is no number. */
static int get_number(
                const json_t *object,
                const char *name,
                uint64_t *ret_value,
                char *complaint) {
        const json_t *value = json_object_get(object, name);

        if (!value || json_is_null(value))
                return 0;
        if (!json_is_integer(value) || json_integer_value(value) < 0) {
                snprintf(complaint, TRACE_COMPLAINT_MAX, "%s: expected a whole number", name);
                return -EBADMSG;
        }
        *ret_value = (uint64_t) json_integer_value(value);
        return 0;
}

static int get_boolean(const json_t *object, const char *name, bool *ret_value, char *complaint) {
        const json_t *value = json_object_get(object, name);

        if (!value || json_is_null(value))
                return 0;
        if (!json_is_boolean(value)) {
                snprintf(complaint, TRACE_COMPLAINT_MAX, "%s: expected true or false", name);
                return -EBADMSG;
        }
        *ret_value = json_is_true(value);
        return 0;
}

static int get_numbers(
                const json_t *object,
                const struct number_key *keys,
                size_t n_keys,
                void *members,
                char *complaint) {
        int r = 0;

        for (size_t i = 0; i < n_keys && r == 0; i++)
                r = get_number(object, keys[i].name,
                               (uint64_t *) (void *) ((char *) members + keys[i].offset),
                               complaint);
        return r;
}

static int get_process(
                const json_t *object,
                uint64_t at_usec,
                struct mg_process_sample *process,
                char *complaint) {
        uint64_t pid = (uint64_t) process->pid;
        int r;

        if (!json_is_object(object)) {
                snprintf(complaint, TRACE_COMPLAINT_MAX, "processes: expected a list of objects");
                return -EBADMSG;
        }
        r = get_numbers(object, process_keys, MG_ELEMENTS(process_keys), process, complaint);
        if (r == 0)
                r = get_number(object, "pid", &pid, complaint);
        /* Who has told its live bytes has an agent, unless the trace says otherwise. */
        process->has_agent = process->can_trim = process->live_bytes != MG_UNKNOWN;
        if (r == 0)
                r = get_boolean(object, "agent", &process->has_agent, complaint);
        if (r == 0)
                r = get_boolean(object, "can_trim", &process->can_trim, complaint);
        if (r == 0)
                r = get_boolean(object, "sliced", &process->sliced, complaint);
        if (r == 0)
                r = get_boolean(object, "suspended", &process->suspended, complaint);
        process->pid = (pid_t) pid;
        if (process->live_bytes != MG_UNKNOWN)
                process->stats_at_usec = at_usec;
        return r;
}

/* The line stands for its only process, whose resident memory is the unit's. */
static int get_only_process(const json_t *object, struct trace_line *line, char *complaint) {
        struct mg_process_sample *process = &line->processes[0];
        int r;

        *process = process_sample_unknown(1, 0);
        r = get_process(object, line->at_usec, process, complaint);
        if (process->rss_anon_bytes == MG_UNKNOWN)
                process->rss_anon_bytes = line->sample.memory.anon_bytes;
        line->sample.n_processes = 1;
        return r;
}

static int get_processes(const json_t *object, struct trace_line *line, char *complaint) {
        const json_t *list = json_object_get(object, "processes");
        int r = 0;

        if (!list || json_is_null(list))
                return get_only_process(object, line, complaint);
        if (!json_is_array(list) || json_array_size(list) > TRACE_PROCESSES_MAX) {
                snprintf(complaint, TRACE_COMPLAINT_MAX, "processes: expected a list of at most %d",
                         TRACE_PROCESSES_MAX);
                return -EBADMSG;
        }
        line->sample.n_processes = json_array_size(list);
        for (size_t i = 0; i < line->sample.n_processes && r == 0; i++) {
                line->processes[i] = process_sample_unknown((pid_t) (i + 1), 0);
                r = get_process(json_array_get(list, i), line->at_usec, &line->processes[i],
                                complaint);
        }
        return r;
}

static int get_activity(const json_t *object, enum mg_activity *ret_activity, char *complaint) {
        const char *name = json_string_value(json_object_get(object, "activity"));

        if (!json_object_get(object, "activity"))
                return 0;
        for (int activity = 0; name && activity < _MG_ACTIVITY_MAX; activity++)
                if (mg_streq(activity_to_string(activity), name)) {
                        *ret_activity = activity;
                        return 0;
                }
        snprintf(complaint, TRACE_COMPLAINT_MAX,
                 "activity: expected active, activating, reloading or deactivating");
        return -EBADMSG;
}

static int get_unit(const json_t *object, struct trace_line *line, char *complaint) {
        const char *name = json_string_value(json_object_get(object, "unit"));

        line->at_usec = MG_UNKNOWN;
        if (get_number(object, "at_usec", &line->at_usec, complaint) < 0)
                return -EBADMSG;
        if (!name || line->at_usec == MG_UNKNOWN || name[0] == '\0' ||
            strlen(name) >= sizeof(line->unit)) {
                snprintf(complaint, TRACE_COMPLAINT_MAX, "expected at_usec and the unit's name");
                return -EBADMSG;
        }
        memcpy(line->unit, name, strlen(name) + 1);
        return 0;
}

static int get_rest(const json_t *object, struct trace_line *line, char *complaint) {
        struct mg_unit_sample *sample = &line->sample;
        int r;

        r = get_numbers(object, memory_keys, MG_ELEMENTS(memory_keys), &sample->memory, complaint);
        if (r == 0)
                r = get_number(object, "cpu_usage_usec", &sample->cpu_usage_usec, complaint);
        if (r == 0)
                r = get_number(object, "watchdog_usec", &sample->watchdog_usec, complaint);
        if (r == 0)
                r = get_number(object, "pinned_bytes", &line->pinned_bytes, complaint);
        if (r == 0)
                r = get_number(object, "reused_bytes", &line->reused_bytes, complaint);
        if (r == 0)
                r = get_number(object, "pause_usec", &line->pause_usec, complaint);
        if (r == 0)
                r = get_boolean(object, "pressure", &sample->under_pressure, complaint);
        if (r == 0)
                r = get_boolean(object, "paused", &sample->paused, complaint);
        if (r == 0)
                r = get_boolean(object, "checkpoint", &line->checkpoint, complaint);
        return r;
}

int trace_parse(const char *text, size_t length, struct trace_line *ret_line, char *complaint) {
        MG_CLEANUP(json_free) json_t *object = NULL;
        struct trace_line *line = ret_line;
        json_error_t error;
        int r;

        object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        if (!json_is_object(object)) {
                snprintf(complaint, TRACE_COMPLAINT_MAX, "expected a JSON object: %s",
                         object ? "it is none" : error.text);
                return -EBADMSG;
        }
        line->pinned_bytes = line->reused_bytes = 0;
        line->pause_usec = MG_UNKNOWN;
        line->checkpoint = false;
        line->sample = (struct mg_unit_sample){
                .processes = line->processes,
                .cpu_usage_usec = MG_UNKNOWN,
                .watchdog_usec = MG_UNKNOWN,
                .checkpoint_at_usec = MG_UNKNOWN,
        };
        memset(&line->sample.memory, 0xff, sizeof(line->sample.memory));
        r = get_unit(object, line, complaint);
        if (r == 0)
                r = get_rest(object, line, complaint);
        if (r == 0)
                r = get_activity(object, &line->sample.activity, complaint);
        if (r == 0)
                r = get_processes(object, line, complaint);
        return r;
}
