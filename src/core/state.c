/* SPDX-License-Identifier: MIT */
/*
 * The text form of the learned state. One table says what is written and what is accepted; the slope is not in it, since
 * the floors determine it. Every key has to be there once: a state that was read is whole or not
 * used. Layer: core; pure.
 */
#include "core/state.h"

#include <errno.h>

#include "base/hash.h"
#include "base/parse.h"
#include "base/text.h"

#define STATE_VERSION "MEMGUARD_STATE=1\n"

enum kind {
        KIND_U64, /* "-" is MG_UNKNOWN */
        KIND_U32,
        KIND_BOOL,
        KIND_ENUM,
        KIND_TREND,
};

struct field {
        const char *key;
        enum kind kind;
        size_t offset;
        uint64_t limit; /* of an enum */
};

#define FIELD(kind, key, member) \
        { key, kind, offsetof(struct mg_policy_state, member), 0 }
#define ENUM(key, member, limit) \
        { key, KIND_ENUM, offsetof(struct mg_policy_state, member), limit }

static const struct field state_fields[] = {
        FIELD(KIND_U64, "COOLDOWN_UNTIL_USEC", cooldown_until_usec),
        FIELD(KIND_U64, "BACKOFF_UNTIL_USEC", backoff_until_usec),
        FIELD(KIND_U64, "BACKOFF_USEC", backoff_usec),
        ENUM("BACKOFF_REASON", backoff_reason, _MG_REASON_MAX),
        FIELD(KIND_U64, "STUCK_BYTES", stuck_bytes),
        FIELD(KIND_U64, "STUCK_AT_USEC", stuck_at_usec),
        FIELD(KIND_BOOL, "STUCK_PENDING", stuck_pending),
        FIELD(KIND_U64, "LAST_TRIM_USEC", last_trim_usec),
        FIELD(KIND_U64, "LAST_GAIN_BYTES", last_gain_bytes),
        FIELD(KIND_U64, "LAST_LIVE_BYTES", last_live_bytes),
        FIELD(KIND_U64, "LAST_LIVE_AT_USEC", last_live_at_usec),
        FIELD(KIND_U32, "LAST_LIVE_WHO", last_live_who),
        FIELD(KIND_U64, "MASS_FREE_AT_USEC", mass_free_at_usec),
        FIELD(KIND_U64, "MASS_FREE_BYTES", mass_free_bytes),
        FIELD(KIND_U64, "MASS_FREE_BAR_BYTES", mass_free_bar_bytes),
        FIELD(KIND_U64, "CHECKPOINT_SEEN_USEC", checkpoint_seen_usec),
        FIELD(KIND_U64, "AFTER_TRIM_FOOTPRINT_BYTES", after_trim_footprint_bytes),
        FIELD(KIND_U64, "AFTER_TRIM_THP_BYTES", after_trim_thp_bytes),
        FIELD(KIND_U64, "PAUSE_USEC_PER_GIB", pause_usec_per_gib),
        FIELD(KIND_U64, "PAUSE_USEC_PER_MILLION_CHUNKS", pause_usec_per_million_chunks),
        FIELD(KIND_U64, "RATES_AT_USEC", rates_at_usec),
        FIELD(KIND_U64, "LAST_PAUSE_USEC", last_pause_usec),
        FIELD(KIND_U64, "STATISTICS_USEC", statistics_usec),
        FIELD(KIND_U64, "STATISTICS_BYTES", statistics_bytes),
        FIELD(KIND_BOOL, "REGROWTH_CHECKED", regrowth_checked),
        FIELD(KIND_BOOL, "REFILL_CHECKED", refill_checked),
        FIELD(KIND_BOOL, "BREAKER_OPEN", breaker_open),
        FIELD(KIND_BOOL, "PINNED", pinned),
        FIELD(KIND_BOOL, "REFILLED", refilled),
        FIELD(KIND_U64, "IDLE_SINCE_USEC", idle_since_usec),
        FIELD(KIND_U64, "LAST_CPU_USAGE_USEC", last_cpu_usage_usec),
        FIELD(KIND_U64, "LAST_CPU_AT_USEC", last_cpu_at_usec),
        FIELD(KIND_U64, "LAST_SAMPLE_USEC", last_sample_usec),
        FIELD(KIND_U64, "TRIMS", trims),
        FIELD(KIND_U64, "TRIMMED_BYTES", trimmed_bytes),
        FIELD(KIND_U64, "WOULD_TRIM", would_trim),
        FIELD(KIND_U64, "WOULD_TRIM_BYTES", would_trim_bytes),
        FIELD(KIND_U64, "WOULD_TRIM_AT_USEC", would_trim_at_usec),
        FIELD(KIND_BOOL, "WOULD_TRIM_COUNTED", would_trim_counted),
        FIELD(KIND_U64, "LAST_STARTED_USEC", last.started_usec),
        FIELD(KIND_U64, "LAST_ENDED_USEC", last.ended_usec),
        FIELD(KIND_U64, "LAST_BEFORE_BYTES", last.before_bytes),
        FIELD(KIND_U64, "LAST_AFTER_BYTES", last.after_bytes),
        FIELD(KIND_U64, "LAST_LIVE_GROWTH_BYTES", last.live_growth_bytes),
        FIELD(KIND_U64, "LAST_EXPECTED_BYTES", last.expected_bytes),
        FIELD(KIND_U64, "LAST_ROUND_PAUSE_USEC", last.pause_usec),
        FIELD(KIND_U64, "LAST_DURATION_USEC", last.duration_usec),
        FIELD(KIND_U64, "LAST_MINOR_FAULTS", last.minor_faults),
        FIELD(KIND_U64, "LAST_FREE_CHUNKS", last.free_chunks),
        FIELD(KIND_U64, "LAST_ASKED_BYTES", last.asked_bytes),
        FIELD(KIND_U32, "LAST_ASKED", last.n_asked),
        FIELD(KIND_U32, "LAST_ANSWERED", last.n_answered),
        FIELD(KIND_U32, "LAST_REFUSED", last.n_refused),
        FIELD(KIND_U64, "LAST_PREDICTED_PAUSE_USEC", last.predicted_pause_usec),
        FIELD(KIND_BOOL, "LAST_SLICED", last.sliced),
        FIELD(KIND_BOOL, "LAST_BY_HAND", last.by_hand),
        FIELD(KIND_U64, "LAST_ANON_THP_BEFORE_BYTES", last.anon_thp_before_bytes),
        FIELD(KIND_U64, "LAST_ANON_THP_AFTER_BYTES", last.anon_thp_after_bytes),
        ENUM("LAST_REASON", last.reason, _MG_REASON_MAX),
        ENUM("VERDICT", verdict.verdict, _MG_VERDICT_MAX),
        ENUM("VERDICT_CANDIDATE", verdict.candidate, _MG_VERDICT_MAX),
        FIELD(KIND_U32, "LIVE_GROWTH_FLOORS", verdict.live_growth_floors),
        FIELD(KIND_U64, "ANSWERED_USEC", verdict.answered_usec),
        FIELD(KIND_TREND, "ANON", verdict.anon),
        FIELD(KIND_TREND, "LIVE", verdict.live),
        FIELD(KIND_TREND, "OTHER", verdict.other),
};
_Static_assert(sizeof(enum mg_reason) == sizeof(uint32_t), "enums are copied as 32 bits");

