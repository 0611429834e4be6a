/* SPDX-License-Identifier: MIT */
/*
 * libmemguard.so.0: the agent for programs that link it. It wraps nothing, so it makes no handles on arenas; it does nothing at
 * all before the program calls it. Layer: agent.
 */
#include <errno.h>
#include <pthread.h>

#include "agent/agent.h"
#include "agent/event_loop.h"
#include "agent/hooks.h"

static const struct mg_agent_kind linked_kind = { .mode = "linked",
                                                  .stack_bytes = MG_CALLBACK_STACK_BYTES };

/* Returns 1 when there is nothing to do, 0 with RET_SETTINGS, or a negative errno. */
static int prepare(const struct memguard_options *options, struct mg_settings *ret_settings) {
        settings_read(ret_settings);
        int r = agent_apply_options(options, ret_settings);
        if (r < 0)
                return r;
        if (ret_settings->disabled)
                return 1;
        /* The program has asked: the operator's choice is about programs that have not. */
        ret_settings->thread_mode = MG_THREAD_ALWAYS;
        return agent_init(&linked_kind, ret_settings, pthread_create);
}

static int start(const struct memguard_options *options) {
        struct mg_settings settings;

        int r = prepare(options, &settings);
        return r != 0 ? (r < 0 ? r : 0) : agent_start(&settings);
}

static int open_loop(const struct memguard_options *options) {
        struct mg_settings settings;

        int r = prepare(options, &settings);
        if (r != 0)
                return r < 0 ? r : -EALREADY;
        settings.thread_mode = MG_THREAD_NEVER;
        return agent_open(&settings);
}

const struct mg_entry own_entry = {
        .api = MEMGUARD_API,
        .start = start,
        .stop = agent_stop,
        .open = open_loop,
        .get_fd = loop_get_fd,
        .dispatch = loop_dispatch,
        .close = agent_close,
        .cache_register = agent_register_cache,
        .cache_unregister = hooks_unregister_cache,
        .checkpoint = hooks_checkpoint,
        .suspend = hooks_suspend,
        .resume = hooks_resume,
};
