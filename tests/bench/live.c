/* SPDX-License-Identifier: MIT */
/*
 * A heap of which the live bytes are known, and every way to find them out without knowing: what each costs (CPU time) and what
 * it says. Blocks are taken by one thread for each arena and freed in runs: RUN freed, RUN kept; at random or in the order of
 * their addresses. Tables of the program's own are mapped, so that the heap holds nothing else. To be run under
 * live-count.so or live-sample.so, whose count is one of the ways.
 *
 *   live FREE-CHUNKS ARENAS RUN random|ordered
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS      3
#define TOUCHES     4000
#define HEAP_BYTES  (64UL << 20) /* each heap of a thread arena begins at a multiple of it */
#define SMALLEST    144          /* beyond the fast bins, which merge late */
#define SIZES       129
#define ARENAS_MOST 64

/* Of the object that is preloaded. */
extern int64_t live_counted_bytes(void) __attribute__((weak));

static char **block;
static uint32_t *order;
static size_t n_blocks, n_arenas, run_length;
static uint64_t base_bytes;
static atomic_size_t n_ready;
static uint64_t random_state = 88172645463325252U;
static FILE *stream;
static char text[1 << 20];
static unsigned char residency[1 << 16];

static uint64_t next_random(void) {
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return random_state;
}

static uint64_t cpu_nsec(void) {
        struct timespec now;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

/* Mapped and touched, so that it is part of the base. */
static void *table(size_t bytes) {
        void *memory =
                        mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

        if (memory == MAP_FAILED)
                abort();
        return memory;
}

static void read_text(const char *path) {
        size_t length = 0;
        ssize_t got;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        while (fd >= 0 && (got = read(fd, text + length, sizeof(text) - 1 - length)) > 0)
                length += (size_t) got;
        text[length] = 0;
        close(fd);
}

/* The ways. Each returns bytes that it takes for live. */

static uint64_t ask_mallinfo2(void) {
        struct mallinfo2 info = mallinfo2();

        return info.uordblks + info.hblkhd;
}

static ssize_t discard(void *cookie, const char *bytes, size_t length) {
        return (ssize_t) length;
}

/* Made before the heap: one that allocates would sort glibc's free lists on the way. */
static void open_stream(void) {
        static char buffer[4096];

        stream = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = discard });
        if (!stream || setvbuf(stream, buffer, _IOFBF, sizeof(buffer)) != 0)
                abort();
}

/* The same numbers as mallinfo2's, arena by arena, as XML that is not read here. */
static uint64_t ask_malloc_info(void) {
        if (malloc_info(0, stream) != 0)
                abort();
        return 0;
}

static uint64_t ask_counters(void) {
        return (uint64_t) live_counted_bytes();
}

/* Resident memory that is not a file's. */
static uint64_t read_statm(void) {
        unsigned long resident, shared;

        read_text("/proc/self/statm");
        if (sscanf(text, "%*u %lu %lu", &resident, &shared) != 2)
                abort();
        return (resident - shared) * 4096;
}

static uint64_t ask_statm(void) {
        return read_statm() - base_bytes;
}

/* Whether LINE of maps or smaps begins a heap of glibc's, by its address and name. */
static int is_heap(const char *line, uintptr_t *ret_begin, uintptr_t *ret_end) {
        char mode[5];
        int name = 0;

        if (sscanf(line, "%lx-%lx %4s %*x %*x:%*x %*u%n", ret_begin, ret_end, mode, &name) != 3)
                return -1;
        name += (int) strspn(line + name, " ");
        return strncmp(mode, "rw", 2) == 0 &&
               (line[name] == '\n' ? *ret_begin % HEAP_BYTES == 0
                                   : strncmp(line + name, "[heap]", 6) == 0);
}

