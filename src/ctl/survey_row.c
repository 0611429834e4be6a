/* SPDX-License-Identifier: MIT */
/* What survey prints of one unit. Layer: ctl. */
#include "ctl/survey.h"
#include "host/allocator.h"
#include "host/cleanup.h"
#include "host/printable.h"

static json_t *list_allocators(uint32_t mask) {
        json_t *list = json_array();

        for (int i = 0; i < _MG_ALLOCATOR_MAX; i++)
                if (mask & UINT32_C(1) << i)
                        json_array_append_new(
                                        list,
                                        json_string(allocator_to_string((enum mg_allocator) i)));
        return list;
}

json_t *survey_row(const struct survey_unit *unit) {
        MG_CLEANUP(freep) char *name = printable_copy(unit->name);
        MG_CLEANUP(freep) char *path = unit->path ? printable_copy(unit->path) : NULL;
        bool readable = unit->unreadable < unit->processes;
        const char *reason;
        enum survey_profit profit = survey_judge(unit, &reason);
        json_t *row;

        if (!name || (unit->path && !path))
                return NULL;
        row = json_pack("{s:s, s:s?, s:b, s:I, s:I, s:I, s:I, s:I, s:s, s:s}", "unit", name,
                        "cgroup", path, "user", (int) unit->user, "anon_bytes",
                        (json_int_t) unit->anon_bytes, "processes", (json_int_t) unit->processes,
                        "unreadable", (json_int_t) unit->unreadable, "agents",
                        (json_int_t) unit->agents, "threads", (json_int_t) unit->threads, "profit",
                        survey_profit_to_string(profit), "reason", reason);

        /* What nobody may look at is unknown, not none. */
        json_object_set_new(
                        row, "allocators",
                        readable ? list_allocators(unit->allocators) : json_null());
        json_object_set_new(
                        row, "arena_heaps",
                        readable ? json_integer(unit->arena_heaps) : json_null());
        return row;
}
