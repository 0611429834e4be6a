/* SPDX-License-Identifier: MIT */
/*
 * What the files of the journal share: an entry begins, is filled, and ends. Layer: daemon; for journal*.c alone.
 */
#pragma once

#include "daemon/journal.h"

/* False: not wanted at this level, or its kind has said enough this minute. */
bool entry_begin(struct mg_record *record, enum mg_event event, int level);
void entry_end(struct mg_record *record);

/* The unit's fields, and "puma.service: " to begin the MESSAGE with. NULL or without a name: nothing. */
void entry_unit(struct mg_record *record, const struct mg_journal_unit *unit);

/* "1 unit", "3 units" */
void entry_say_count(struct mg_record *record, uint64_t count, const char *noun);

/* ", slope +46M/h" */
void entry_say_slope(struct mg_record *record, int64_t bytes_per_hour);