/* Finds cut and changed files, not forgers, who could write the directory anyway. */
static uint64_t checksum(const char *text, size_t length) {
        return hash_add(MG_HASH_INIT, text, length);
}

static void put_number(struct mg_text *text, uint64_t value, uint64_t unknown) {
        if (value == unknown)
                text_put_char(text, '-');
        else
                text_put_u64(text, value);
}

/* The minute being gathered, its lowest sample, then the finished floors, oldest first; empty before the first sample. */
static void put_trend(struct mg_text *text, const struct mg_trend *trend) {
        uint32_t oldest = trend->head + MG_TREND_FLOORS_MAX - trend->count;

        if (!trend->started)
                return;
        text_put_u64(text, trend->minute);
        text_put_char(text, ' ');
        text_put_u64(text, trend->lowest_kib);
        for (uint32_t i = 0; i < trend->count; i++) {
                text_put_char(text, ' ');
                put_number(text, trend->floor_kib[(oldest + i) % MG_TREND_FLOORS_MAX],
                           MG_TREND_GAP);
        }
}

static void put_field(struct mg_text *text, const struct field *field, const void *member) {
        uint64_t u64 = 0;
        uint32_t u32 = 0;
        bool boolean = false;

        text_put(text, field->key);
        text_put_char(text, '=');
        switch (field->kind) {
        case KIND_U64:
                memcpy(&u64, member, sizeof(u64));
                put_number(text, u64, MG_UNKNOWN);
                break;
        case KIND_U32:
        case KIND_ENUM:
                memcpy(&u32, member, sizeof(u32));
                text_put_u64(text, u32);
                break;
        case KIND_BOOL:
                memcpy(&boolean, member, sizeof(boolean));
                text_put_u64(text, boolean);
                break;
        case KIND_TREND:
                put_trend(text, member);
                break;
        }
        text_put_char(text, '\n');
}

