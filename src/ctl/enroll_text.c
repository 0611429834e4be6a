/* SPDX-License-Identifier: MIT */
/* The texts that enroll writes. Values are foreign: each is quoted for the parser that reads it back. Layer: ctl; pure. */
#include "ctl/enroll.h"

#include "base/macros.h"

#define AGENT_LIBRARY "libmemguard-preload.so"

/* What LD_PRELOAD is split at. */
#define SEPARATORS " \t\n:"

/* "lib/x86_64-linux-gnu" and its like in Debian, "lib64" elsewhere. A plain "lib" is $LIB on some and not on others. */
static bool is_dollar_lib(const char *tail) {
        return mg_streq(tail, "lib64") || mg_streq(tail, "lib32") || mg_streq(tail, "libx32") ||
               (strncmp(tail, "lib/", 4) == 0 && strstr(tail, "-linux-gnu") &&
                !strchr(tail + 4, '/'));
}

void enroll_library_directory(struct mg_text *text, const char *libdir) {
        for (const char *at = strchr(libdir, '/'); at; at = strchr(at + 1, '/')) {
                if (!is_dollar_lib(at + 1))
                        continue;
                text_put_span(text, libdir, (size_t) (at + 1 - libdir));
                text_put(text, "$LIB");
                return;
        }
        text_put(text, libdir);
}

void enroll_join_preload(struct mg_text *text, const char *existing, const char *agent) {
        for (const char *at = existing ?: ""; *at;) {
                at += strspn(at, SEPARATORS);
                size_t length = strcspn(at, SEPARATORS);
                bool is_agent = length >= strlen(AGENT_LIBRARY) &&
                                memcmp(at + length - strlen(AGENT_LIBRARY), AGENT_LIBRARY,
                                       strlen(AGENT_LIBRARY)) == 0;
                if (length > 0 && !is_agent) {
                        text_put_span(text, at, length);
                        text_put_char(text, ':');
                }
                at += length;
        }
        text_put(text, agent);
}

void enroll_environment(struct mg_text *text, const char *name, const char *value) {
        text_put(text, "Environment=\"");
        text_put(text, name);
        text_put_char(text, '=');
        for (; *value; value++) {
                if (*value == '"' || *value == '\\')
                        text_put_char(text, '\\');
                else if (*value == '%')
                        text_put_char(text, '%');
                if (*value == '\n')
                        text_put(text, "\\n");
                else
                        text_put_char(text, *value);
        }
        text_put(text, "\"\n");
}

void enroll_dropin(struct mg_text *text, const struct enroll_facts *facts, const char *agent) {
        char joined[PATH_MAX * 2];
        struct mg_text list;

        text_init(&list, joined, sizeof(joined));
        enroll_join_preload(&list, facts->preload, agent);
        text_put(text, "[Service]\n");
        if (!mg_streq(joined, agent))
                text_put(text,
                         "# What the unit itself preloads comes first. Changed there, it has to be changed here.\n");
        enroll_environment(text, "LD_PRELOAD", joined);
        text_put(text,
                 "# The agent starts when the program makes its first thread. At once, for a program that makes none:\n"
                 "#Environment=MEMGUARD_THREAD=always\n");
        text->overflow |= list.overflow;
}

/* A quarter of what there is now, in whole MiB: where trimming would start to be worth a look. */
static uint64_t propose_trim_above(uint64_t anon_bytes) {
        return MG_MAX(anon_bytes / 4 / MG_MIB * MG_MIB, 64 * MG_MIB);
}

void enroll_section(struct mg_text *text, const struct enroll_facts *facts, const char *date) {
        char size[MG_SHORT_TEXT_MAX];
        bool measured = facts->anon_bytes != MG_UNKNOWN;

        if (measured) {
                text_put(text, "# Before, on ");
                text_put(text, date);
                text_put(text, ": ");
                text_put(text, format_size(facts->anon_bytes, size));
                text_put(text,
                         " anonymous memory in the main process. A restart alone makes less of it:\n"
                         "# that is no gain of memguard's.\n");
        }
        text_put_char(text, '[');
        text_put(text, facts->unit);
        text_put(text,
                 "]\n"
                 "# Measured and judged, never trimmed. When status and advise have convinced you: Mode=trim,\n"
                 "# then memguardctl reload.\n"
                 "Mode=observe\n"
                 "# Trim when more than this is retained. The default: 256M 20%.\n#TrimAbove=");
        if (measured) {
                text_put_u64(text, propose_trim_above(facts->anon_bytes) / MG_MIB);
                text_put(text, "M\n");
        } else
                text_put(text, "256M 20%\n");
        text_put(text,
                 "# The longest that any thread of the service may have to wait. The default: 50ms.\n"
                 "#MaxPause=50ms\n");
}
