/* SPDX-License-Identifier: MIT */
/* The verb run: all variants, round by round. Layer: replay. */
#include "replay/campaign.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"
#include "host/cleanup.h"
#include "replay/private_daemon.h"
#include "replay/results.h"
#include "replay/runner.h"

static int make_directory(const char *path) {
        if (mkdir(path, 0755) < 0 && errno != EEXIST) {
                int error = errno;
                fprintf(stderr, "memguard-replay: cannot make %s: %s\n", path, strerror(error));
                return -error;
        }
        int r = results_exist(path);
        if (r < 0)
                fprintf(stderr, "memguard-replay: cannot look into %s: %s\n", path, strerror(-r));
        else if (r > 0)
                fprintf(stderr, "memguard-replay: %s has runs already: take another directory\n",
                        path);
        return r > 0 ? -EEXIST : r;
}

/* What can be known to be wrong is said before the first minute is spent. */
static int check_variants(const struct run_options *options) {
        for (size_t i = 0; i < options->n_variants; i++) {
                MG_CLEANUP(freep) char *ini = NULL;
                MG_CLEANUP(freep) char *message = NULL;

                if (!options->variants[i].has_agent)
                        continue;
                int r = private_daemon_ini(&options->variants[i], &ini, &message);
                if (r < 0) {
                        fprintf(stderr, "memguard-replay: %s\n", message ?: strerror(-r));
                        return r;
                }
        }
        return 0;
}

static int run_all(struct harness *harness, struct run_options *options) {
        uint64_t left = options->repeat * options->n_variants;
        uint64_t each = run_expected_usec(options);

        for (uint64_t round = 1; round <= options->repeat; round++)
                for (size_t i = 0; i < options->n_variants; i++) {
                        enum replay_end end;

                        left--;
                        harness->progress.run_usec = each;
                        harness->progress.later_usec = left * each;
                        int r = run_variant(harness, &options->variants[i], round, &end);
                        if (r < 0)
                                fprintf(stderr, "memguard-replay: %s: cannot write into %s: %s\n",
                                        options->variants[i].text, options->directory,
                                        strerror(-r));
                        if (r < 0 || end == END_NOT_WRITTEN)
                                return r < 0 ? r : -EIO;
                        if (harness->interrupts > 0)
                                return 1;
                        if (!options->quiet && !harness->progress.shown)
                                fprintf(stderr, "%s, round %" PRIu64 ": %s\n",
                                        options->variants[i].text, round, end_to_string(end));
                }
        return 0;
}

int campaign_run(struct run_options *options) {
        struct harness harness;
        int r = check_variants(options);

        if (r >= 0)
                r = make_directory(options->directory);
        if (r < 0)
                return r;
        r = harness_init(&harness, options);
        if (r < 0)
                fprintf(stderr, "memguard-replay: cannot take over signals: %s\n", strerror(-r));
        else
                r = run_all(&harness, options);
        harness_done(&harness);
        return r;
}
