/* SPDX-License-Identifier: MIT */
/*
 * enroll and withdraw: the agent for a unit by a drop-in, and a section for it. Layer: ctl.
 *
 *   enroll_name.c      which names can be enrolled                             pure
 *   enroll_facts.c     systemd's properties of a unit (as JSON) -> facts       pure, but for environment files
 *   enroll_program.c   the programs behind ExecStart= and the main process     reads files and /proc
 *   enroll_judge.c     facts -> findings: what is in the way, what to know     pure
 *   enroll_text.c      facts -> the text of the drop-in and of the section     pure
 *   enroll_files.c     writing, and taking away exactly what was written
 *   enroll_systemd.c   the D-Bus calls
 *   enroll.c           the two verbs
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "base/text.h"
#include "host/elf_file.h"
#include "host/unit_name.h"
#include "host/why_no_agent.h"

/* Names */

/*
 * NAME as an operator types it ("nginx", "worker@1.service") into its full form. Returns NULL, or in words why such a unit cannot be
 * enrolled (*RET_UNIT is set all the same, where NAME is a name).
 */
const char *enroll_check_name(const char *name, char ret_unit[static MG_UNIT_NAME_MAX]);

/* Facts */

struct enroll_program {
        char path[PATH_MAX]; /* "": none */
        char script[PATH_MAX]; /* the script that names PATH as its interpreter; "": PATH is what was named */
        int error;             /* -errno: it could not be looked at */
        struct mg_elf_facts elf;
        bool gains_rights; /* set-uid, set-gid or capabilities that its starter does not have */
};

/* Strings are borrowed from the JSON objects, which the caller keeps. */
struct enroll_facts {
        const char *unit;
        const char *service_type;
        const char *service_user;    /* "": the manager's own */
        const char *const *command;  /* argv of the first ExecStart=, NULL-ended; owned */
        const char *preload;         /* LD_PRELOAD= of Environment=; NULL: none */
        char preload_file[PATH_MAX]; /* the EnvironmentFile= that sets LD_PRELOAD; "": none */
        bool passes_preload;         /* PassEnvironment= has it */
        bool unsets_preload;         /* UnsetEnvironment= has it */
        bool forbids_unix;           /* RestrictAddressFamilies= leaves AF_UNIX out */
        const char *forbidden_call; /* what SystemCallFilter= keeps from connecting; NULL: nothing */
        const char *root;           /* RootDirectory= or RootImage=; NULL: the host's */
        const char *hides_socket; /* the path of TemporaryFileSystem= or InaccessiblePaths= that covers it; NULL */
        const char *confined_by; /* a profile or a context of a security module; NULL */
        bool private_users;
        bool transient;
        bool selinux;            /* the host enforces or logs by SELinux */
        bool may_not_be_stopped; /* RefuseManualStop= */
        uint64_t main_pid;       /* 0: it is not running */

        struct enroll_program started; /* of ExecStart= */
        struct enroll_program running; /* of the main process */
        uint32_t threads;              /* of the main process; 0: unknown */
        uint64_t anon_bytes;           /* of the main process; MG_UNKNOWN */
};

/* SOCKET: where agents connect. Returns 0, or -ENOMEM. */
int enroll_facts_take(
                struct enroll_facts *facts,
                const json_t *unit,
                const json_t *service,
                const char *socket);
void enroll_facts_done(struct enroll_facts *facts); /* for MG_CLEANUP too */

/* Whether TEXT, an environment file, sets NAME. */
bool enroll_file_sets(const char *text, const char *name);

/* Fills started, running, threads, anon_bytes, selinux. USER: of a user manager. */
void enroll_programs(struct enroll_facts *facts, bool user);

/* Judging */

enum enroll_weight {
        ENROLL_NOTE,    /* worth knowing */
        ENROLL_WARNING, /* it may not work */
        ENROLL_BLOCKER, /* it would not work */
        _ENROLL_WEIGHT_MAX,
};

struct enroll_finding {
        enum enroll_weight weight;
        char text[1024];
};

struct enroll_findings {
        struct enroll_finding list[24];
        size_t n;
        size_t n_blockers;
};

/* AGENT: the path that LD_PRELOAD would get. */
void enroll_judge(
                const struct enroll_facts *facts,
                const char *agent,
                struct enroll_findings *ret_findings);

/* What kind of program loses the environment on the way; NULL: none that is known. ARGV ends with NULL. */
const char *enroll_launcher(const char *const *argv);

/* Texts */

/*
 * LIBDIR ("/usr/lib/x86_64-linux-gnu") as the loader can spell it for every word size ("/usr/$LIB"); LIBDIR itself where its last part is
 * none of the names that $LIB stands for.
 */
void enroll_library_directory(struct mg_text *text, const char *libdir);

/* EXISTING (NULL: nothing) without an agent's library, and AGENT behind it. */
void enroll_join_preload(struct mg_text *text, const char *existing, const char *agent);

/* NAME=VALUE as Environment= takes it, with its quotes. */
void enroll_environment(struct mg_text *text, const char *name, const char *value);

void enroll_dropin(struct mg_text *text, const struct enroll_facts *facts, const char *agent);

/* DATE: of today, "2026-11-30". */
void enroll_section(struct mg_text *text, const struct enroll_facts *facts, const char *date);

/* Files */

#define ENROLL_TEXT_MAX 16384

enum enroll_seal {
        ENROLL_FOREIGN,   /* enroll has not written this */
        ENROLL_UNTOUCHED, /* it has, to the letter */
        ENROLL_EDITED,    /* it has, and somebody changed it since */
        _ENROLL_SEAL_MAX,
};

/* BODY under a head that says who wrote it and how to tell whether it was changed. */
void enroll_seal(struct mg_text *text, const char *unit, const char *body);
enum enroll_seal enroll_check_seal(const char *text);

struct enroll_paths {
        char dropin[PATH_MAX];
        char section[PATH_MAX];
};

/* Below ROOT ("" in production). Returns 0, -ENAMETOOLONG, or -ENOENT: no home directory for a user's unit. */
int enroll_paths(const char *root, const char *unit, bool user, struct enroll_paths *ret_paths);

/* -EEXIST: there is a file that enroll has not written; -ESTALE: it has, and it was edited since. */
int enroll_write(const char *path, const char *unit, const char *body);

/*
 * 0: taken away. 1: it was edited, and is now called PATH.withdrawn, which nobody reads. -ENOENT: not there; -EEXIST: not
 * written by enroll.
 */
int enroll_remove(const char *path);

/* systemd */

/* The calls print what goes wrong, and return an enum ctl_exit. */
int enroll_connect(bool user, sd_bus **ret_bus);
int enroll_get_properties(sd_bus *bus, const char *unit, json_t **ret_unit, json_t **ret_service);
int enroll_daemon_reload(sd_bus *bus);

/* "/system.slice/x.service"; empty where the unit does not run. */
int enroll_get_cgroup(sd_bus *bus, const char *unit, char *ret_cgroup, size_t size);

/* Waits for the job's end. A unit that does not run is not started: *RET_RUNS is false then. */
int enroll_restart(sd_bus *bus, const char *unit, bool *ret_runs);
