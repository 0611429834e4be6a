/* SPDX-License-Identifier: MIT */
/* memguardd: the way in and out. Layer: daemon. */
#include <errno.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/macros.h"
#include "daemon/journal.h"
#include "daemon/manager.h"
#include "daemon/options.h"

/*
 * The daemon's own allocator, jemalloc, reads this symbol (which must be visible for that): one thread needs one arena and no
 * background thread, and what a burst of agents leaves behind goes back within seconds. MALLOC_CONF= overrides.
 */
MG_PUBLIC const char *malloc_conf =
                "narenas:1,background_thread:false,dirty_decay_ms:1000,muzzy_decay_ms:0";

static int run(struct options *options) {
        MG_CLEANUP(manager_freep) struct manager *manager = NULL;
        int r = manager_new(options, &manager);

        if (r >= 0)
                r = manager_run(manager);
        if (r == -EINVAL) /* a rejected configuration: memguard.service is not to try again */
                return EX_CONFIG;
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        struct options options;
        int status = EXIT_FAILURE;

        switch (options_parse(&options, argc, argv)) {
        case OPTIONS_SHOWN:
                status = EXIT_SUCCESS;
                break;
        case OPTIONS_USAGE:
                status = 2;
                break;
        case OPTIONS_RUN:
                journal_open(options.log_level >= 0 ? options.log_level : LOG_INFO);
                status = run(&options);
                journal_close();
                break;
        }
        options_done(&options);
        return status;
}