static uint64_t ask_smaps(void) {
        uint64_t sum = 0;
        int inside = 0;
        uintptr_t begin, end;

        read_text("/proc/self/smaps");
        for (char *line = text; *line; line = strchr(line, '\n') + 1) {
                int found = line[0] >= 'A' && line[0] <= 'Z' ? -1 : is_heap(line, &begin, &end);
                if (found >= 0)
                        inside = found;
                else if (inside && strncmp(line, "Rss:", 4) == 0)
                        sum += strtoul(line + 4, NULL, 10) * 1024;
        }
        return sum;
}

static uint64_t count_resident(uintptr_t begin, uintptr_t end) {
        uint64_t pages = 0;

        for (uintptr_t at = begin; at < end; at += sizeof(residency) * 4096) {
                size_t bytes = end - at < sizeof(residency) * 4096 ? end - at
                                                                   : sizeof(residency) * 4096;
                if (mincore((void *) at, bytes, residency) != 0)
                        abort();
                for (size_t i = 0; i < bytes / 4096; i++)
                        pages += residency[i] & 1;
        }
        return pages * 4096;
}

static uint64_t ask_mincore(void) {
        uint64_t sum = 0;
        uintptr_t begin, end;

        read_text("/proc/self/maps");
        for (char *line = text; *line; line = strchr(line, '\n') + 1)
                if (is_heap(line, &begin, &end) > 0)
                        sum += count_resident(begin, end);
        return sum;
}

/* The calls are measured in the parent, which holds all arenas' locks meanwhile; the walk goes on in the child's copy. */
static uint64_t ask_snapshot(void) {
        int fds[2];
        uint64_t bytes = 0;

        if (pipe2(fds, O_CLOEXEC) != 0)
                abort();
        pid_t child = fork();
        if (child == 0) {
                bytes = ask_mallinfo2();
                _exit(write(fds[1], &bytes, sizeof(bytes)) != sizeof(bytes));
        }
        if (child < 0 || read(fds[0], &bytes, sizeof(bytes)) != sizeof(bytes))
                abort();
        waitpid(child, NULL, 0);
        close(fds[0]);
        close(fds[1]);
        return bytes;
}

static const struct {
        const char *name;
        uint64_t (*ask)(void);
        unsigned calls; /* in a round, where one is too short to be measured */
} ways[] = {
        { "mallinfo2", ask_mallinfo2, 1 },   { "malloc_info", ask_malloc_info, 1 },
        { "counters", ask_counters, 10000 }, { "statm", ask_statm, 100 },
        { "smaps", ask_smaps, 1 },           { "mincore", ask_mincore, 1 },
};

#define WAYS (sizeof(ways) / sizeof(*ways))

static int compare(const void *a, const void *b) {
        uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;

        return (left > right) - (left < right);
}

static uint64_t median(uint64_t *values) {
        qsort(values, ROUNDS, sizeof(*values), compare);
        return values[ROUNDS / 2];
}

/* All ways in turns, so that a machine that drifts hits them alike. */
static void measure(void) {
        uint64_t took[WAYS][ROUNDS], bytes[WAYS];

        for (size_t round = 0; round < ROUNDS; round++)
                for (size_t way = 0; way < WAYS; way++) {
                        uint64_t started = cpu_nsec();
                        for (unsigned i = 0; i < ways[way].calls; i++)
                                bytes[way] = ways[way].ask();
                        took[way][round] = (cpu_nsec() - started) / ways[way].calls;
                }
        for (size_t way = 0; way < WAYS; way++)
                printf("way=%s nsec=%lu bytes=%lu\n", ways[way].name, median(took[way]),
                       bytes[way]);
}

/* Writes to some of the blocks that are left, far from each other; after a snapshot the kernel has to open each page again. */
static uint64_t touch_some(void) {
        size_t step = n_blocks / TOUCHES + 1, n = 0;
        uint64_t started = cpu_nsec();

        for (size_t i = 0; i < n_blocks; i += step) {
                size_t kept = (i / run_length | 1) * run_length;
                if (kept >= n_blocks || !block[kept])
                        continue;
                *(volatile char *) block[kept] = 2;
                n++;
        }
        return n ? (cpu_nsec() - started) / n : 0;
}

