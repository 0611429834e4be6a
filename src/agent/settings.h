/* SPDX-License-Identifier: MIT */
/* The MEMGUARD_* environment, read once on a thread of the program. Layer: agent; no allocation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#define MG_DEFAULT_SOCKET     "/run/memguard/agent.sock"
#define MG_DEFAULT_DELAY_USEC UINT64_C(1000000)

enum mg_thread_mode {
        MG_THREAD_FOLLOW, /* with the program's first thread */
        MG_THREAD_ALWAYS, /* before main */
        MG_THREAD_NEVER,
        _MG_THREAD_MODE_MAX,
};

struct mg_settings {
        bool disabled;
        bool strip_children; /* MEMGUARD_CHILDREN=no */
        enum mg_thread_mode thread_mode;
        uint64_t delay_usec;
        char socket_path[sizeof(((struct sockaddr_un *) 0)->sun_path)];
};

/* Values that are not of the form leave the default; a socket path that is too long disables. */
void settings_read(struct mg_settings *settings);

const char *thread_mode_to_string(enum mg_thread_mode mode);

/* glibc heap settings that were made from outside (MALLOC_* or GLIBC_TUNABLES), as far as the agent must respect them. */
struct mg_malloc_settings {
        bool forbid_tops; /* perturb, memory tagging, huge pages: tops are left alone */
};

void malloc_settings_read(struct mg_malloc_settings *settings);

/* Whether TUNABLES ("a=1:b=2") sets NAME to something other than 0. Pure. */
bool tunables_has(const char *tunables, const char *name);

/*
 * Takes the entry whose file name is that of OWN_PATH out of LIST, the value of LD_PRELOAD (separated by colons or blanks), in
 * place. Returns the new length. Pure.
 */
size_t preload_list_strip(char *list, const char *own_path);
