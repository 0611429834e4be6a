/* SPDX-License-Identifier: MIT */
/*
 * Why a process has no agent, or why the one it has is not heard of: what was found out about the process, and one answer from it.
 * Layer: host; never logs. The answer is a pure function; the collector reads /proc and needs CAP_SYS_PTRACE for others' processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/elf_file.h"

enum mg_agent_state {
        MG_AGENT_LOADED, /* and connected */
        MG_AGENT_OUTDATED, /* the same, of a version before the daemon's: it was loaded before an upgrade */
        MG_AGENT_CONNECTING, /* loaded, nothing in its way: it waits MEMGUARD_DELAY=, or was refused */
        MG_AGENT_SINGLE_THREADED, /* loaded, MEMGUARD_THREAD=follow, and the program has made no thread yet */
        MG_AGENT_NO_THREAD,      /* loaded, MEMGUARD_THREAD=never */
        MG_AGENT_DISABLED,       /* loaded, MEMGUARD_DISABLE=1 */
        MG_AGENT_SOCKET_HIDDEN,  /* loaded, no socket of ours in its view of the file system */
        MG_AGENT_SOCKET_BLOCKED, /* loaded, a filter forbids AF_UNIX or system calls */
        MG_AGENT_STATIC,
        MG_AGENT_OTHER_ARCHITECTURE,
        MG_AGENT_OTHER_LIBC,
        MG_AGENT_SECURE_EXEC, /* set-uid, set-gid, capabilities or a domain change: the loader ignores LD_PRELOAD */
        MG_AGENT_NOT_FOUND,    /* LD_PRELOAD names it, and the loader did not find it */
        MG_AGENT_PRELOAD_LOST, /* the unit sets LD_PRELOAD, and the process was started without it */
        MG_AGENT_NOT_CONFIGURED,
        MG_AGENT_NOT_READABLE, /* CAP_SYS_PTRACE is missing: nothing is known */
        MG_AGENT_UNKNOWN,
        _MG_AGENT_STATE_MAX,
};

const char *agent_state_to_string(enum mg_agent_state state); /* "loaded", "secure-exec" */

/* One sentence for an operator, without a full stop: "set-uid, set-gid or capabilities: the loader ignores LD_PRELOAD". */
const char *agent_state_describe(enum mg_agent_state state);

/* Everything may be unknown, which is 0. */
enum mg_fact {
        MG_FACT_UNKNOWN,
        MG_FACT_NO,
        MG_FACT_YES,
};

enum mg_agent_thread {
        MG_AGENT_THREAD_FOLLOW,
        MG_AGENT_THREAD_ALWAYS,
        MG_AGENT_THREAD_NEVER,
};

struct mg_agent_facts {
        /* The caller's. */
        enum mg_fact connected;       /* the daemon has a peer of this process */
        enum mg_fact outdated;        /* the connected agent is older than the daemon */
        enum mg_fact unit_configured; /* Environment= of its unit has the agent in LD_PRELOAD */
        enum mg_fact unix_forbidden;  /* RestrictAddressFamilies= of its unit leaves AF_UNIX out */

        /* The collector's. */
        enum mg_fact readable; /* exe and maps: what CAP_SYS_PTRACE opens */
        enum mg_fact mapped;
        enum mg_fact program_static;
        enum mg_fact program_native;
        enum mg_libc libc; /* valid where program_static is known */
        enum mg_fact secure_exec;
        enum mg_fact preloaded; /* LD_PRELOAD of the environment it was started with names the agent */
        enum mg_fact disabled;
        enum mg_agent_thread thread;
        enum mg_fact socket_visible;
        enum mg_fact seccomp;
        uint32_t threads; /* 0: unknown */
};

enum mg_agent_state why_no_agent(const struct mg_agent_facts *facts);

/*
 * Fills the collector's members; the caller's stay. SOCKET is where the agent would connect, as the process names it. Returns 0 however
 * little could be read, or -ESRCH: gone.
 */
int why_no_agent_collect(
                const char *proc_root,
                pid_t pid,
                const char *socket,
                struct mg_agent_facts *facts);

/* One NAME=VALUE of the environment. */
void why_no_agent_environment(struct mg_agent_facts *facts, const char *assignment);
