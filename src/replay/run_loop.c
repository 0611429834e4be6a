/* SPDX-License-Identifier: MIT */
/* What happens while a run goes on: samples, output, ends of processes, signals. Layer: replay. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/text.h"
#include "host/clock.h"
#include "replay/processes.h"
#include "replay/run.h"

/* How long a load may take to end by SIGTERM. */
#define LOAD_STOP_USEC (5 * MG_USEC_PER_SEC)

/* What SIGKILL did not end within this is in the kernel's hands; said, not waited for. */
#define KILL_USEC (10 * MG_USEC_PER_SEC)

void run_end(struct run *run, enum replay_end end, const char *format, ...) {
        va_list list;

        if (run->ended)
                return;
        run->ended = true;
        run->end = end;
        run->end_usec = run->started_usec > 0 ? clock_now_usec() - run->started_usec : 0;
        if (!format)
                return;
        va_start(list, format);
        vsnprintf(run->end_text, sizeof(run->end_text), format, list);
        va_end(list);
}

/* ---- Samples ---- */

static void subtract_before(uint64_t *value, uint64_t before) {
        if (*value != MG_UNKNOWN && before != MG_UNKNOWN)
                *value = mg_sub_floor(*value, before);
}

static void sample_unknown(struct replay_sample *sample) {
        memset(sample, 0xff, sizeof(*sample));
        sample->phase = PHASE_START;
}

static void measure_processes(struct run *run, struct replay_sample *sample) {
        pid_t others[] = { run->load.pid, run->daemon.process.pid };
        struct process_list list;

        if (processes_find(run->program.pid, others, MG_ELEMENTS(others), &list) < 0)
                return;
        processes_measure(&list, sample);
        process_list_done(&list);
}

static void check_memory_max(struct run *run, const struct replay_sample *sample) {
        uint64_t max = run->harness->options->memory_max;
        uint64_t have = sample_footprint(sample);
        char size[MG_SHORT_TEXT_MAX];

        if (run->scope.has_cgroup || have == MG_UNKNOWN || have <= max)
                return;
        run_end(run, END_OOM, "out of memory: %s is over --memory-max", format_size(have, size));
}

void run_sample(struct run *run) {
        struct replay_sample sample;

        sample_unknown(&sample);
        sample.at_usec = clock_now_usec() - run->started_usec;
        sample.phase = run->phase;
        measure_processes(run, &sample);
        scope_measure(&run->scope, &sample);
        subtract_before(&sample.psi_usec, run->psi_before_usec);
        private_daemon_measure(&run->daemon, &sample);
        run->agent_seen |= sample.live_bytes != MG_UNKNOWN;
        sample.told_live_bytes = run->told.live_bytes;
        if (sample.processes == 0)
                return; /* between its end and our hearing of it */
        int r = csv_put_sample(&run->csv, &sample);
        if (r < 0)
                run_end(run, END_NOT_WRITTEN, "cannot write the samples: %s", strerror(-r));
        check_memory_max(run, &sample);
        progress_show(&run->harness->progress, run->variant->text, &sample);
}

void run_begin(struct run *run) {
        struct replay_sample sample;

        sample_unknown(&sample);
        scope_measure(&run->scope, &sample);
        run->psi_before_usec = sample.psi_usec;
        run->started_usec = clock_now_usec();
        run->next_sample_usec = run->started_usec + run->harness->options->sample_usec;
        csv_put_header(&run->csv);
}

static void sample_when_due(struct run *run) {
        uint64_t now = clock_now_usec();
        uint64_t every = run->harness->options->sample_usec;

        if (run->started_usec == 0 || run->stopping || run->program.pid == 0 ||
            now < run->next_sample_usec)
                return;
        run_sample(run);
        /* What was missed (a stopped harness, a machine asleep) is not made up for. */
        run->next_sample_usec += (mg_sub_floor(now, run->next_sample_usec) / every + 1) * every;
}

/* ---- Output ---- */

static void read_output(struct run *run, int *fd, struct told_lines *lines) {
        char buffer[4096];
        ssize_t n;

        while (*fd >= 0 && (n = read(*fd, buffer, sizeof(buffer))) != 0) {
                if (n < 0) {
                        if (errno == EINTR)
                                continue;
                        if (errno != EAGAIN)
                                file_closep(fd);
                        return;
                }
                told_feed(lines, buffer, (size_t) n, &run->told);
                if (write(run->log_fd, buffer, (size_t) n) < 0 && !run->ended)
                        run_end(run, END_NOT_WRITTEN, "cannot write the log: %s", strerror(errno));
        }
        file_closep(fd);
}

static void read_outputs(struct run *run) {
        read_output(run, &run->program.output_fd, &run->program_lines);
        read_output(run, &run->load.output_fd, &run->load_lines);
}

/* ---- Ends ---- */

static const char *describe_status(int status, char buffer[static 64]) {
        if (WIFSIGNALED(status))
                snprintf(buffer, 64, "killed by signal %d (%s)", WTERMSIG(status),
                         sigabbrev_np(WTERMSIG(status)) ?: "?");
        else
                snprintf(buffer, 64, "exit code %d", WEXITSTATUS(status));
        return buffer;
}

static bool was_oom(const struct run *run, int status) {
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
               scope_saw_oom_kill(&run->scope);
}

