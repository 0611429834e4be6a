/* SPDX-License-Identifier: MIT */
/*
 * Problems of a configuration. What a file says is shown on terminals, in the journal and over D-Bus, so bytes that could
 * do harm there are replaced. Layer: host; never logs.
 */
#include "host/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text.h"

/* A value has at most 199 bytes (a line's limit), the rest is ours. */
#define PROBLEM_TEXT_MAX 768

void problems_done(struct mg_problems *problems) {
        for (size_t i = 0; i < problems->n_items; i++) {
                free(problems->items[i].file);
                free(problems->items[i].text);
        }
        free(problems->items);
        *problems = (struct mg_problems){};
}

static char *copy_printable(const char *string) {
        char *copy = strdup(string);

        for (char *at = copy; at && *at; at++)
                if (*at < 0x20 || *at >= 0x7f)
                        *at = '?';
        return copy;
}

void problems_add(
                struct mg_problems *problems,
                enum mg_severity severity,
                const char *file,
                unsigned line,
                const char *format,
                ...) {
        char text[PROBLEM_TEXT_MAX];
        va_list arguments;

        if (severity == MG_SEVERITY_ERROR)
                problems->n_errors++;
        struct mg_problem *items =
                        realloc(problems->items, (problems->n_items + 1) * sizeof(*items));
        if (!items)
                return;
        problems->items = items;

        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        items[problems->n_items++] = (struct mg_problem){
                .severity = severity,
                .file = copy_printable(file),
                .line = line,
                .text = copy_printable(text),
        };
}

const char *problem_format(const struct mg_problem *problem, char buffer[static MG_PROBLEM_MAX]) {
        struct mg_text text;

        text_init(&text, buffer, MG_PROBLEM_MAX);
        text_put(&text, problem->file ? problem->file : "?");
        text_put_char(&text, ':');
        if (problem->line > 0) {
                text_put_u64(&text, problem->line);
                text_put_char(&text, ':');
        }
        text_put_char(&text, ' ');
        text_put(&text, problem->text ? problem->text : "(out of memory)");
        return buffer;
}
