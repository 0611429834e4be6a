/* SPDX-License-Identifier: MIT */
/* The answer from the facts. Layer: host; pure. */
#include "host/why_no_agent.h"

#include "base/macros.h"

static const struct {
        const char *name;
        const char *text;
} states[] = {
        [MG_AGENT_LOADED] = { "loaded", "the agent is loaded and connected" },
        [MG_AGENT_OUTDATED] = { "outdated",
                                "the agent is connected and older than memguardd: a restart of the service "
                                "loads the new one" },
        [MG_AGENT_CONNECTING] = { "connecting",
                                  "the agent is loaded and has not connected yet, or was refused" },
        [MG_AGENT_SINGLE_THREADED] = { "single-threaded",
                                       "the agent is loaded and waits for the program's first thread: "
                                       "MEMGUARD_THREAD=always starts it at once" },
        [MG_AGENT_NO_THREAD] = { "no-thread",
                                 "the agent is loaded, and MEMGUARD_THREAD=never keeps it from running" },
        [MG_AGENT_DISABLED] = { "disabled",
                                "the agent is loaded, and MEMGUARD_DISABLE=1 turns it off" },
        [MG_AGENT_SOCKET_HIDDEN] = { "socket-hidden",
                                     "the agent is loaded, and memguard's socket is not in the process's view "
                                     "of the file system" },
        [MG_AGENT_SOCKET_BLOCKED] = { "socket-blocked",
                                      "the agent is loaded, and RestrictAddressFamilies= or a system call "
                                      "filter keeps it from connecting" },
        [MG_AGENT_STATIC] = { "static",
                              "the program is linked statically: nothing can be preloaded" },
        [MG_AGENT_OTHER_ARCHITECTURE] = { "other-architecture",
                                          "the program is of another architecture or word size than the agent" },
        [MG_AGENT_OTHER_LIBC] = { "other-libc",
                                  "the program runs on another C library than glibc" },
        [MG_AGENT_SECURE_EXEC] = { "secure-exec",
                                   "set-uid, set-gid or capabilities at its start: the loader ignores LD_PRELOAD" },
        [MG_AGENT_NOT_FOUND] = { "not-found",
                                 "LD_PRELOAD names the agent, and the loader could not load it: is it there in the "
                                 "process's view of the file system?" },
        [MG_AGENT_PRELOAD_LOST] = { "preload-lost",
                                    "the unit sets LD_PRELOAD, and whoever started the process cleared it" },
        [MG_AGENT_NOT_CONFIGURED] = { "not-configured",
                                      "LD_PRELOAD does not name the agent: memguardctl enroll sets it" },
        [MG_AGENT_NOT_READABLE] = { "not-readable",
                                    "CAP_SYS_PTRACE is needed to look at the process" },
        [MG_AGENT_UNKNOWN] = { "unknown", "there is no agent, for no reason that can be seen" },
};
_Static_assert(MG_ELEMENTS(states) == _MG_AGENT_STATE_MAX, "a state has no name");

const char *agent_state_to_string(enum mg_agent_state state) {
        return states[state].name;
}

const char *agent_state_describe(enum mg_agent_state state) {
        return states[state].text;
}

/* What keeps an agent that is in the process from being heard. */
static enum mg_agent_state why_not_connected(const struct mg_agent_facts *facts) {
        if (facts->disabled == MG_FACT_YES)
                return MG_AGENT_DISABLED;
        if (facts->thread == MG_AGENT_THREAD_NEVER)
                return MG_AGENT_NO_THREAD;
        if (facts->thread == MG_AGENT_THREAD_FOLLOW && facts->threads == 1)
                return MG_AGENT_SINGLE_THREADED;
        if (facts->unix_forbidden == MG_FACT_YES)
                return MG_AGENT_SOCKET_BLOCKED;
        if (facts->socket_visible == MG_FACT_NO)
                return MG_AGENT_SOCKET_HIDDEN;
        /* Any filter may be the one: the unit's properties did not say, or say nothing of AF_UNIX. */
        if (facts->seccomp == MG_FACT_YES)
                return MG_AGENT_SOCKET_BLOCKED;
        return MG_AGENT_CONNECTING;
}

/* The program itself first: where nothing can be preloaded, what LD_PRELOAD says does not matter. */
static enum mg_agent_state why_not_loaded(const struct mg_agent_facts *facts) {
        if (facts->program_static == MG_FACT_YES)
                return MG_AGENT_STATIC;
        if (facts->program_native == MG_FACT_NO)
                return MG_AGENT_OTHER_ARCHITECTURE;
        if (facts->libc == MG_LIBC_MUSL || facts->libc == MG_LIBC_OTHER)
                return MG_AGENT_OTHER_LIBC;
        if (facts->secure_exec == MG_FACT_YES)
                return MG_AGENT_SECURE_EXEC;
        if (facts->preloaded == MG_FACT_YES)
                return facts->mapped == MG_FACT_NO ? MG_AGENT_NOT_FOUND : MG_AGENT_UNKNOWN;
        if (facts->preloaded == MG_FACT_NO)
                return facts->unit_configured == MG_FACT_YES ? MG_AGENT_PRELOAD_LOST
                                                             : MG_AGENT_NOT_CONFIGURED;
        return facts->readable == MG_FACT_NO ? MG_AGENT_NOT_READABLE : MG_AGENT_UNKNOWN;
}

enum mg_agent_state why_no_agent(const struct mg_agent_facts *facts) {
        if (facts->connected == MG_FACT_YES)
                return facts->outdated == MG_FACT_YES ? MG_AGENT_OUTDATED : MG_AGENT_LOADED;
        return facts->mapped == MG_FACT_YES ? why_not_connected(facts) : why_not_loaded(facts);
}

/* LD_PRELOAD= is a list with blanks or colons. */
static bool names_agent(const char *list) {
        return strstr(list, "libmemguard-preload.so") != NULL;
}

void why_no_agent_environment(struct mg_agent_facts *facts, const char *assignment) {
        const char *equals = strchr(assignment, '=');
        if (!equals)
                return;
        size_t length = (size_t) (equals - assignment);
        const char *value = equals + 1;

#define IS(name) (length == sizeof(name) - 1 && memcmp(assignment, name, length) == 0)
        if (IS("LD_PRELOAD"))
                facts->preloaded = names_agent(value) ? MG_FACT_YES : MG_FACT_NO;
        else if (IS("MEMGUARD_DISABLE"))
                facts->disabled = mg_streq(value, "1") ? MG_FACT_YES : MG_FACT_NO;
        else if (IS("MEMGUARD_THREAD"))
                facts->thread = mg_streq(value, "never")    ? MG_AGENT_THREAD_NEVER
                                : mg_streq(value, "always") ? MG_AGENT_THREAD_ALWAYS
                                                            : MG_AGENT_THREAD_FOLLOW;
#undef IS
}
