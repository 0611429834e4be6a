/* SPDX-License-Identifier: MIT */
/* What the service manager is told. Layer: daemon. */
#include "daemon/notify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "base/macros.h"
#include "base/text.h"
#include "host/clock.h"

bool notify_watchdog(sd_event *event) {
        return sd_event_set_watchdog(event, true) > 0;
}

void notify_ready(void) {
        (void) sd_notify(false, "READY=1");
}

void notify_reloading(void) {
        (void) sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, clock_now_usec());
}

void notify_stopping(void) {
        (void) sd_notify(false, "STOPPING=1");
}

void notify_store_descriptor(int fd, const char *name) {
        char text[80];
        struct mg_text message;

        text_init(&message, text, sizeof(text));
        text_put(&message, "FDSTORE=1\nFDNAME=");
        text_put(&message, name);
        (void) sd_pid_notify_with_fds(0, false, text, &fd, 1);
}

void notify_format_status(const struct notify_status *status, struct mg_text *text) {
        text_put(text, status->paused ? "Paused: " : "");
        text_put_u64(text, status->units);
        text_put(text, status->units == 1 ? " unit: trimming " : " units: trimming ");
        text_put_u64(text, status->trimming);
        text_put(text, ", observing ");
        text_put_u64(text, status->observing);
        text_put(text, ", no agent ");
        text_put_u64(text, status->no_agent);
        text_put(text, "; ");
        text_put_size(text, status->trimmed_bytes);
        text_put(text, " given back");
}

void notify_status(const struct notify_status *status) {
        static char last[160];
        char buffer[sizeof(last)];
        struct mg_text text;

        if (!getenv("NOTIFY_SOCKET"))
                return;
        text_init(&text, buffer, sizeof(buffer));
        notify_format_status(status, &text);
        if (mg_streq(buffer, last))
                return;
        memcpy(last, buffer, sizeof(last));
        (void) sd_notifyf(false, "STATUS=%s", buffer);
}
