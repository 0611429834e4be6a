/* SPDX-License-Identifier: MIT */
/* memguardctl simulate: reading the trace, and telling what came of it. Layer: ctl. */
#include "ctl/simulate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/replayed_unit.h"
#include "ctl/trace.h"
#include "host/config.h"
#include "host/printable.h"
#include "host/problems.h"

static void free_charp(char **string) {
        free(*string);
}

static void close_file(FILE **file) {
        if (*file && *file != stdin)
                fclose(*file);
}

static void json_free(json_t **json) {
        json_decref(*json);
}

struct simulation {
        const struct mg_config *config;
        struct replayed_unit **units;
        size_t n_units;
        enum mg_reason *told; /* of each unit: the reason last told */
        uint64_t start_usec;
        json_t *events; /* NULL: they are printed */
};

static void simulation_done(struct simulation *simulation) {
        for (size_t i = 0; i < simulation->n_units; i++)
                free(simulation->units[i]);
        free(simulation->units);
        free(simulation->told);
        json_decref(simulation->events);
}

static int add_unit(struct simulation *simulation, const char *name, size_t *ret_index) {
        size_t n = simulation->n_units;
        struct replayed_unit **units = reallocarray(simulation->units, n + 1, sizeof(*units));
        struct mg_unit_config config;
        enum mg_reason *told;

        if (!units)
                return -ENOMEM;
        simulation->units = units;
        told = reallocarray(simulation->told, n + 1, sizeof(*told));
        if (!told)
                return -ENOMEM;
        simulation->told = told;
        units[n] = malloc(sizeof(*units[n]));
        if (!units[n])
                return -ENOMEM;
        config_unit(simulation->config, name, NULL, &config, NULL);
        replayed_unit_init(units[n], name, &config);
        told[n] = _MG_REASON_MAX;
        simulation->n_units++;
        *ret_index = n;
        return 0;
}

static int find_unit(struct simulation *simulation, const char *name, size_t *ret_index) {
        for (size_t i = 0; i < simulation->n_units; i++)
                if (mg_streq(simulation->units[i]->name, name)) {
                        *ret_index = i;
                        return 0;
                }
        return add_unit(simulation, name, ret_index);
}

/* Numbers beyond what JSON readers take are left out as unknown ones are. */
static json_t *json_number(uint64_t value) {
        return value > INT64_MAX ? json_null() : json_integer((json_int_t) value);
}

static json_t *json_known(bool known, uint64_t value) {
        return known ? json_number(value) : json_null();
}

static json_t *event_of(
                const struct replayed_unit *unit,
                const struct trace_line *line,
                const char *what,
                const char *reason) {
        const struct mg_account *account = &unit->decision.account;

        return json_pack(
                        "{s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "at_usec",
                        json_number(line->at_usec), "unit", unit->name, "event", what, "reason",
                        reason, "anon_bytes", json_known(account->anon_known, account->anon_bytes),
                        "live_bytes", json_known(account->known, account->live_bytes),
                        "retained_bytes", json_known(account->known, account->retained_bytes),
                        "freeable_bytes", json_known(account->known, account->freeable_bytes));
}

static void add_trim_members(json_t *event, const struct replayed_unit *unit) {
        const struct mg_outcome *outcome = &unit->outcome;

        json_object_set_new(event, "before_bytes", json_number(outcome->before_bytes));
        json_object_set_new(event, "after_bytes", json_number(outcome->after_bytes));
        json_object_set_new(event, "gain_bytes", json_number(outcome_gain(outcome)));
        json_object_set_new(event, "expected_bytes", json_number(outcome->expected_bytes));
        json_object_set_new(event, "pause_usec", json_number(outcome->pause_usec));
}

static void print_event(const struct simulation *simulation, const json_t *event) {
        const char *what = member_text(event, "event");
        uint64_t at = (uint64_t) member_integer(event, "at_usec", 0);
        char since[MG_SHORT_TEXT_MAX];
        MG_CLEANUP(free_charp) char *unit = printable_copy(member_text(event, "unit"));

        printf("%-10s %-28s %-7s %-16s",
               format_duration(mg_sub_floor(at, simulation->start_usec), since), unit ?: "", what,
               member_text(event, "reason"));
        if (mg_streq(what, "trim"))
                printf(" anon %s -> %s, %s of %s, pause %s\n", member_size(event, "before_bytes"),
                       member_size(event, "after_bytes"), member_size(event, "gain_bytes"),
                       member_size(event, "expected_bytes"), member_duration(event, "pause_usec"));
        else
                printf(" anon %s, live %s, retained %s, freeable %s\n",
                       member_size(event, "anon_bytes"), member_size(event, "live_bytes"),
                       member_size(event, "retained_bytes"), member_size(event, "freeable_bytes"));
}

/* Takes EVENT over. */
static void tell(struct simulation *simulation, json_t *event) {
        if (simulation->events) {
                json_array_append_new(simulation->events, event);
                return;
        }
        print_event(simulation, event);
        json_decref(event);
}

static void tell_step(struct simulation *simulation, size_t index, const struct trace_line *line) {
        const struct replayed_unit *unit = simulation->units[index];
        enum mg_reason reason = unit->decision.reason;
        json_t *event;

        if (unit->verdict_changed)
                tell(simulation, event_of(unit, line, "verdict",
                                          verdict_to_string(unit->state.verdict.verdict)));
        if (!unit->trimmed && simulation->told[index] == reason)
                return;
        simulation->told[index] = reason;
        event =
                        event_of(unit, line, action_to_string(unit->decision.action),
                                 reason_to_string(reason));
        if (unit->trimmed)
                add_trim_members(event, unit);
        tell(simulation, event);
        if (unit->breaker_opened)
                tell(simulation,
                     event_of(unit, line, "breaker", reason_to_string(MG_REASON_BREAKER)));
}

