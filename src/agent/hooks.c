/* SPDX-License-Identifier: MIT */
/* What the program tells its agent. Layer: agent; no allocation. */
#include "agent/hooks.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "agent/system.h"
#include "base/macros.h"
#include "base/text.h"

enum slot_state {
        SLOT_FREE,
        SLOT_CLAIMED, /* being written */
        SLOT_READY,
        SLOT_CALLING, /* a cache: its callback runs */
        SLOT_DYING,   /* a cache: unregistered from within its callback */
};

struct memguard_cache {
        _Atomic(int) state;
        memguard_cache_bytes_fn bytes;
        memguard_cache_shrink_fn shrink;
        void *userdata;
        char name[MEMGUARD_NAME_MAX + 1];
};

/* More news than the daemon would take at once: what does not fit is dropped, the newest first. */
#define MAX_EVENTS 16
#define MAX_DEPTH  1000000

struct event_slot {
        _Atomic(int) state;
        uint64_t ticket;
        struct mg_event event;
};

static struct memguard_cache caches[MEMGUARD_CACHES_MAX];
static struct event_slot events[MAX_EVENTS];
static _Atomic(uint64_t) next_ticket;
static _Atomic(int) suspend_depth;
static _Atomic(int) calling_tid;
static _Atomic(hooks_wake_fn) wake_agent;

void hooks_set_wake(hooks_wake_fn wake) {
        atomic_store(&wake_agent, wake);
}

static bool claim(_Atomic(int) *state, int from, int to) {
        return atomic_compare_exchange_strong(state, &from, to);
}

static void copy_name(char *buffer, const char *name) {
        struct mg_text text;
        size_t length = strnlen(name, MEMGUARD_NAME_MAX);

        /* Not cut within a character. */
        if (name[length] != '\0')
                while (length > 0 && ((unsigned char) name[length] & 0xc0) == 0x80)
                        length--;
        text_init(&text, buffer, MEMGUARD_NAME_MAX + 1);
        text_put_span(&text, name, length);
}

int hooks_register_cache(
                const char *name,
                memguard_cache_bytes_fn bytes,
                memguard_cache_shrink_fn shrink,
                void *userdata,
                struct memguard_cache **ret_cache) {
        if (!name || !*name || !bytes || !ret_cache)
                return -EINVAL;
        for (size_t i = 0; i < MG_ELEMENTS(caches); i++) {
                if (!claim(&caches[i].state, SLOT_FREE, SLOT_CLAIMED))
                        continue;
                caches[i].bytes = bytes;
                caches[i].shrink = shrink;
                caches[i].userdata = userdata;
                copy_name(caches[i].name, name);
                atomic_store(&caches[i].state, SLOT_READY);
                *ret_cache = &caches[i];
                return 0;
        }
        return -ENOSPC;
}

int hooks_unregister_cache(struct memguard_cache *cache) {
        const struct timespec pause = { .tv_nsec = 1000000 };

        if (!cache)
                return 0;
        while (!claim(&cache->state, SLOT_READY, SLOT_FREE)) {
                if (hooks_is_in_callback() && claim(&cache->state, SLOT_CALLING, SLOT_DYING))
                        break;
                int state = atomic_load(&cache->state);
                if (state == SLOT_FREE || state == SLOT_DYING)
                        break; /* unregistered twice */
                nanosleep(&pause, NULL);
        }
        return 0;
}

bool hooks_is_in_callback(void) {
        return atomic_load(&calling_tid) == system_gettid();
}

static bool begin_call(struct memguard_cache *cache) {
        if (!claim(&cache->state, SLOT_READY, SLOT_CALLING))
                return false;
        atomic_store(&calling_tid, system_gettid());
        return true;
}

static void end_call(struct memguard_cache *cache) {
        atomic_store(&calling_tid, 0);
        if (!claim(&cache->state, SLOT_CALLING, SLOT_READY))
                atomic_store(&cache->state, SLOT_FREE);
}

void hooks_count_caches(uint64_t *ret_caches, uint64_t *ret_bytes) {
        uint64_t n = 0, sum = 0;

        for (size_t i = 0; i < MG_ELEMENTS(caches); i++) {
                if (!begin_call(&caches[i]))
                        continue;
                sum = mg_add_cap(sum, caches[i].bytes(caches[i].userdata));
                n++;
                end_call(&caches[i]);
        }
        *ret_caches = n;
        *ret_bytes = sum;
}