static void program_ended(struct run *run, int status) {
        char text[64];

        run->program.pid = 0;
        read_output(run, &run->program.output_fd, &run->program_lines);
        if (run->stopping)
                return;
        if (was_oom(run, status))
                run_end(run, END_OOM, "out of memory: the kernel killed the program");
        else if (status != 0)
                run_end(run, END_PROGRAM_FAILED, "the program ended: %s",
                        describe_status(status, text));
        else
                run_end(run, END_PROGRAM_ENDED, "the program ended by itself");
}

static void load_ended(struct run *run, int status) {
        char text[64];

        run->load.pid = 0;
        run->load_status = status;
        read_output(run, &run->load.output_fd, &run->load_lines);
        child_close(&run->load);
        if (run->has_load && !run->stopping && status != 0)
                run_end(run, END_LOAD_FAILED, "the load ended: %s", describe_status(status, text));
}

static void reap(struct run *run) {
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
                if (pid == run->program.pid)
                        program_ended(run, status);
                else if (pid == run->load.pid)
                        load_ended(run, status);
                else if (pid == run->daemon.process.pid) {
                        run->daemon.process.pid = 0;
                        if (!run->stopping)
                                run_end(run, END_PROGRAM_FAILED,
                                        "its memguardd ended: see the log");
                }
        }
}

static void read_signals(struct run *run) {
        struct signalfd_siginfo info;

        while (read(run->harness->signal_fd, &info, sizeof(info)) == sizeof(info)) {
                if (info.ssi_signo == SIGCHLD)
                        continue;
                run->harness->interrupts++;
                run_end(run, END_INTERRUPTED, "interrupted; the samples so far are kept");
        }
}

/* ---- The loop ---- */

static void wait_events(struct run *run, uint64_t until) {
        struct pollfd fds[] = {
                { .fd = run->harness->signal_fd, .events = POLLIN },
                { .fd = run->program.output_fd, .events = POLLIN },
                { .fd = run->load.output_fd, .events = POLLIN },
        };
        uint64_t now = clock_now_usec();
        uint64_t left = mg_sub_floor(until, now);

        if (run->started_usec > 0 && !run->stopping)
                left = MG_MIN(left, mg_sub_floor(run->next_sample_usec, now));
        struct timespec timeout = { .tv_sec = (time_t) (left / MG_USEC_PER_SEC),
                                    .tv_nsec = (long) (left % MG_USEC_PER_SEC * 1000) };
        (void) ppoll(fds, MG_ELEMENTS(fds), &timeout, NULL);
        read_signals(run);
        read_outputs(run);
        reap(run);
        sample_when_due(run);
}

static bool has_come(const struct run *run, enum wait_for wait) {
        switch (wait) {
        case WAIT_TIME:
                return false;
        case WAIT_LOAD:
                return run->load.pid == 0;
        case WAIT_LOAD_OVER:
                return run->told.load_over || (run->has_load && run->load.pid == 0);
        }
        return false;
}

void run_until(struct run *run, uint64_t until, enum wait_for wait) {
        while (!run->ended && clock_now_usec() < until && !has_come(run, wait))
                wait_events(run, until);
}

/* ---- Stopping ---- */

/* As run_until(), but the run may have ended: what is waited for is the end of *PID. */
static void wait_gone(struct run *run, const pid_t *pid, uint64_t usec) {
        uint64_t until = clock_now_usec() + usec;

        while (*pid > 0 && clock_now_usec() < until && run->harness->interrupts < 2)
                wait_events(run, until);
}

void run_kill_load(struct run *run) {
        child_signal(&run->load, SIGKILL);
        wait_gone(run, &run->load.pid, KILL_USEC);
        child_close(&run->load);
}

void run_stop_load(struct run *run) {
        child_signal(&run->load, SIGTERM);
        wait_gone(run, &run->load.pid, LOAD_STOP_USEC);
        run_kill_load(run);
}

static void stop_program(struct run *run) {
        if (run->program.go_fd >= 0) { /* it never was let go */
                file_closep(&run->program.go_fd);
                wait_gone(run, &run->program.pid, KILL_USEC);
        }
        child_signal(&run->program, SIGCONT);
        child_signal(&run->program, SIGTERM);
        wait_gone(run, &run->program.pid,
                  run->end == END_OOM ? 0 : run->harness->options->stop_timeout_usec);
        child_signal(&run->program, SIGKILL);
        wait_gone(run, &run->program.pid, KILL_USEC);
        child_close(&run->program);
}

/* Everything below the harness, again and again: what forks while it is killed is found in the next round. */
static void kill_strays(struct run *run) {
        uint64_t until = clock_now_usec() + KILL_USEC;
        struct process_list list;

        while (processes_below(&list) >= 0 && list.n > 0) {
                for (size_t i = 0; i < list.n; i++)
                        kill(list.pids[i], SIGKILL);
                process_list_done(&list);
                reap(run);
                if (clock_now_usec() > until) {
                        fputs("memguard-replay: some processes cannot be killed\n", stderr);
                        return;
                }
                poll(NULL, 0, 10);
        }
        process_list_done(&list);
        reap(run);
}

void run_stop(struct run *run) {
        run->stopping = true;
        run_stop_load(run);
        stop_program(run);
        private_daemon_stop(&run->daemon);
        kill_strays(run);
        scope_close(&run->scope);
}