static enum mg_reason longest_held(const struct replayed_unit *unit) {
        enum mg_reason longest = MG_REASON_OFF;

        for (int reason = MG_REASON_OFF; reason < _MG_REASON_MAX; reason++)
                if (unit->held[reason] > unit->held[longest])
                        longest = reason;
        return longest;
}

static json_t *summarize(const struct replayed_unit *unit) {
        const struct mg_policy_state *state = &unit->state;
        bool known = unit->known_lines > 0;

        return json_pack(
                        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:o}", "unit",
                        unit->name, "mode", mode_to_string(unit->config.mode), "trims",
                        json_number(state->trims), "trimmed_bytes",
                        json_number(state->trimmed_bytes), "would_trim",
                        json_number(state->would_trim), "mean_anon_bytes",
                        json_number(replayed_unit_mean(unit, unit->traced_byte_usec)),
                        "mean_anon_simulated_bytes",
                        json_number(replayed_unit_mean(unit, unit->simulated_byte_usec)),
                        "peak_anon_bytes", json_known(known, unit->traced_peak_bytes),
                        "peak_anon_simulated_bytes", json_known(known, unit->simulated_peak_bytes),
                        "verdict", verdict_to_string(state->verdict.verdict), "held_mostly",
                        reason_to_string(longest_held(unit)), "lines", json_number(unit->lines));
}

static int tell_units(const struct simulation *simulation) {
        static const struct column columns[] = {
                { "UNIT", "unit", CELL_TEXT, false },
                { "MODE", "mode", CELL_TEXT, false },
                { "TRIMS", "trims", CELL_COUNT, true },
                { "TRIMMED", "trimmed_bytes", CELL_SIZE, true },
                { "WOULD", "would_trim", CELL_COUNT, true },
                { "MEAN", "mean_anon_bytes", CELL_SIZE, true },
                { "->", "mean_anon_simulated_bytes", CELL_SIZE, true },
                { "PEAK", "peak_anon_bytes", CELL_SIZE, true },
                { "->", "peak_anon_simulated_bytes", CELL_SIZE, true },
                { "VERDICT", "verdict", CELL_TEXT, false },
                { "HELD MOSTLY", "held_mostly", CELL_TEXT, false },
        };
        MG_CLEANUP(json_free) json_t *units = json_array();
        MG_CLEANUP(json_free) json_t *all = NULL;

        for (size_t i = 0; i < simulation->n_units; i++)
                json_array_append_new(units, summarize(simulation->units[i]));
        if (!simulation->events) {
                if (simulation->n_units > 0)
                        putchar('\n');
                return table_print(units, columns, MG_ELEMENTS(columns));
        }
        all = json_pack("{s:O, s:O}", "events", simulation->events, "units", units);
        return all ? json_print(all) : CTL_FAILED;
}

/* Returns 0, -EBADMSG with the complaint printed, or -ENOMEM. */
static int take_line(
                struct simulation *simulation,
                const char *path,
                size_t number,
                const char *text,
                size_t length,
                struct trace_line *line) {
        char complaint[TRACE_COMPLAINT_MAX];
        size_t index;
        int r;

        r = trace_parse(text, length, line, complaint);
        if (r < 0) {
                fprintf(stderr, "%s:%zu: %s\n", path, number, complaint);
                return r;
        }
        if (simulation->n_units == 0)
                simulation->start_usec = line->at_usec;
        r = find_unit(simulation, line->unit, &index);
        if (r < 0)
                return r;
        replayed_unit_step(simulation->units[index], line);
        tell_step(simulation, index, line);
        return 0;
}

static bool is_blank(const char *text) {
        return text[strspn(text, " \t\r\n")] == '\0';
}

static int run(struct simulation *simulation, const char *path) {
        MG_CLEANUP(close_file) FILE *file = mg_streq(path, "-") ? stdin : fopen(path, "re");
        MG_CLEANUP(free_charp) char *text = NULL;
        MG_CLEANUP(free_charp) char *line = malloc(sizeof(struct trace_line));
        size_t size = 0;
        ssize_t length;

        if (!file) {
                fprintf(stderr, "%s: %m\n", path);
                return -errno;
        }
        if (!line)
                return -ENOMEM;
        for (size_t number = 1; (length = getline(&text, &size, file)) >= 0; number++) {
                int r = 0;

                if (!is_blank(text))
                        r = take_line(simulation, path, number, text, (size_t) length,
                                      (struct trace_line *) (void *) line);
                if (r < 0)
                        return r;
        }
        if (ferror(file)) {
                fprintf(stderr, "%s: %m\n", path);
                return -EIO;
        }
        return 0;
}

int verb_simulate(int argc, char **argv) {
        MG_CLEANUP(simulation_done) struct simulation simulation = {};
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        char buffer[MG_PROBLEM_MAX];
        int r;

        r = config_load(ctl_options.config_file, NULL, &config, &problems);
        for (size_t i = 0; i < problems.n_items; i++)
                fprintf(stderr, "%s\n", problem_format(&problems.items[i], buffer));
        if (r == 0) {
                simulation.config = config;
                simulation.events = ctl_options.json == JSON_OFF ? NULL : json_array();
                r = run(&simulation, argv[1]);
        }
        if (r == -ENOMEM)
                fprintf(stderr, "memguardctl: out of memory\n");
        return r < 0 ? CTL_FAILED : tell_units(&simulation);
}
