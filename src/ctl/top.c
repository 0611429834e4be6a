/* SPDX-License-Identifier: MIT */
/*
 * memguardctl top: the units, or their processes, kept up to date on the screen. Wiring alone: what is asked, what is pressed, when it is
 * drawn; the rest is in top_view.h, top_frame.h and terminal.h. Layer: ctl.
 *
 * Nothing here waits: a daemon that does not answer, and a line that takes no characters, leave the keys at work.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/parse.h"
#include "ctl/bus_json.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/overview.h"
#include "ctl/terminal.h"
#include "ctl/top_keys.h"
#include "host/bus_api.h"

#define INTERVAL_USEC     (2 * MG_USEC_PER_SEC)
#define INTERVAL_MIN_USEC (100 * MG_USEC_PER_MSEC)
#define INTERVAL_MAX_USEC MG_USEC_PER_HOUR

/* The rest of an escape sequence arrives with its begin, but for slow lines. */
#define ESCAPE_WAIT_USEC (100 * MG_USEC_PER_MSEC)

/* Looking at processes costs the daemon up to half a second: who watches shall not take more than a twentieth of its time. */
#define DAEMON_SHARE   20
#define PAUSE_MAX_USEC (10 * MG_USEC_PER_SEC)

/* An answer that is late is worth a word on the screen. */
#define LATE_USEC (3 * MG_USEC_PER_SEC)

struct top {
        sd_event *event;
        sd_bus *bus;
        const char *destination;
        sd_event_source *timer;
        sd_event_source *escape_timer;
        sd_event_source *output;
        struct terminal terminal;
        struct top_view view;
        struct key_reader keys;
        json_t *host;
        json_t *rows; /* as memguardd has them */
        json_t *sorted;
        char clock[16]; /* of the rows */
        uint64_t interval_usec;
        uint64_t asked_usec;
        uint64_t owed_usec;   /* since when there is no answer; 0: there was one */
        unsigned n_waiting;   /* answers */
        bool ask_again;       /* the view has changed since */
        bool draw_again;      /* the line was not ready */
        sd_bus_error failure; /* what to say after the terminal is left */
        int failure_errno;
};

static uint64_t now_usec(const struct top *top) {
        uint64_t usec;

        return sd_event_now(top->event, CLOCK_MONOTONIC, &usec) < 0 ? 0 : usec;
}

static void json_replace(json_t **old, json_t *new) {
        json_decref(*old);
        *old = new;
}

static int quit(struct top *top) {
        return sd_event_exit(top->event, 0);
}

static int fail(struct top *top, const sd_bus_error *error, int r) {
        if (top->failure_errno == 0) {
                (void) sd_bus_error_copy(&top->failure, error);
                top->failure_errno = r < 0 ? r : -EIO;
        }
        return quit(top);
}

/* ---- drawing ---- */

static size_t page_of(const struct top *top) {
        return top_frame_page(terminal_now(&top->terminal));
}

static int wait_for_output(struct top *top) {
        return sd_event_source_set_enabled(top->output, SD_EVENT_ONESHOT);
}

static uint64_t silence_usec(const struct top *top) {
        uint64_t usec = top->owed_usec > 0 ? mg_sub_floor(now_usec(top), top->owed_usec) : 0;

        return usec >= LATE_USEC ? usec : 0;
}

static int draw(struct top *top) {
        struct top_content content = {
                .host = top->host,
                .rows = top->sorted,
                .interval_usec = top->interval_usec,
                .silent_usec = silence_usec(top),
                .clock = top->clock,
        };
        struct top_frame *frame;

        if (terminal_is_busy(&top->terminal)) {
                top->draw_again = true;
                return 0;
        }
        frame = top_frame_new(terminal_now(&top->terminal));
        if (!frame)
                return fail(top, NULL, -ENOMEM);
        top_frame_fill(frame, &top->view, &content);
        int r = terminal_show(&top->terminal, frame);
        return r < 0 ? fail(top, NULL, r) : r > 0 ? wait_for_output(top) : 0;
}

static int on_output(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct top *top = userdata;
        int r = terminal_send(&top->terminal);

        if (r != 0)
                return r < 0 ? fail(top, NULL, r) : wait_for_output(top);
        return MG_TAKE_AS(top->draw_again, false) ? draw(top) : 0;
}

