/* SPDX-License-Identifier: MIT */
/*
 * libmemguard: lets memguardd(8) see how much of this process's memory is live, and give the rest
 * back to the system at the right moment. libmemguard(3) has examples.
 *
 * Common to all functions:
 * - None prints, aborts, exits, installs a signal handler, changes errno or waits for the daemon. A
 *   daemon that is not there is no error: the agent tries again, in silence, for as long as it runs.
 * - They return 0 or a positive value on success and a negative errno value on failure.
 * - All but memguard_dispatch() may be called from any thread; none from a signal handler.
 * - There is one agent per process. When the operator has preloaded libmemguard-preload.so, that one
 *   serves this API too: memguard_start() and memguard_stop() then succeed and change nothing.
 * - MEMGUARD_DISABLE=1 in the environment turns all of it into functions that succeed and do nothing.
 */
#ifndef MEMGUARD_H
#define MEMGUARD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The interface described here; grows when functions or options are added. */
#define MEMGUARD_API 1

/* Longest tag, reason and cache name that is passed on, without the NUL; the rest is cut. */
#define MEMGUARD_NAME_MAX 63

/* How many caches can be registered at one time. */
#define MEMGUARD_CACHES_MAX 32

/*
 * Options of memguard_start() and memguard_open(). Set SIZE to sizeof(struct memguard_options) and all
 * the rest to zero, so that members added later keep their default. The library keeps no pointer
 * to the structure; strings in it are copied.
 */
struct memguard_options {
        size_t size;

        /* The daemon's socket; at most 107 bytes. NULL: $MEMGUARD_SOCKET, else /run/memguard/agent.sock. */
        const char *socket_path;

        /* Microseconds to wait before the first connection. 0: $MEMGUARD_DELAY, else one second. */
        uint64_t delay_usec;
};

/*
 * Starts the agent in a thread of its own (named "memguard": signals blocked, 256 KiB of stack, its own
 * table of descriptors, at the lowest cost the kernel offers). OPTIONS may be NULL. After fork(2) the child
 * gets an agent of its own.
 *
 * Call it after the process has given up its privileges: the library wraps no system call, and a
 * thread keeps the capabilities with which it was made. (It compares itself with the main thread before
 * each action and ends when they differ.)
 *
 * Returns 0, also when the agent runs already; -EBUSY when memguard_open() is in use; -EINVAL for options
 * that are not of the form; -EAGAIN, -ENOMEM or -EPERM when no thread could be made.
 */
int memguard_start(const struct memguard_options *options);

/*
 * Ends the agent and its connection; registered caches, and suspensions, stay. Waits for a request that is
 * being served, at most two seconds. Not from a cache's callback. Returns 0, also when none runs;
 * -EDEADLK from a callback; -ETIMEDOUT when the thread did not end in time: it will at its next pause.
 */
int memguard_stop(void);

/*
 * The agent without a thread, for programs with their own event loop: memguard_open(), then watch memguard_get_fd() for
 * input and call memguard_dispatch() whenever there is some; memguard_close() at the end. Requests are served inside
 * memguard_dispatch(), which therefore takes as long as a trim does (the daemon keeps to the unit's MaxPause=).
 * memguard_start() is the better choice wherever a thread does not matter.
 *
 * After fork(2) the child's side is closed; it may call memguard_open() again.
 *
 * memguard_open() returns 0; -EALREADY when an agent serves this process already (started, or preloaded by the operator):
 * then there is nothing to watch; -EBUSY when already open; -EINVAL as memguard_start(); -EMFILE and the like.
 */
int memguard_open(const struct memguard_options *options);

/*
 * The descriptor to watch for input (POLLIN, level-triggered). It belongs to the library and stays the same until
 * memguard_close(): neither read nor close it. Returns it, or -EBADF when memguard_open() is not in use.
 */
int memguard_get_fd(void);

/*
 * Does what is due: connects, answers requests, calls caches back. Returns 1 when it did something, 0 when nothing was due,
 * -EBADF when memguard_open() is not in use; -EBUSY from a callback. Only one thread may be in it at a time.
 */
int memguard_dispatch(void);

/* Ends what memguard_open() began and closes the descriptor. Not from a callback (-EDEADLK). Returns 0, also when not open. */
int memguard_close(void);

/* A registered cache; opaque. */
struct memguard_cache;

/*
 * How many bytes the cache holds now. Called in the agent's thread (or in memguard_dispatch()) at each look at the
 * statistics, about once a minute: it should be quick, and a figure a moment old is fine.
 */
typedef uint64_t (*memguard_cache_bytes_fn)(void *userdata);

/*
 * Asks the cache to free about GOAL_BYTES (0: as much as is reasonable). Called in the agent's thread (or in memguard_dispatch())
 * just before a trim, and only where the operator has set ShrinkCaches=yes. Returns how many bytes it freed.
 */
typedef uint64_t (*memguard_cache_shrink_fn)(uint64_t goal_bytes, void *userdata);

/*
 * Registers a cache under NAME (copied), so that its bytes are shown and, with SHRINK, that it can be asked to give
 * some up. SHRINK may be NULL. USERDATA is passed to the callbacks and stays the caller's. *RET_CACHE is owned by the library and
 * valid until memguard_cache_unregister(). Works before, during and after memguard_start() or memguard_open().
 *
 * Callbacks may lock the program's mutexes and use malloc(3). They must not call memguard_stop() or memguard_close(), and must
 * not open, use or close descriptors: the agent's thread has a table of its own, in which the program's numbers mean
 * nothing or something else. One opened there means nothing to the program, one closed there stays open in the program, or is the
 * agent's. So no logging (syslog(3), sd-journal(3), stdio), no flushing of files, no starting of processes: set a flag and let
 * a thread of your own do it. (In memguard_dispatch() the table is the program's; a preloaded agent, though, always has its thread.)
 *
 * Returns 0; -EINVAL when NAME, BYTES or RET_CACHE is NULL or NAME is empty; -ENOSPC when MEMGUARD_CACHES_MAX are registered.
 */
int memguard_cache_register(
                const char *name,
                memguard_cache_bytes_fn bytes,
                memguard_cache_shrink_fn shrink,
                void *userdata,
                struct memguard_cache **ret_cache);

/*
 * Takes a cache out; afterwards no callback of it runs or will run (from within its own callback: none after that
 * one). It waits for one that is running, so do not hold a lock that the callback takes. NULL is allowed. Returns 0.
 */
int memguard_cache_unregister(struct memguard_cache *cache);

/*
 * Says that the program has just freed much, or that a trim would be cheap now: after a sweep, at the end of a batch.
 * TAG names the moment in the journal. The daemon may then trim at once (When=checkpoint). Takes microseconds; more than a few
 * a second are merged. Returns 0; -EINVAL when TAG is NULL or empty.
 */
int memguard_checkpoint(const char *tag);

/*
 * Holds trims off until memguard_resume() has been called as often: for phases in which no pause is welcome. REASON is
 * shown to the operator. After return no trim begins; one that is running is not interrupted. Returns the depth,
 * 1 or more; -EINVAL when REASON is NULL or empty; -EOVERFLOW beyond a million.
 */
int memguard_suspend(const char *reason);

/*
 * Takes one memguard_suspend() back; REASON is for the journal and may be NULL. Returns the depth that is left;
 * -EINVAL when trims are not suspended.
 */
int memguard_resume(const char *reason);

/* The library's version, such as "0.1.0"; static. */
const char *memguard_version(void);

#ifdef __cplusplus
}
#endif

#endif