uint64_t hooks_shrink_caches(uint64_t goal_bytes) {
        uint64_t sum = 0;

        for (size_t i = 0; i < MG_ELEMENTS(caches); i++) {
                if (goal_bytes > 0 && sum >= goal_bytes)
                        break;
                if (!begin_call(&caches[i]))
                        continue;
                if (caches[i].shrink)
                        sum = mg_add_cap(
                                        sum, caches[i].shrink(
                                                             mg_sub_floor(goal_bytes, sum),
                                                             caches[i].userdata));
                end_call(&caches[i]);
        }
        return sum;
}

static void add_event(enum mg_verb verb, uint64_t suspended, const char *text) {
        for (size_t i = 0; i < MG_ELEMENTS(events); i++) {
                if (!claim(&events[i].state, SLOT_FREE, SLOT_CLAIMED))
                        continue;
                events[i].ticket = atomic_fetch_add(&next_ticket, 1);
                events[i].event.verb = verb;
                events[i].event.suspended = suspended;
                copy_name(events[i].event.text, text ? text : "");
                atomic_store(&events[i].state, SLOT_READY);
                break;
        }
        hooks_wake_fn wake = atomic_load(&wake_agent);
        if (wake)
                wake();
}

int hooks_checkpoint(const char *tag) {
        if (!tag || !*tag)
                return -EINVAL;
        add_event(MG_VERB_CHECKPOINT, MG_UNKNOWN, tag);
        return 0;
}

/* Adds STEP unless that leaves 0..MAX_DEPTH. Returns the new depth, or -1. */
static int move_depth(int step) {
        int depth = atomic_load(&suspend_depth);

        do
                if (depth + step < 0 || depth + step > MAX_DEPTH)
                        return -1;
        while (!atomic_compare_exchange_weak(&suspend_depth, &depth, depth + step));
        return depth + step;
}

int hooks_suspend(const char *reason) {
        if (!reason || !*reason)
                return -EINVAL;
        int depth = move_depth(1);
        if (depth < 0)
                return -EOVERFLOW;
        /* Only the outermost one changes anything for the daemon. */
        if (depth == 1)
                add_event(MG_VERB_SUSPEND, 1, reason);
        return depth;
}

int hooks_resume(const char *reason) {
        int depth = move_depth(-1);
        if (depth < 0)
                return -EINVAL;
        if (depth == 0)
                add_event(MG_VERB_RESUME, 0, reason);
        return depth;
}

uint64_t hooks_suspended(void) {
        return (uint64_t) atomic_load(&suspend_depth);
}

bool hooks_has_event(void) {
        for (size_t i = 0; i < MG_ELEMENTS(events); i++)
                if (atomic_load(&events[i].state) == SLOT_READY)
                        return true;
        return false;
}

bool hooks_take_event(struct mg_event *ret_event) {
        struct event_slot *oldest = NULL;

        for (size_t i = 0; i < MG_ELEMENTS(events); i++)
                if (atomic_load(&events[i].state) == SLOT_READY &&
                    (!oldest || events[i].ticket < oldest->ticket))
                        oldest = &events[i];
        if (!oldest)
                return false;
        *ret_event = oldest->event;
        atomic_store(&oldest->state, SLOT_FREE);
        return true;
}

void hooks_drop_events(void) {
        struct mg_event event;

        for (size_t i = 0; i < MG_ELEMENTS(events) && hooks_take_event(&event); i++)
                ;
}

void hooks_after_fork(void) {
        atomic_store(&calling_tid, 0);
        for (size_t i = 0; i < MG_ELEMENTS(caches); i++) {
                claim(&caches[i].state, SLOT_CALLING, SLOT_READY);
                claim(&caches[i].state, SLOT_DYING, SLOT_FREE);
                claim(&caches[i].state, SLOT_CLAIMED, SLOT_FREE);
        }
        for (size_t i = 0; i < MG_ELEMENTS(events); i++)
                atomic_store(&events[i].state, SLOT_FREE);
}