static int sort_and_draw(struct top *top) {
        json_t *sorted = top_view_sort(&top->view, top->rows);

        if (!sorted)
                return fail(top, NULL, -ENOMEM);
        json_replace(&top->sorted, sorted);
        top_view_follow(&top->view, sorted, page_of(top));
        return draw(top);
}

/* ---- asking ---- */

static int ask(struct top *top);

static void set_clock(struct top *top) {
        time_t now = time(NULL);
        struct tm local;

        if (!localtime_r(&now, &local) ||
            strftime(top->clock, sizeof(top->clock), "%H:%M:%S", &local) == 0)
                top->clock[0] = '\0';
}

static int wake_after(struct top *top, uint64_t usec) {
        int r = sd_event_source_set_time(top->timer, mg_add_cap(now_usec(top), usec));

        return r < 0 ? r : sd_event_source_set_enabled(top->timer, SD_EVENT_ONESHOT);
}

/* Both answers are there. */
static int show_answers(struct top *top) {
        uint64_t took_usec = mg_sub_floor(now_usec(top), top->asked_usec);

        if (MG_TAKE_AS(top->ask_again, false))
                return ask(top);
        top->owed_usec = 0;
        uint64_t pause_usec = MG_MIN(DAEMON_SHARE * took_usec, PAUSE_MAX_USEC);
        int r = wake_after(top, MG_MAX(top->interval_usec, pause_usec));
        if (r < 0)
                return fail(top, NULL, r);
        if (top->view.frozen)
                return draw(top);
        set_clock(top);
        units_add_shown(top->rows);
        return sort_and_draw(top);
}

/* *ret_value has an own reference; NULL where there is no answer this time. Returns 0, or what to end with. */
static int take_answer(struct top *top, sd_bus_message *reply, json_t **ret_value) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);

        *ret_value = NULL;
        top->n_waiting--;
        if (!error)
                return bus_to_json(reply, ret_value);
        if (sd_bus_error_has_name(error, MG_BUS_ERROR_NO_SUCH_UNIT)) {
                char notice[TOP_NAME_MAX];
                snprintf(notice, sizeof(notice), "%.400s has ended", top->view.unit);
                top_view_leave_unit(&top->view, notice);
                top->ask_again = true;
                return 0;
        }
        /* libsystemd gives a call that ran out of time and one whose connection broke the same name. */
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY)) {
                top->ask_again = true;
                return sd_bus_is_open(top->bus) > 0 ? 0 : -ECONNRESET;
        }
        (void) fail(top, error, -sd_bus_error_get_errno(error));
        return -ECONNRESET;
}

static int on_answer(struct top *top, sd_bus_message *reply, json_t **keep) {
        json_t *value;
        int r = take_answer(top, reply, &value);

        if (r < 0)
                return fail(top, NULL, r);
        /* While the display is frozen, or other rows are wanted by now, it is of no use. */
        if (value && !top->view.frozen && !top->ask_again)
                json_replace(keep, value);
        else
                json_decref(value);
        return top->n_waiting == 0 ? show_answers(top) : 0;
}

static int on_host(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct top *top = userdata;

        return on_answer(top, reply, &top->host);
}

static int on_rows(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        struct top *top = userdata;

        return on_answer(top, reply, &top->rows);
}

static int call_for_rows(struct top *top) {
        if (top->view.table == TOP_PROCESSES)
                return sd_bus_call_method_async(
                                top->bus, NULL, top->destination, MG_BUS_PATH, MG_BUS_INTERFACE,
                                "ListProcesses", on_rows, top, "s", top->view.unit_key);
        return sd_bus_call_method_async(
                        top->bus, NULL, top->destination, MG_BUS_PATH, MG_BUS_INTERFACE,
                        "ListUnits", on_rows, top, "as", 0);
}

