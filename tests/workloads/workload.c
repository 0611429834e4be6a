/* SPDX-License-Identifier: MIT */
/*
 * The harness of the workloads: see workload.h. Output goes by write(2) from the stack, tables live in mapped
 * pages and threads are made with signals blocked, so that neither stdio nor malloc add anything to what is measured.
 */
#include "workload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 256

/* Latencies: 16 buckets for each power of two, so that a percentile is right within 6 %. */
#define BUCKETS_PER_POWER 16
#define BUCKETS           (48 * BUCKETS_PER_POWER)

static struct workload *workload;
static volatile sig_atomic_t stopping, signalled;
static uint64_t load_started_usec;

static struct {
        _Atomic uint64_t bucket[BUCKETS];
        _Atomic uint64_t operations;
        _Atomic uint64_t worst_usec;
} latency;

static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        unsigned threads, pending, generation;
        workload_body body;
        void *argument;
} crew = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static struct { _Atomic uint64_t count, total_usec, worst_usec; } trims;

static void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void print(const char *format, ...) {
        char line[1024];
        va_list list;

        va_start(list, format);
        int length = vsnprintf(line, sizeof(line), format, list);
        va_end(list);
        if (write(STDOUT_FILENO, line, (size_t) length) < 0)
                _exit(1);
}

static void die(const char *what) {
        fprintf(stderr, "%s: %s: %s\n", workload->name, what, strerror(errno));
        exit(1);
}

uint64_t workload_now_usec(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

uint64_t workload_rss_anon(void) {
        char text[128];
        int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        ssize_t length = read(fd, text, sizeof(text) - 1);
        close(fd);
        if (length <= 0)
                return 0;
        text[length] = '\0';
        unsigned long resident, shared;
        if (sscanf(text, "%*u %lu %lu", &resident, &shared) != 2)
                return 0;
        return (resident - shared) * (uint64_t) sysconf(_SC_PAGESIZE);
}

void workload_phase(const char *name, const char *format, ...) {
        char pairs[512] = "";
        va_list list;

        if (format != NULL) {
                va_start(list, format);
                vsnprintf(pairs, sizeof(pairs), format, list);
                va_end(list);
        }
        print("phase %s rss_anon_bytes=%lu%s%s\n", name, workload_rss_anon(), format ? " " : "",
              pairs);
}

/* Options */

static bool parse_number(const char *text, bool with_suffix, uint64_t *ret_number) {
        char *end;

        errno = 0;
        uint64_t number = strtoull(text, &end, 10);
        if (errno != 0 || end == text || *text == '-')
                return false;
        if (with_suffix && *end != '\0') {
                const char *suffixes = "KMG", *suffix = strchr(suffixes, *end);
                if (suffix == NULL)
                        return false;
                number <<= 10 * (suffix - suffixes + 1);
                end++;
        }
        *ret_number = number;
        return *end == '\0';
}

static bool apply_option(const struct workload_option *option, const char *value) {
        switch (option->kind) {
        case OPTION_FLAG:
                *(bool *) option->value = true;
                return value == NULL;
        case OPTION_TEXT:
                *(const char **) option->value = value;
                return value != NULL;
        case OPTION_COUNT:
        case OPTION_SIZE:
                return value != NULL &&
                       parse_number(value, option->kind == OPTION_SIZE, option->value);
        }
        return false;
}

static bool parse_argument(const struct workload_option *options, const char *argument) {
        if (strncmp(argument, "--", 2) != 0)
                return false;
        const char *name = argument + 2, *equals = strchr(name, '=');
        size_t length = equals ? (size_t) (equals - name) : strlen(name);
        for (const struct workload_option *option = options; option->name != NULL; option++)
                if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
                        return apply_option(option, equals ? equals + 1 : NULL);
        return false;
}

static void print_help(const struct workload_option *options) {
        print("%s: %s\n", workload->name, workload->title);
        for (const struct workload_option *option = options; option->name != NULL; option++)
                print("  --%-14s %s\n", option->name, option->help);
}

static void parse_arguments(const struct workload_option *own, int argc, char **argv) {
        struct workload_option options[24] = {
                { "size", OPTION_SIZE, &workload->size, "bytes at the peak, about" },
                { "seed", OPTION_COUNT, &workload->seed, "of the random numbers" },
                { "threads", OPTION_COUNT, &workload->threads, "how many" },
                { "operations", OPTION_COUNT, &workload->operations, "of all threads together" },
                { "pace", OPTION_COUNT, &workload->pace, "operations a second of all threads" },
                { "seconds", OPTION_COUNT, &workload->seconds, "of load, instead of --operations" },
                { "hold", OPTION_COUNT, &workload->hold_seconds,
                  "seconds idle at the end (until a signal)" },
                { "trim-every", OPTION_COUNT, &workload->trim_every_msec,
                  "blind malloc_trim(0), milliseconds" },
                { "wait", OPTION_FLAG, &workload->wait, "start the load at SIGUSR1" },
                { "self-trim", OPTION_FLAG, &workload->self_trim,
                  "show what the allocator can release" },
        };
        size_t n = 10;
        for (; own != NULL && own->name != NULL && n < 23; own++)
                options[n++] = *own;
        for (int i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--help") == 0) {
                        print_help(options);
                        exit(0);
                }
                if (!parse_argument(options, argv[i])) {
                        fprintf(stderr, "%s: bad option %s (--help lists them)\n", workload->name,
                                argv[i]);
                        exit(2);
                }
        }
        if (workload->threads < 1 || workload->threads > THREADS_MAX) {
                fprintf(stderr, "%s: --threads is 1 to %d\n", workload->name, THREADS_MAX);
                exit(2);
        }
}

