/* SPDX-License-Identifier: MIT */
/* The table of learned costs as lines "NAME GIB CHUNKS STATISTICS BYTES PAUSE"; see costs.h. */
#include "daemon/costs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/parse.h"

#define HEADER "memguard-costs 1\n"
#define FOOTER "end\n"
#define FIELDS 6

void costs_done(struct costs *costs) {
        for (size_t i = 0; i < costs->n_items; i++)
                free(costs->items[i].name);
        free(costs->items);
        *costs = (struct costs){};
}

static struct cost *find_cost(const struct costs *costs, const char *name) {
        for (size_t i = 0; i < costs->n_items; i++)
                if (mg_streq(costs->items[i].name, name))
                        return &costs->items[i];
        return NULL;
}

static void drop_oldest(struct costs *costs) {
        free(costs->items[0].name);
        costs->n_items--;
        memmove(costs->items, costs->items + 1, costs->n_items * sizeof(*costs->items));
}

/* What was learned last is dropped last. */
static void move_to_end(struct costs *costs, struct cost *cost) {
        struct cost moved = *cost, *last = &costs->items[costs->n_items - 1];

        memmove(cost, cost + 1, (size_t) (last - cost) * sizeof(*cost));
        *last = moved;
}

/* A new line at the end of the table, all unknown. */
static int add_cost(struct costs *costs, const char *name, size_t length, struct cost **ret_cost) {
        struct cost *items;
        char *copy;

        if (costs->n_items == COSTS_MAX)
                drop_oldest(costs);
        items = reallocarray(costs->items, costs->n_items + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        costs->items = items;
        copy = strndup(name, length);
        if (!copy)
                return -ENOMEM;
        *ret_cost = &items[costs->n_items++];
        **ret_cost =
                        (struct cost){ copy,       MG_UNKNOWN, MG_UNKNOWN,
                                       MG_UNKNOWN, MG_UNKNOWN, MG_UNKNOWN };
        return 0;
}

static int parse_known(const char *text, size_t length, uint64_t *ret_value) {
        if (length == 1 && text[0] == '-') {
                *ret_value = MG_UNKNOWN;
                return 0;
        }
        return parse_u64_span(text, length, ret_value) < 0 ? -EBADMSG : 0;
}

/* The numbers in the order of a line's fields; field 0 is the name. */
static uint64_t *value_of(struct cost *cost, size_t field) {
        uint64_t *const values[FIELDS] = {
                NULL,
                &cost->pause_usec_per_gib,
                &cost->pause_usec_per_million_chunks,
                &cost->statistics_usec,
                &cost->statistics_bytes,
                &cost->last_pause_usec,
        };

        return values[field];
}

static int decode_line(struct costs *costs, const char *line, size_t length) {
        const char *field[FIELDS];
        size_t field_length[FIELDS];
        struct cost *cost;
        int r;

        for (size_t i = 0; i < FIELDS; i++) {
                const char *space = memchr(line, ' ', length);

                field[i] = line;
                field_length[i] = space ? (size_t) (space - line) : length;
                if (field_length[i] == 0 || !space != (i == FIELDS - 1))
                        return -EBADMSG;
                if (space) {
                        length -= space + 1 - line;
                        line = space + 1;
                }
        }
        r = add_cost(costs, field[0], field_length[0], &cost);
        if (r < 0)
                return r;
        for (size_t i = 1; i < FIELDS && r == 0; i++)
                r = parse_known(field[i], field_length[i], value_of(cost, i));
        return r;
}

int costs_decode(struct costs *costs, const char *text) {
        int r = strncmp(text, HEADER, strlen(HEADER)) == 0 ? 0 : -EBADMSG;

        *costs = (struct costs){};
        for (const char *line = text + strlen(HEADER); r == 0 && !mg_streq(line, FOOTER);) {
                const char *end = strchr(line, '\n');

                /* A file that was cut short has no footer. */
                r = end ? decode_line(costs, line, end - line) : -EBADMSG;
                line = end ? end + 1 : line;
        }
        if (r < 0)
                costs_done(costs);
        return r;
}

static void print_known(FILE *file, uint64_t value) {
        if (value == MG_UNKNOWN)
                fputs(" -", file);
        else
                fprintf(file, " %llu", (unsigned long long) value);
}

int costs_encode(const struct costs *costs, char **ret_text, size_t *ret_length) {
        FILE *file = open_memstream(ret_text, ret_length);

        if (!file)
                return -ENOMEM;
        fputs(HEADER, file);
        for (size_t i = 0; i < costs->n_items; i++) {
                struct cost *cost = &costs->items[i];

                fputs(cost->name, file);
                for (size_t field = 1; field < FIELDS; field++)
                        print_known(file, *value_of(cost, field));
                fputc('\n', file);
        }
        fputs(FOOTER, file);
        return fclose(file) == 0 ? 0 : -ENOMEM;
}

static bool is_plain(const char *name) {
        return name[0] != '\0' && strcspn(name, " \n") == strlen(name);
}

static struct cost costs_of(const struct mg_policy_state *state) {
        return (struct cost){
                .pause_usec_per_gib = state->pause_usec_per_gib,
                .pause_usec_per_million_chunks = state->pause_usec_per_million_chunks,
                .statistics_usec = state->statistics_usec,
                .statistics_bytes = state->statistics_bytes,
                .last_pause_usec = state->last_pause_usec,
        };
}

int costs_remember(struct costs *costs, const char *name, const struct mg_policy_state *state) {
        struct cost *cost = find_cost(costs, name);
        struct cost known = costs_of(state);
        bool changed = false;

        if (!is_plain(name) || (!cost && known.pause_usec_per_gib == MG_UNKNOWN &&
                                known.pause_usec_per_million_chunks == MG_UNKNOWN &&
                                known.statistics_usec == MG_UNKNOWN))
                return 0;
        if (!cost) {
                int r = add_cost(costs, name, strlen(name), &cost);

                if (r < 0)
                        return r;
        }
        for (size_t field = 1; field < FIELDS; field++) {
                changed |= *value_of(cost, field) != *value_of(&known, field);
                *value_of(cost, field) = *value_of(&known, field);
        }
        if (changed)
                move_to_end(costs, cost);
        return changed;
}

void costs_recall(const struct costs *costs, const char *name, struct mg_policy_state *state) {
        const struct cost *cost = find_cost(costs, name);

        if (!cost)
                return;
        state->pause_usec_per_gib = cost->pause_usec_per_gib;
        state->pause_usec_per_million_chunks = cost->pause_usec_per_million_chunks;
        state->statistics_usec = cost->statistics_usec;
        state->statistics_bytes = cost->statistics_bytes;
        state->last_pause_usec = cost->last_pause_usec == MG_UNKNOWN ? 0 : cost->last_pause_usec;
}