static int ask(struct top *top) {
        int r = sd_bus_call_method_async(
                        top->bus, NULL, top->destination, MG_BUS_PATH, MG_BUS_INTERFACE, "GetHost",
                        on_host, top, "");

        if (r >= 0)
                r = call_for_rows(top);
        if (r < 0)
                return fail(top, NULL, r);
        top->n_waiting = 2;
        top->asked_usec = now_usec(top);
        if (top->owed_usec == 0)
                top->owed_usec = top->asked_usec;
        return wake_after(top, LATE_USEC);
}

static int ask_anew(struct top *top) {
        if (top->n_waiting == 0)
                return ask(top);
        top->ask_again = true;
        return 0;
}

/* Rows of another table are none. */
static int change_table(struct top *top) {
        json_replace(&top->rows, NULL);
        json_replace(&top->sorted, NULL);
        int r = ask_anew(top);
        return r < 0 ? r : draw(top);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        struct top *top = userdata;

        if (sd_bus_is_open(top->bus) <= 0)
                return fail(top, NULL, -ECONNRESET);
        if (top->n_waiting == 0 && !top->view.frozen)
                return ask(top);
        int r = wake_after(top, MG_USEC_PER_SEC);
        return r < 0 ? fail(top, NULL, r) : top->n_waiting > 0 ? draw(top) : 0;
}

/* ---- keys and signals ---- */

static int press(struct top *top, int key) {
        enum top_action action = top_view_key(&top->view, key, top->sorted, page_of(top));

        switch (action) {
        case TOP_NOTHING:
                return 0;
        case TOP_REDRAW:
                return sort_and_draw(top);
        case TOP_REPAINT:
                terminal_repaint(&top->terminal);
                return draw(top);
        case TOP_REFRESH:
                return ask_anew(top);
        case TOP_CHANGE:
                return change_table(top);
        case TOP_QUIT:
                break;
        }
        return quit(top);
}

static int on_escape_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        struct top *top = userdata;
        int key = keys_flush(&top->keys);

        return key != 0 ? press(top, key) : 0;
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        struct top *top = userdata;
        unsigned char bytes[64];
        ssize_t n = read(fd, bytes, sizeof(bytes));

        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return 0;
        if (n <= 0)
                return quit(top); /* the terminal is gone */
        for (ssize_t i = 0; i < n; i++) {
                int key = keys_feed(&top->keys, bytes[i]);
                if (key != 0)
                        (void) press(top, key);
        }
        (void) sd_event_source_set_time(top->escape_timer, now_usec(top) + ESCAPE_WAIT_USEC);
        return sd_event_source_set_enabled(
                        top->escape_timer,
                        keys_pending(&top->keys) ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_end(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        return quit(userdata);
}

static int repaint(struct top *top) {
        terminal_repaint(&top->terminal);
        top_view_follow(&top->view, top->sorted, page_of(top));
        return draw(top);
}

static int on_resize(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        return repaint(userdata);
}

/* Ctrl-Z: the shell gets its terminal as it was, and top its own when it goes on. */
static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        struct top *top = userdata;

        terminal_leave(&top->terminal);
        (void) raise(SIGSTOP);
        int r = terminal_enter(&top->terminal);
        return r < 0 ? fail(top, NULL, r) : repaint(top);
}

