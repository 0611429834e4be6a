/* SPDX-License-Identifier: MIT */
/* From a scrape to its answer; see scrape.h. Layer: exporter. */
#include "exporter/scrape.h"

#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "base/macros.h"
#include "exporter/reader.h"
#include "host/clock.h"

#define FRESH_USEC MG_USEC_PER_SEC

void scrape_init(struct scrape *scrape, const struct options *options) {
        *scrape = (struct scrape){ .options = options };
}

void scrape_done(struct scrape *scrape) {
        for (size_t i = 0; i < MG_ELEMENTS(scrape->responses); i++) {
                struct MHD_Response *response = MG_TAKE(scrape->responses[i]);

                /* Those who are being answered with it keep it until they are done. */
                if (response)
                        MHD_destroy_response(response);
        }
}

static struct MHD_Response *render(enum exposition_format format, const struct snapshot *snapshot) {
        char *body = NULL;
        size_t length;
        FILE *stream = open_memstream(&body, &length);
        bool failed;

        if (!stream)
                return NULL;
        exposition_write(stream, format, snapshot);
        failed = ferror(stream) != 0;
        if (fclose(stream) != 0 || failed) {
                free(body);
                return NULL;
        }
        return http_response(body, length, MHD_RESPMEM_MUST_FREE, exposition_content_type(format));
}

static void tell(struct scrape *scrape, int error) {
        if (error == scrape->error)
                return;
        if (error < 0)
                fprintf(stderr, SD_WARNING "memguardd does not answer: %s\n", strerror(-error));
        else
                fputs(SD_NOTICE "memguardd answers again\n", stderr);
        scrape->error = error;
}

static void renew(struct scrape *scrape) {
        const struct options *options = scrape->options;
        struct snapshot snapshot;

        scrape_done(scrape);
        snapshot_init(&snapshot);
        tell(scrape, reader_read(options->runtime_directory, options->timeout_usec, &snapshot));
        snapshot_limit(&snapshot, options->max_units, options->max_processes);
        for (unsigned i = 0; i < _EXPOSITION_FORMAT_MAX; i++)
                scrape->responses[i] = render((enum exposition_format) i, &snapshot);
        snapshot_done(&snapshot);
        scrape->made_usec = clock_now_usec();
}

struct MHD_Response *scrape_answer(enum exposition_format format, void *userdata) {
        struct scrape *scrape = userdata;

        if (scrape->made_usec == 0 || clock_now_usec() - scrape->made_usec >= FRESH_USEC)
                renew(scrape);
        return scrape->responses[format];
}
