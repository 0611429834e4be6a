/* SPDX-License-Identifier: MIT */
/*
 * Whether the agent's thread still has exactly the rights of the program: uid, gid, groups, capabilities,
 * no_new_privs and seccomp are per thread in Linux, and a program that gives some up by raw system calls does so for
 * one thread only. Layer: agent; pure, over the text of two status files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum mg_rights {
        MG_RIGHTS_EQUAL,
        MG_RIGHTS_DIFFER,
        MG_RIGHTS_SECCOMP_STRICTER, /* the calling thread itself is under a filter that was not there at load */
        MG_RIGHTS_MAIN_FILTERED, /* the main thread alone is */
        MG_RIGHTS_UNREADABLE,
        _MG_RIGHTS_MAX,
};

/* Mode and number of filters of a status text; unknown lines count as 0. */
struct mg_seccomp {
        uint64_t mode;
        uint64_t filters;
};

struct mg_seccomp rights_seccomp(const char *status);

/* Compares MAIN's with OWN's status text, and the seccomp of both with BASELINE. A main thread that has ended differs. */
enum mg_rights rights_compare(
                const char *main_status,
                const char *own_status,
                const struct mg_seccomp *baseline);

/* Bytes of memory locked (VmLck:); 0 where the line is missing. */
uint64_t rights_locked_bytes(const char *status);

/* Whether SIGNAL is pending for the thread of this status text alone (SigPnd:), not for the process. */
bool rights_has_own_pending(const char *status, int signal);