static int add_signals(struct top *top) {
        static const struct {
                int number;
                sd_event_signal_handler_t handler;
        } signals[] = {
                { SIGINT, on_end },   { SIGTERM, on_end }, { SIGHUP, on_end },
                { SIGQUIT, on_end },  { SIGPIPE, on_end }, { SIGWINCH, on_resize },
                { SIGTSTP, on_stop },
        };
        sigset_t mask;

        sigemptyset(&mask);
        for (size_t i = 0; i < MG_ELEMENTS(signals); i++)
                sigaddset(&mask, signals[i].number);
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        for (size_t i = 0; i < MG_ELEMENTS(signals); i++) {
                int r = sd_event_add_signal(
                                top->event, NULL, signals[i].number, signals[i].handler, top);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- begin and end ---- */

static int add_sources(struct top *top) {
        int r = add_signals(top);

        if (r >= 0)
                r = sd_event_add_io(top->event, NULL, top->terminal.in_fd, EPOLLIN, on_input, top);
        if (r >= 0)
                r =
                                sd_event_add_io(top->event, &top->output, top->terminal.out_fd,
                                                EPOLLOUT, on_output, top);
        if (r >= 0)
                r = sd_event_source_set_enabled(top->output, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(
                                top->event, &top->timer, CLOCK_MONOTONIC, 0, 0, on_timer, top);
        if (r >= 0)
                r = sd_event_source_set_enabled(top->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(
                                top->event, &top->escape_timer, CLOCK_MONOTONIC, 0, 0,
                                on_escape_timer, top);
        if (r >= 0)
                r = sd_event_source_set_enabled(top->escape_timer, SD_EVENT_OFF);
        return r >= 0 ? sd_bus_attach_event(top->bus, top->event, SD_EVENT_PRIORITY_NORMAL) : r;
}

static int run(struct top *top) {
        int r = sd_event_new(&top->event);

        if (r >= 0)
                r = add_sources(top);
        if (r >= 0)
                r = terminal_enter(&top->terminal);
        if (r >= 0)
                r = ask(top);
        if (r >= 0)
                r = draw(top);
        if (r >= 0)
                r = sd_event_loop(top->event);
        return top->failure_errno < 0 ? top->failure_errno : r;
}

static void release(struct top *top) {
        terminal_done(&top->terminal);
        sd_bus_flush_close_unref(top->bus);
        sd_event_source_unref(top->timer);
        sd_event_source_unref(top->escape_timer);
        sd_event_source_unref(top->output);
        sd_event_unref(top->event);
        json_decref(top->host);
        json_decref(top->rows);
        json_decref(top->sorted);
        sd_bus_error_free(&top->failure);
}

static int watch(uint64_t interval_usec) {
        struct top top = { .interval_usec = interval_usec };

        int exit_code = client_open(&top.bus, &top.destination);
        if (exit_code != CTL_OK)
                return exit_code;
        terminal_init(&top.terminal);
        top_view_init(&top.view);
        int r = run(&top);
        terminal_leave(&top.terminal);
        if (r < 0)
                exit_code = client_report(&top.failure, r);
        release(&top);
        return exit_code;
}

static int print_columns(const json_t *units) {
        struct column columns[TOP_COLUMNS_MAX];
        size_t n;
        const struct top_column *all = top_columns(TOP_UNITS, &n);

        for (size_t i = 0; i < n; i++)
                columns[i] = all[i].column;
        return table_print(units, columns, n);
}

/* Without a terminal there is one picture, for a file or a pipe. */
static int print_once(void) {
        json_t *host MG_CLEANUP(json_decrefp) = NULL;
        json_t *units MG_CLEANUP(json_decrefp) = NULL;
        json_t *sorted MG_CLEANUP(json_decrefp) = NULL;
        char *no_names[] = { NULL };
        char line[HOST_LINE_MAX];
        struct top_view view;

        fputs("memguardctl: top: no terminal to draw on and to read keys from: printed once\n",
              stderr);
        int exit_code = client_call(&host, "GetHost", "");
        if (exit_code == CTL_OK)
                exit_code = client_call_names(&units, "ListUnits", no_names);
        if (exit_code != CTL_OK)
                return exit_code;
        units_add_shown(units);
        top_view_init(&view);
        sorted = top_view_sort(&view, units);
        if (!ctl_options.no_legend)
                puts(host_line(host, line, sizeof(line)));
        return print_columns(sorted);
}

static int read_interval(uint64_t *ret_usec) {
        uint64_t usec = INTERVAL_USEC;

        if (ctl_options.interval && (parse_duration(ctl_options.interval, &usec) < 0 ||
                                     usec < INTERVAL_MIN_USEC || usec > INTERVAL_MAX_USEC)) {
                fprintf(stderr, "memguardctl: --interval=%s: expected a time from 100ms to 1h\n",
                        ctl_options.interval);
                return CTL_USAGE;
        }
        *ret_usec = usec;
        return CTL_OK;
}

int verb_top(int argc, char **argv) {
        uint64_t interval_usec;

        if (ctl_options.json != JSON_OFF) {
                fputs("memguardctl: top has no JSON: status has\n", stderr);
                return CTL_USAGE;
        }
        int exit_code = read_interval(&interval_usec);
        if (exit_code != CTL_OK)
                return exit_code;
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? watch(interval_usec) : print_once();
}