static void put_fields(
                struct mg_text *text,
                const struct field *fields,
                size_t n_fields,
                const struct mg_policy_state *state) {
        for (size_t i = 0; i < n_fields; i++)
                put_field(text, &fields[i], (const char *) state + fields[i].offset);
}

static int finish(struct mg_text *text, size_t *ret_length) {
        uint64_t sum = checksum(text->buffer, text->length);

        text_put(text, "CHECKSUM=");
        text_put_u64(text, sum);
        text_put_char(text, '\n');
        if (text->overflow)
                return -EMSGSIZE;
        *ret_length = text->length;
        return 0;
}

int state_encode(
                const struct mg_policy_state *state,
                uint64_t now_usec,
                char *buffer,
                size_t size,
                size_t *ret_length) {
        struct mg_text text;

        if (size == 0)
                return -EMSGSIZE;
        text_init(&text, buffer, size);
        text_put(&text, STATE_VERSION "SAVED_USEC=");
        text_put_u64(&text, now_usec);
        text_put_char(&text, '\n');
        put_fields(&text, state_fields, MG_ELEMENTS(state_fields), state);
        return finish(&text, ret_length);
}

/* A piece of the text that is being read. */
struct span {
        const char *at;
        size_t length;
};

/* Cuts off what stands before the next SEPARATOR, or the rest. False at the end. */
static bool next_piece(struct span *rest, char separator, struct span *ret_piece) {
        const char *end;

        if (rest->length == 0)
                return false;
        end = memchr(rest->at, separator, rest->length);
        ret_piece->at = rest->at;
        ret_piece->length = end ? (size_t) (end - rest->at) : rest->length;
        rest->at += ret_piece->length + (end != NULL);
        rest->length -= ret_piece->length + (end != NULL);
        return true;
}

static int get_number(struct span text, uint64_t unknown, uint64_t limit, uint64_t *ret_value) {
        uint64_t value;

        if (text.length == 1 && text.at[0] == '-' && unknown != 0) {
                *ret_value = unknown;
                return 0;
        }
        if (parse_u64_span(text.at, text.length, &value) < 0 || value >= limit)
                return -EBADMSG;
        *ret_value = value;
        return 0;
}

static int get_trend(struct span text, struct mg_trend *trend) {
        struct span piece;
        uint64_t value;

        trend_init(trend);
        if (text.length == 0)
                return 0;
        if (!next_piece(&text, ' ', &piece) || get_number(piece, 0, UINT64_MAX, &value) < 0)
                return -EBADMSG;
        trend->minute = value;
        if (!next_piece(&text, ' ', &piece) || get_number(piece, 0, MG_TREND_GAP, &value) < 0)
                return -EBADMSG;
        trend->lowest_kib = (uint32_t) value;
        trend->started = true;
        while (next_piece(&text, ' ', &piece)) {
                if (trend->count == MG_TREND_FLOORS_MAX ||
                    get_number(piece, MG_TREND_GAP, MG_TREND_GAP, &value) < 0)
                        return -EBADMSG;
                trend->floor_kib[trend->count++] = (uint32_t) value;
        }
        trend->head = trend->count % MG_TREND_FLOORS_MAX;
        return 0;
}

