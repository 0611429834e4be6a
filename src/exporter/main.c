/* SPDX-License-Identifier: MIT */
/* memguard-exporter: the way in and out. Layer: exporter. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "base/macros.h"
#include "exporter/http.h"
#include "exporter/listen.h"
#include "exporter/options.h"
#include "exporter/scrape.h"

MG_DEFINE_CLEANUP(struct http *, http_free)

static int get_socket(const struct options *options, int *ret_fd) {
        int r = options->listen ? listen_on(options->listen, ret_fd) : listen_inherited(ret_fd);

        if (r == -ENOENT)
                fputs(SD_ERR
                      "no socket was handed over: start memguard-exporter.socket, or use --listen=\n",
                      stderr);
        else if (r < 0 && options->listen)
                fprintf(stderr, SD_ERR "cannot listen on %s: %s\n", options->listen, strerror(-r));
        else if (r < 0)
                fputs(SD_ERR
                      "exactly one listening stream socket is wanted: see memguard-exporter.socket\n",
                      stderr);
        return r;
}

/* SIGTERM and SIGINT end the loop. */
static int catch_signals(sd_event *event) {
        static const int caught[] = { SIGTERM, SIGINT };
        sigset_t set;
        int r = 0;

        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigemptyset(&set) < 0)
                return -errno;
        for (size_t i = 0; i < MG_ELEMENTS(caught); i++)
                (void) sigaddset(&set, caught[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        for (size_t i = 0; i < MG_ELEMENTS(caught) && r >= 0; i++)
                r = sd_event_add_signal(event, NULL, caught[i], NULL, NULL);
        return r;
}

static int serve(const struct options *options, struct scrape *scrape) {
        MG_CLEANUP(sd_event_unrefp) sd_event *event = NULL;
        MG_CLEANUP(http_freep) struct http *http = NULL;
        int fd = -EBADF;
        int r = get_socket(options, &fd);

        if (r < 0)
                return r;
        r = sd_event_default(&event);
        if (r >= 0)
                r = catch_signals(event);
        if (r >= 0)
                r = sd_event_set_watchdog(event, true);
        if (r >= 0)
                r = http_new(event, fd, scrape_answer, scrape, &http);
        if (r < 0) {
                fprintf(stderr, SD_ERR "cannot start: %s\n", strerror(-r));
                return r;
        }
        (void) sd_notify(false, "READY=1");
        r = sd_event_loop(event);
        (void) sd_notify(false, "STOPPING=1");
        return r;
}

int main(int argc, char **argv) {
        struct options options;
        struct scrape scrape;
        int r;

        switch (options_parse(&options, argc, argv)) {
        case OPTIONS_SHOWN:
                return EXIT_SUCCESS;
        case OPTIONS_USAGE:
                return 2;
        case OPTIONS_RUN:
                break;
        }
        scrape_init(&scrape, &options);
        r = serve(&options, &scrape);
        scrape_done(&scrape);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
