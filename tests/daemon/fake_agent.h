/* SPDX-License-Identifier: MIT */
/*
 * Scripted agents: child processes of the test that hold memory and speak the protocol, well or badly. They write
 * their datagrams by hand, so that what is hostile need not pass an encoder.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum fake_behaviour {
        FAKE_GOOD,       /* gives everything back when asked to trim */
        FAKE_HANGS,      /* reads a trim and never answers */
        FAKE_LATE,       /* answers a trim when nobody waits any more */
        FAKE_VANISHES,   /* ends in the middle of a trim */
        FAKE_LIES,       /* absurd numbers everywhere, and nothing given back */
        FAKE_REFUSES,    /* result refused */
        FAKE_DEAF,       /* never reads at all after hello */
        FAKE_TWICE,      /* answers each request twice */
        FAKE_FOREIGN_ID, /* answers with an id that nobody gave */
        _FAKE_BEHAVIOUR_MAX,
};

struct fake_agent {
        pid_t pid;
};

/* Forks; the child holds MIB of touched memory, connects to SOCKET and says hello, again and again when
 * the daemon hangs up. Returns when it has. */
struct fake_agent fake_start(const char *socket, enum fake_behaviour behaviour, size_t mib);
void fake_stop(struct fake_agent *agent);

/* A connection of the test process itself; for hostile datagrams. */
int fake_connect(const char *socket);
int fake_send(int fd, const char *text);
int fake_hello(int fd);
