/* SPDX-License-Identifier: MIT */
/* The kernel's texts as they should never be: memory.stat, single values, /proc's stat, statm and cgroup. */
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/statm.h"
#include "fuzz.h"
#include "host/memory_stat.h"
#include "host/proc.h"
#include "host/unit_name.h"

static void require(int condition) {
        if (!condition)
                abort();
}

static void check_cgroup(const char *text) {
        struct mg_unit_name name;
        char path[256];

        if (proc_cgroup_parse(text, path, sizeof(path)) < 0)
                return;
        require(path[0] == '/' && !strchr(path, '\n'));
        if (unit_name_from_cgroup(path, &name) < 0)
                return;
        require(name.path_length <= strlen(path) && name.unit[0] != '\0');
        for (const char *at = name.unit; *at != '\0'; at++)
                require(*at >= 0x20 && *at < 0x7f);
}

/* A text read with the layout it has itself, and what is behind the first blank line with that of what is before it. */
static void check_stat(const char *text) {
        struct memory_stat_layout layout = {};
        struct mg_memory memory, again;

        memory_unknown(&memory);
        memory_stat_parse(text, strlen(text), &layout, &memory);
        require(memory.swap_bytes == MG_UNKNOWN && memory.current_bytes == MG_UNKNOWN);
        memory_unknown(&again);
        memory_stat_parse(text, strlen(text), &layout, &again);
        require(memcmp(&memory, &again, sizeof(memory)) == 0);
        const char *rest = strstr(text, "\n\n");
        if (rest)
                memory_stat_parse(rest + 2, strlen(rest + 2), &layout, &again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *text = malloc(size + 1);
        uint64_t value = 7;

        if (!text)
                abort();
        memcpy(text, data, size);
        text[size] = '\0';

        check_stat(text);
        require(memory_value_parse(text, &value) == 0 || value == 7);
        (void) flat_keyed_find(text, "high");

        value = 7;
        require(proc_stat_parse_start_time(text, &value) == 0 || value == 7);
        value = 7;
        require(statm_parse_anon(text, 4096, &value) == 0 || value == 7);
        check_cgroup(text);
        free(text);
        return 0;
}