static int get_field(const struct field *field, struct span text, void *member) {
        uint64_t value = 0;
        uint32_t u32;
        bool boolean;
        int r = -EBADMSG;

        switch (field->kind) {
        case KIND_U64:
                r = get_number(text, MG_UNKNOWN, MG_UNKNOWN, &value);
                if (r == 0)
                        memcpy(member, &value, sizeof(value));
                break;
        case KIND_U32:
        case KIND_ENUM:
                r = get_number(text, 0, field->kind == KIND_ENUM ? field->limit : UINT64_C(1) << 32,
                               &value);
                u32 = (uint32_t) value;
                if (r == 0)
                        memcpy(member, &u32, sizeof(u32));
                break;
        case KIND_BOOL:
                r = get_number(text, 0, 2, &value);
                boolean = value == 1;
                if (r == 0)
                        memcpy(member, &boolean, sizeof(boolean));
                break;
        case KIND_TREND:
                r = get_trend(text, member);
                break;
        }
        return r;
}

static const struct field *find_field(
                const struct field *fields,
                size_t n_fields,
                struct span key) {
        for (size_t i = 0; i < n_fields; i++)
                if (strlen(fields[i].key) == key.length &&
                    memcmp(fields[i].key, key.at, key.length) == 0)
                        return &fields[i];
        return NULL;
}

/* Every field once and nothing else; no list of fields is longer than state_fields. */
static int get_fields(
                struct span text,
                const struct field *fields,
                size_t n_fields,
                struct mg_policy_state *state) {
        bool seen[MG_ELEMENTS(state_fields)] = {};
        size_t n_seen = 0;
        struct span line;

        while (next_piece(&text, '\n', &line)) {
                struct span value = line;
                struct span key;
                const struct field *field;

                if (!next_piece(&value, '=', &key) || key.length == line.length)
                        return -EBADMSG;
                field = find_field(fields, n_fields, key);
                if (!field)
                        return -EBADMSG;
                if (seen[field - fields] ||
                    get_field(field, value, (char *) state + field->offset) < 0)
                        return -EBADMSG;
                seen[field - fields] = true;
                n_seen++;
        }
        return n_seen == n_fields ? 0 : -EBADMSG;
}

/* Takes the version off the front and the checksum off the end. */
static int open_text(struct span *text, const char *version) {
        static const char key[] = "CHECKSUM=";
        size_t version_length = strlen(version);
        size_t prefix = (size_t) (strchr(version, '=') + 1 - version);
        struct span line = {};
        struct span rest = *text;
        uint64_t sum;

        if (text->length < prefix || memcmp(text->at, version, prefix) != 0)
                return -EBADMSG;
        if (text->length < version_length || memcmp(text->at, version, version_length) != 0)
                return -EPROTONOSUPPORT;
        if (text->at[text->length - 1] != '\n')
                return -EBADMSG;
        while (next_piece(&rest, '\n', &line)) {
        }
        if (line.length < sizeof(key) - 1 || memcmp(line.at, key, sizeof(key) - 1) != 0 ||
            parse_u64_span(line.at + sizeof(key) - 1, line.length - sizeof(key) + 1, &sum) < 0)
                return -EBADMSG;
        text->length = (size_t) (line.at - text->at);
        if (checksum(text->at, text->length) != sum)
                return -EBADMSG;
        text->at += version_length;
        text->length -= version_length;
        return 0;
}

static int take_saved(struct span *text, uint64_t *ret_saved_usec) {
        static const char key[] = "SAVED_USEC=";
        struct span line;

        if (!next_piece(text, '\n', &line) || line.length < sizeof(key) - 1 ||
            memcmp(line.at, key, sizeof(key) - 1) != 0 ||
            parse_u64_span(line.at + sizeof(key) - 1, line.length - sizeof(key) + 1,
                           ret_saved_usec) < 0)
                return -EBADMSG;
        return 0;
}

int state_decode(
                const char *text,
                size_t length,
                uint64_t now_usec,
                struct mg_policy_state *ret_state) {
        struct mg_policy_state state;
        struct span rest = { text, length };
        uint64_t saved_usec;
        int r;

        r = open_text(&rest, STATE_VERSION);
        if (r < 0)
                return r;
        r = take_saved(&rest, &saved_usec);
        if (r < 0)
                return r;
        policy_init(&state);
        r = get_fields(rest, state_fields, MG_ELEMENTS(state_fields), &state);
        if (r < 0)
                return r;
        if (saved_usec > now_usec)
                return -ESTALE;
        state.verdict.slope_known = trend_slope(&state.verdict.anon, 0, &state.verdict.slope) == 0;
        *ret_state = state;
        return 0;
}