/* Signals: SIGTERM and SIGINT end the load and the hold, SIGUSR1 starts a load that waits. */

static void on_signal(int signal) {
        if (signal == SIGUSR1)
                signalled = 1;
        else
                stopping = 1;
}

static void catch_signals(void) {
        struct sigaction action = { .sa_handler = on_signal };

        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGUSR1, &action, NULL);
}

/* Waits for *FLAG or STOPPING without losing a signal that comes between the check and the wait. */
static void wait_for(volatile sig_atomic_t *flag, uint64_t msec) {
        sigset_t ours, before;
        uint64_t until = msec > UINT64_MAX / 1000 ? UINT64_MAX : workload_now_usec() + msec * 1000;

        sigemptyset(&ours);
        sigaddset(&ours, SIGTERM);
        sigaddset(&ours, SIGINT);
        sigaddset(&ours, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &ours, &before);
        while (!stopping && !*flag) {
                uint64_t now = workload_now_usec();
                if (now >= until)
                        break;
                struct timespec left = { .tv_sec = (time_t) ((until - now) / 1000000),
                                         .tv_nsec = (long) ((until - now) % 1000000 * 1000) };
                ppoll(NULL, 0, until == UINT64_MAX ? NULL : &left, &before);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void workload_sleep_msec(uint64_t msec) {
        wait_for(&stopping, msec);
}

/* When this thread's operation was due, with --pace. */
static _Thread_local uint64_t due_usec;

/* Operations that are due within the same millisecond are made together. */
static void wait_until_due(void) {
        uint64_t now = workload_now_usec();

        due_usec = due_usec > 0 ? due_usec + workload->threads * 1000000 / workload->pace : now;
        if (due_usec > now + 1000)
                workload_sleep_msec((due_usec - now) / 1000);
}

bool workload_goes_on(uint64_t done) {
        if (workload->pace > 0)
                wait_until_due();
        if (stopping)
                return false;
        if (workload->seconds > 0)
                return workload_now_usec() - load_started_usec < workload->seconds * 1000000;
        return done < workload->operations / workload->threads;
}

/* Threads */

static void start_thread(void *(*body)(void *), void *argument) {
        pthread_attr_t attributes;
        pthread_t thread;
        sigset_t all, before;

        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 128 * 1024);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        errno = pthread_create(&thread, &attributes, body, argument);
        if (errno != 0)
                die("pthread_create");
        pthread_attr_destroy(&attributes);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void *crew_thread(void *argument) {
        unsigned index = (unsigned) (uintptr_t) argument, served = 0;

        for (;;) {
                pthread_mutex_lock(&crew.lock);
                while (crew.generation == served)
                        pthread_cond_wait(&crew.changed, &crew.lock);
                served = crew.generation;
                workload_body body = crew.body;
                void *body_argument = crew.argument;
                pthread_mutex_unlock(&crew.lock);

                due_usec = 0;
                body(index, body_argument);

                pthread_mutex_lock(&crew.lock);
                if (--crew.pending == 0)
                        pthread_cond_broadcast(&crew.changed);
                pthread_mutex_unlock(&crew.lock);
        }
        return NULL;
}

void workload_run(workload_body body, void *argument) {
        pthread_mutex_lock(&crew.lock);
        crew.body = body;
        crew.argument = argument;
        crew.pending = (unsigned) workload->threads;
        crew.generation++;
        pthread_cond_broadcast(&crew.changed);
        pthread_mutex_unlock(&crew.lock);
        for (; crew.threads < workload->threads; crew.threads++)
                start_thread(crew_thread, (void *) (uintptr_t) crew.threads);
        pthread_mutex_lock(&crew.lock);
        while (crew.pending > 0)
                pthread_cond_wait(&crew.changed, &crew.lock);
        pthread_mutex_unlock(&crew.lock);
}

static void note_worst(_Atomic uint64_t *worst, uint64_t usec) {
        uint64_t seen = atomic_load(worst);

        while (usec > seen && !atomic_compare_exchange_weak(worst, &seen, usec))
                ;
}

static void *blind_trimmer(void *argument) {
        (void) argument;
        for (;;) {
                struct timespec pause = {
                        .tv_sec = (time_t) (workload->trim_every_msec / 1000),
                        .tv_nsec = (long) (workload->trim_every_msec % 1000 * 1000000)
                };
                nanosleep(&pause, NULL);
                uint64_t started = workload_now_usec();
                malloc_trim(0);
                uint64_t took = workload_now_usec() - started;
                trims.count++;
                trims.total_usec += took;
                note_worst(&trims.worst_usec, took);
        }
        return NULL;
}

/* Latencies */

static unsigned bucket_of(uint64_t usec) {
        if (usec < BUCKETS_PER_POWER)
                return (unsigned) usec;
        unsigned power = 63 - (unsigned) __builtin_clzll(usec);
        return (power - 3) * BUCKETS_PER_POWER +
               (unsigned) (usec >> (power - 4)) % BUCKETS_PER_POWER;
}

static uint64_t bucket_start(unsigned bucket) {
        if (bucket < BUCKETS_PER_POWER)
                return bucket;
        unsigned power = bucket / BUCKETS_PER_POWER + 3;
        return (uint64_t) (BUCKETS_PER_POWER + bucket % BUCKETS_PER_POWER) << (power - 4);
}

void workload_count(uint64_t started_usec) {
        if (due_usec > 0 && due_usec < started_usec)
                started_usec = due_usec;
        uint64_t usec = workload_now_usec() - started_usec;
        unsigned bucket = bucket_of(usec);

        latency.bucket[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
        latency.operations++;
        note_worst(&latency.worst_usec, usec);
}

static uint64_t percentile_usec(unsigned percent) {
        uint64_t wanted = latency.operations * percent / 100, seen = 0;

        for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
                seen += latency.bucket[bucket];
                if (seen > wanted)
                        return bucket_start(bucket);
        }
        return latency.worst_usec;
}

/* Memory and random numbers */

void *workload_map(uint64_t bytes) {
        void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED)
                die("mmap");
        return pages;
}

void workload_unmap(void *pages, uint64_t bytes) {
        munmap(pages, bytes);
}

void *workload_alloc(size_t bytes) {
        char *block = malloc(bytes);
        if (block == NULL)
                die("malloc");
        for (size_t at = 0; at < bytes; at += 1024)
                block[at] = (char) bytes;
        block[bytes - 1] = 1;
        return block;
}

struct random random_of(unsigned index) {
        struct random random = { .state = (workload->seed + 1) * 0x9e3779b97f4a7c15U +
                                          index * 0xbf58476d1ce4e5b9U };

        if (random.state == 0)
                random.state = 1;
        for (int i = 0; i < 4; i++)
                random_next(&random);
        return random;
}

uint64_t random_next(struct random *random) {
        random->state ^= random->state >> 12;
        random->state ^= random->state << 25;
        random->state ^= random->state >> 27;
        return random->state * 0x2545f4914f6cdd1dU;
}

uint64_t random_between(struct random *random, uint64_t low, uint64_t high) {
        return low + (random_next(random) >> 11) % (high - low + 1);
}

/* Begin and end */

void workload_start(
                struct workload *self,
                const struct workload_option *own,
                int argc,
                char **argv) {
        workload = self;
        parse_arguments(own, argc, argv);
        catch_signals();
        if (workload->trim_every_msec > 0)
                start_thread(blind_trimmer, NULL);
        workload_phase("start", "pid=%d", (int) getpid());
        if (workload->wait)
                wait_for(&signalled, UINT64_MAX);
        load_started_usec = workload_now_usec();
        workload_phase("load", NULL);
}

/* The release of whatever allocator serves malloc() here: a preloaded jemalloc has its own. */
static void release_everything(void) {
        int (*mallctl)(const char *, void *, size_t *, void *, size_t) =
                        (__typeof__(mallctl)) dlsym(RTLD_DEFAULT, "mallctl");

        if (mallctl != NULL)
                mallctl("arena.4096.purge", NULL, NULL, NULL, 0); /* 4096: all arenas */
        malloc_trim(0);
}

static void print_summary(uint64_t live_bytes, uint64_t usec) {
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        print("summary workload=%s operations=%lu operations_per_second=%lu p99_usec=%lu worst_usec=%lu "
              "duration_usec=%lu live_bytes=%lu rss_anon_bytes=%lu minor_faults=%ld "
              "trims=%lu trim_usec=%lu trim_worst_usec=%lu\n",
              workload->name, latency.operations,
              usec > 0 ? latency.operations * 1000000 / usec : 0, percentile_usec(99),
              latency.worst_usec, usec, live_bytes, workload_rss_anon(), usage.ru_minflt,
              trims.count, trims.total_usec, trims.worst_usec);
}

int workload_finish(uint64_t live_bytes) {
        print_summary(live_bytes, workload_now_usec() - load_started_usec);
        if (workload->self_trim) {
                uint64_t started = workload_now_usec();
                release_everything();
                uint64_t took = workload_now_usec() - started;
                workload_phase("trimmed", "live_bytes=%lu trim_usec=%lu", live_bytes, took);
        }
        workload_phase("idle", "live_bytes=%lu", live_bytes);
        wait_for(&stopping, workload->hold_seconds > UINT64_MAX / 1000
                                            ? UINT64_MAX
                                            : workload->hold_seconds * 1000);
        workload_phase("end", NULL);
        return 0;
}