static void measure_snapshot(void) {
        uint64_t took[ROUNDS], before[ROUNDS], after[ROUNDS], bytes = 0;

        for (size_t round = 0; round < ROUNDS; round++) {
                before[round] = touch_some();
                uint64_t started = cpu_nsec();
                bytes = ask_snapshot();
                took[round] = cpu_nsec() - started;
                after[round] = touch_some();
        }
        printf("way=snapshot nsec=%lu bytes=%lu\n", median(took), bytes);
        printf("touch=before nsec=%lu\ntouch=after nsec=%lu\n", median(before), median(after));
}

static void tell(const char *moment) {
        uint64_t truth = 0;

        for (size_t i = 0; i < n_blocks; i++)
                if (block[i])
                        truth += malloc_usable_size(block[i]);
        uint64_t resident = ask_statm();
        struct mallinfo2 info = mallinfo2();
        printf("moment=%s truth=%lu statm=%lu chunks=%lu\n", moment, truth, resident,
               info.ordblks + info.smblks);
}

static void *take(void *argument) {
        size_t arena = (size_t) (uintptr_t) argument, share = n_blocks / n_arenas;

        for (size_t i = arena * share; i < (arena + 1) * share; i++) {
                size_t bytes = SMALLEST + order[i] % SIZES;
                block[i] = malloc(bytes);
                if (!block[i])
                        abort();
                memset(block[i], 1, bytes);
        }
        atomic_fetch_add(&n_ready, 1);
        /* Who ends leaves its arena to the next one. */
        while (n_arenas > 1)
                pause();
        return NULL;
}

static void take_all(void) {
        pthread_t thread;

        for (size_t i = 0; i < n_blocks; i++)
                order[i] = (uint32_t) (next_random() >> 32);
        if (n_arenas == 1) {
                take(NULL);
                return;
        }
        for (uintptr_t i = 0; i < n_arenas; i++)
                if (pthread_create(&thread, NULL, take, (void *) i) != 0)
                        abort();
        while (atomic_load(&n_ready) < n_arenas)
                usleep(1000);
}

static void free_runs(int is_random) {
        for (size_t i = 0; i < n_blocks; i++)
                order[i] = (uint32_t) i;
        for (size_t i = n_blocks - 1; is_random && i > 0; i--) {
                size_t other = next_random() % (i + 1);
                uint32_t index = order[i];
                order[i] = order[other];
                order[other] = index;
        }
        for (size_t i = 0; i < n_blocks; i++)
                if (order[i] / run_length % 2 == 0) {
                        free(block[order[i]]);
                        block[order[i]] = NULL;
                }
}

int main(int argc, char **argv) {
        if (argc != 5)
                return 2;
        n_arenas = strtoul(argv[2], NULL, 10);
        run_length = strtoul(argv[3], NULL, 10);
        if (n_arenas < 1 || n_arenas > ARENAS_MOST || run_length < 1)
                return 2;
        n_blocks = strtoul(argv[1], NULL, 10) / n_arenas * n_arenas * run_length * 2;
        if (n_blocks == 0 || n_blocks > 8000000)
                return 2;
        if (!live_counted_bytes) {
                fputs("neither live-count.so nor live-sample.so is preloaded\n", stderr);
                return 2;
        }
        mallopt(M_ARENA_MAX, (int) n_arenas + 1);
        block = table(n_blocks * sizeof(*block));
        order = table(n_blocks * sizeof(*order));
        open_stream();
        ask_smaps(); /* touches TEXT */
        setvbuf(stdout, NULL, _IOLBF, 0);
        base_bytes = read_statm();
        take_all();
        tell("full");
        free_runs(strcmp(argv[4], "random") == 0);
        tell("freed");
        measure();
        measure_snapshot();
        malloc_trim(0);
        tell("trimmed");
        return 0;
}
